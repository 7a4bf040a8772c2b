import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { ToolResult } from "../../../src/schema/words/outcome.ts";
import { createMcpTool } from "../../../src/tools/mcp/mcp.ts";
import { closedPort, startHttpServer } from "../../support/servers/http-server.ts";
import { startMcpServer, type TestMcpServer } from "../../support/servers/mcp-server.ts";
import { toolCall } from "../../support/service/tool-call.ts";

const tool = createMcpTool({ egress: createEgressGuard({ allowPrivate: "all" }) });
let server: TestMcpServer;

before(async () => {
  server = await startMcpServer();
});

after(async () => {
  await tool.close?.();
  await server?.close();
});

function run(config: JsonObject, more: Parameters<typeof toolCall>[1] = {}): Promise<ToolResult> {
  return tool.run(toolCall({ endpoint: server.endpoint, ...config }, more));
}

test("health says that the server answers, and who it is", async () => {
  const result = await run({ method: "health" });
  assert.equal(result.error, undefined, result.error?.message);
  const data = result.data as JsonObject;
  assert.deepEqual([data["status"], data["healthy"], data["endpoint"]], ["ok", true, server.endpoint]);
  assert.match(String(data["text"]), /everything/);
});

test("tools/list gives the tools and their names as text", async () => {
  const data = (await run({ method: "tools/list" })).data as {
    text: string;
    result: { tools: { name: string; inputSchema: JsonObject }[] };
  };
  assert.ok(data.text.split("\n").includes("echo"));
  assert.equal(typeof data.result.tools.find(({ name }) => name === "echo")?.inputSchema, "object");
});

test("resources and prompts are listed and read; what a server does not know is its error", async () => {
  const listed = (await run({ method: "resources/list" })).data as {
    text: string;
    result: { resources: JsonObject[] };
  };
  const uri = String(listed.result.resources[0]?.["uri"]);
  assert.equal(listed.text.split("\n")[0], uri);
  const read = (await run({ method: "resources/read", arguments: { uri } })).data as {
    text: string;
    result: { contents: JsonObject[] };
  };
  assert.equal(read.result.contents[0]?.["uri"], uri);
  assert.ok(read.text.length > 0);
  const prompts = (await run({ method: "prompts/list" })).data as { text: string };
  assert.ok(prompts.text.split("\n").includes("args-prompt"), prompts.text);
  const got = (await run({ method: "prompts/get", arguments: { name: "args-prompt", arguments: { city: "Ulm" } } }))
    .data as { text: string };
  assert.match(got.text, /Ulm/);
  assert.equal((await run({ method: "resources/read", arguments: { uri: "none://there" } })).status, "error");
  assert.equal((await run({ method: "prompts/get", arguments: { name: "none" } })).status, "error");
});

test("templates of resources are listed; the messages of a call stand in its result where they are wanted", async () => {
  const listed = (await run({ method: "resources/templates/list", messages: true })).data as {
    text: string;
    result: { resourceTemplates: JsonObject[] };
    messages: { from: string; after_ms: number; message: JsonObject }[];
  };
  assert.equal(listed.text.split("\n")[0], listed.result.resourceTemplates[0]?.["uriTemplate"]);
  const asked = listed.messages.filter(({ from }) => from === "client").map(({ message }) => message["method"]);
  assert.deepEqual(asked, ["initialize", "notifications/initialized", "resources/templates/list"]);
  const { id } = listed.messages.find(({ message }) => message["method"] === "resources/templates/list")?.message ?? {};
  const answer = listed.messages.find(({ from, message }) => from === "server" && message["id"] === id)?.message;
  assert.deepEqual(
    (answer?.["result"] as JsonObject | undefined)?.["resourceTemplates"],
    listed.result.resourceTemplates,
  );
  assert.ok(listed.messages.every(({ after_ms }) => Number.isInteger(after_ms) && after_ms >= 0));
  assert.equal(((await run({ method: "health" })).data as JsonObject)["messages"], undefined);
  const refused = await run({ method: "prompts/get", arguments: { name: "none" }, messages: true });
  assert.equal(refused.status, "error");
  assert.match(JSON.stringify((refused.data as JsonObject)["messages"]), /"error":\{"code":-32602/);
});

test("tools/call gives the tool's text and its whole result", async () => {
  const result = await run({ server: "demo", method: "tools/call", tool: "echo", arguments: { message: "grüß" } });
  assert.deepEqual(result.data, {
    status: "ok",
    server: "demo",
    endpoint: server.endpoint,
    method: "tools/call",
    tool: "echo",
    arguments: { message: "grüß" },
    text: "Echo: grüß",
    result: { content: [{ type: "text", text: "Echo: grüß" }] },
  });
});

test("arguments may be JSON text, and a URL as server is the endpoint", async () => {
  const config = { endpoint: null, server: server.endpoint, tool: "get-sum", arguments: '{"a": 2, "b": 40}' };
  const result = await tool.run(toolCall(config));
  assert.match(String((result.data as JsonObject)["text"]), /42/, result.error?.message);
});

test("an unknown tool is an error of the client's", async () => {
  const { error } = await run({ tool: "no-such-tool" });
  assert.equal(error?.kind, "client_error");
  assert.match(error?.message ?? "", /no-such-tool/);
});

test("arguments that do not fit the tool are an error that keeps what the server said", async () => {
  const result = await run({ tool: "get-sum", arguments: { a: "x" } });
  assert.equal(result.error?.kind, "client_error");
  assert.equal(result.error?.retryable, false);
});

test("a server of the older SSE transport works too", async (t) => {
  const older = await startMcpServer("sse");
  t.after(() => older.close());
  for (const more of [{}, { transport: "sse" }]) {
    const result = await run({ endpoint: older.endpoint, tool: "echo", arguments: { message: "hi" }, ...more });
    assert.equal((result.data as JsonObject | null)?.["text"], "Echo: hi", result.error?.message);
  }
  const { error } = await run({ endpoint: older.endpoint, transport: "streamable_http" });
  assert.equal(error?.code, "HTTP_404");
});

test("a server that is down is a retryable connection error, and unhealthy", async () => {
  const endpoint = `http://127.0.0.1:${await closedPort()}/mcp`;
  const called = await run({ endpoint, tool: "echo" });
  assert.deepEqual(
    [called.error?.kind, called.error?.code, called.error?.retryable],
    ["connection", "ECONNREFUSED", true],
  );
  const health = await run({ endpoint, method: "health" });
  assert.equal(health.error?.kind, "connection");
  assert.equal((health.data as JsonObject)["healthy"], false);
});

test("the signal stops a call that takes a minute", { timeout: 30_000 }, async () => {
  const config = { tool: "trigger-long-running-operation", arguments: { duration: 60, steps: 2 } };
  const result = await run(config, { signal: AbortSignal.timeout(500) });
  assert.equal(result.error?.kind, "timeout", JSON.stringify(result));
});

for (const [status, kind] of [
  [401, "auth"],
  [403, "auth"],
  [404, "not_found"],
  [429, "rate_limit"],
  [500, "server_error"],
] as [number, string][]) {
  test(`a server that answers ${status} is an error of kind ${kind}`, async (t) => {
    const http = await startHttpServer((_, response) => response.writeHead(status).end("no"));
    t.after(() => http.close());
    const { error } = await run({ endpoint: http.origin, tool: "echo" });
    assert.deepEqual([error?.kind, error?.code], [kind, `HTTP_${status}`], error?.message);
  });
}

test("a credential travels as a header", async (t) => {
  const http = await startHttpServer((_, response) => response.writeHead(401).end());
  t.after(() => http.close());
  const bearer = { name: "b", type: "bearer", data: { token: "t0" } };
  await run(
    { endpoint: http.origin, tool: "echo", headers: { "X-Team": "a" } },
    { auth: { b: bearer, default: bearer } },
  );
  const [request] = http.requests;
  assert.deepEqual([request?.headers.authorization, request?.headers["x-team"]], ["Bearer t0", "a"]);
});

test("an api_key in the query reaches the server and not the result", async (t) => {
  const http = await startHttpServer((_, response) => response.writeHead(500).end());
  t.after(() => http.close());
  const key = { name: "k", type: "api_key", data: { key: "s3cret", query: "key" } };
  const result = await run({ endpoint: `${http.origin}/mcp`, method: "health" }, { auth: { k: key, default: key } });
  assert.equal(http.requests[0]?.url, "/mcp?key=s3cret");
  assert.doesNotMatch(JSON.stringify(result), /s3cret/);
});

for (const [name, body, type] of [
  ["a web page", "<html></html>", "text/html"],
  ["JSON that is no message", '{"a": 1}', "application/json"],
] as [string, string, string][]) {
  test(`a server that answers with ${name} is an error, not a hang`, async (t) => {
    const http = await startHttpServer((_, response) => response.setHeader("content-type", type).end(body));
    t.after(() => http.close());
    const { error } = await run({ endpoint: http.origin, tool: "echo" }, { signal: AbortSignal.timeout(5000) });
    assert.equal(error?.kind, "parse", JSON.stringify(error));
  });
}

test("the guard holds for servers too", async () => {
  const guarded = createMcpTool({ egress: createEgressGuard({ allowPrivate: [] }) });
  const { error } = await guarded.run(toolCall({ endpoint: server.endpoint, tool: "echo" }));
  assert.deepEqual([error?.kind, error?.code], ["client_error", "EGRESS_REFUSED"]);
  await guarded.close?.();
});

for (const [name, config, expected] of [
  ["neither endpoint nor server", { endpoint: null }, /no "endpoint"/],
  ["a server known by name only", { endpoint: null, server: "crm" }, /server "crm".*give its URL as "endpoint"/],
  ["tools/call without a tool", { method: "tools/call" }, /no "tool"/],
  ["an unknown method", { method: "resources/subscribe" }, /expects health, tools\/list, tools\/call, resources\/list/],
  ["arguments that are no map", { tool: "echo", arguments: "[1]" }, /key "arguments" expects a map/],
] as [string, JsonObject, RegExp][]) {
  test(`${name} is a configuration error`, async () => {
    const { error } = await run(config);
    assert.equal(error?.kind, "configuration");
    assert.match(error?.message ?? "", expected);
  });
}
