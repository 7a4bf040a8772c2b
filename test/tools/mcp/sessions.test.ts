import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { createMcpTool } from "../../../src/tools/mcp/mcp.ts";
import { type SdkServerOptions, startSdkMcpServer } from "../../support/servers/sdk-mcp-server.ts";
import { toolCall } from "../../support/service/tool-call.ts";

// Sessions, pages and permissions of the mcp tool, against the official SDK's server.

const tool = createMcpTool({ egress: createEgressGuard({ allowPrivate: "all" }) });
after(() => tool.close?.());

async function serve(t: TestContext, options: SdkServerOptions = {}) {
  const server = await startSdkMcpServer(options);
  t.after(() => server.close());
  const run = (config: JsonObject, more: Parameters<typeof toolCall>[1] = {}) =>
    tool.run(toolCall({ endpoint: server.endpoint, ...config }, more));
  return { server, run };
}

for (const [form, options] of [
  ["a stream of events", {}],
  ["JSON", { json: true }],
] as const) {
  test(`a server that answers with ${form}: health, tools/list and tools/call`, async (t) => {
    const { server, run } = await serve(t, options);
    assert.equal(((await run({ method: "health" })).data as JsonObject)["text"], "sdk 1.2.3");
    const listed = await run({ method: "tools/list" });
    assert.equal((listed.data as JsonObject)["text"], "echo\nfail\nsteps");
    const called = await run({ tool: "echo", arguments: { a: 1 } });
    const { status, method, tool: name, result } = called.data as JsonObject;
    assert.deepEqual([status, method, name], ["ok", "tools/call", "echo"]);
    assert.deepEqual((result as JsonObject)["structuredContent"], { a: 1 });
    assert.deepEqual(server.methods().slice(0, 2), ["initialize", "ping"]);
  });
}

test("each message after the greeting has the session's header, and the session is ended", async (t) => {
  const { server, run } = await serve(t);
  assert.equal((await run({ tool: "echo" })).status, "ok");
  const [first, ...others] = server.messages;
  assert.equal(first?.headers["mcp-session-id"], undefined);
  const ids = new Set(others.map(({ headers }) => headers["mcp-session-id"]));
  assert.deepEqual([ids.size, ids.has(undefined)], [1, false]);
  assert.equal(others.at(-1)?.method, "DELETE");
});

test("a session that the server has forgotten is opened anew, and the call is made once", async (t) => {
  let forgotten = false;
  const { server, run } = await serve(t, {
    refuse({ method }) {
      if (method !== "tools/call" || forgotten) return undefined;
      forgotten = true;
      server.forgetSessions();
      return undefined;
    },
  });
  const { data, error } = await run({ tool: "echo", arguments: { a: 1 } });
  assert.equal((data as JsonObject | null)?.["text"], '{"a":1}', error?.message);
  assert.deepEqual(server.methods(), ["initialize", "tools/call", "initialize", "tools/call"]);
});

test("a server that forgets each session is asked twice, not for ever", async (t) => {
  const { server, run } = await serve(t, { refuse: ({ method }) => (method === "tools/call" ? 404 : undefined) });
  const { error } = await run({ tool: "echo" });
  assert.deepEqual([error?.kind, error?.code], ["not_found", "HTTP_404"]);
  assert.deepEqual(server.methods(), ["initialize", "tools/call", "initialize", "tools/call"]);
});

test("a list in pages is given whole", async (t) => {
  const { server, run } = await serve(t, { pages: [["a", "b"], [], ["c"]] });
  const { data } = await run({ method: "tools/list" });
  assert.equal((data as JsonObject)["text"], "a\nb\nc");
  assert.deepEqual(server.methods(), ["initialize", "tools/list", "tools/list", "tools/list"]);
});

test("without the permission to call tools a call is 403 and says which permission, while the list works", async (t) => {
  const { run } = await serve(t, { refuse: ({ method }) => (method === "tools/call" ? 403 : undefined) });
  const { error } = await run({ tool: "echo" });
  assert.deepEqual([error?.kind, error?.code, error?.retryable], ["auth", "HTTP_403", false]);
  assert.match(error?.message ?? "", /403: permission denied for the tool-call permission/);
  assert.equal((await run({ method: "tools/list" })).status, "ok");
});

test("a caller who cannot initialise a session gets no message about tool calls", async (t) => {
  const { run } = await serve(t, { refuse: () => 403 });
  const { error } = await run({ tool: "echo" });
  assert.equal(error?.code, "HTTP_403");
  assert.doesNotMatch(error?.message ?? "", /tool-call/);
});

test("a tool that says it failed fails the task, and its answer stays", async (t) => {
  const { run } = await serve(t);
  const { data, error } = await run({ tool: "fail", server: "demo" });
  assert.deepEqual([error?.kind, error?.code, error?.retryable], ["client_error", "MCP_TOOL_ERROR", false]);
  const { status, text, result } = data as JsonObject;
  assert.deepEqual([status, text, (result as JsonObject)["isError"]], ["error", "it went wrong", true]);
});

test("progress of a tool is the task's progress", async (t) => {
  const { run } = await serve(t);
  const told: unknown[] = [];
  const { status } = await run({ tool: "steps" }, { progress: (numbers) => void told.push(numbers) });
  assert.equal(status, "ok");
  assert.deepEqual(told, [
    { progress: 1, total: 2 },
    { progress: 2, total: 2 },
  ]);
});

test("keys with empty text count as absent, because agents pass on inputs that were not given", async (t) => {
  const { run } = await serve(t);
  const empty = { server: "", tool: "", arguments: "", transport: "" };
  assert.equal(((await run({ ...empty, method: "tools/list" })).data as JsonObject)["method"], "tools/list");
  assert.equal(((await run({ ...empty, method: "" })).data as JsonObject)["method"], "health");
});

test("an unknown transport is a configuration error", async (t) => {
  const { run } = await serve(t);
  const { error } = await run({ transport: "stdio" });
  assert.equal(error?.kind, "configuration");
  assert.match(error?.message ?? "", /streamable_http or sse/);
});
