import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { createLocalRuntime, type LocalRuntimeOptions } from "../../../src/local/runtime.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { createToolRegistry, type ToolRegistry } from "../../../src/tools/registry.ts";
import { type SdkMcpServer, startSdkMcpServer } from "../../support/servers/sdk-mcp-server.ts";
import { secretBench } from "../../support/service/secret-source.ts";

// Which server a task of kind `mcp` calls, and as whom (interface specification, Managed cloud MCP access).

const HEAD = "apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: calls }\n";
let server: SdkMcpServer;
before(async () => {
  server = await startSdkMcpServer({ json: true });
});
after(() => server.close());

interface Asked {
  /** Keys of the task. */
  task: string;
  /** `spec` of the MCP resource `mcp/demo` beside the playbook; default none is there. */
  resource?: string;
  workload?: JsonObject;
  /** Stands in for the machine's token; otherwise its metadata service gives `metadata`. */
  override?: string;
  options?: Partial<LocalRuntimeOptions>;
}

interface Ran {
  status: string;
  error: { kind?: string; code?: string; message: string } | null;
  result: JsonObject;
  /** The tokens that the server was called with, each once. */
  tokens: (string | undefined)[];
}

/** Runs a playbook of one task, in this process. */
async function run(t: TestContext, { task, resource, workload = {}, override, options = {} }: Asked): Promise<Ran> {
  const { source } = await secretBench(
    t,
    () => [200, { access_token: "metadata", expires_in: 600 }],
    (origin) => ({ addresses: { metadataUrl: origin }, ...(override !== undefined && { adcAccessToken: override }) }),
  );
  const folder = await mkdtemp(join(tmpdir(), "flow-mcp-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "calls.yaml"), `${HEAD}workflow: [{ step: call, tool: { kind: mcp, ${task} } }]\n`);
  if (resource !== undefined) {
    const head = "apiVersion: flow/v2\nkind: Mcp\nmetadata: { name: demo, path: mcp/demo }\n";
    await writeFile(join(folder, "demo.yaml"), `${head}spec: { ${resource} }\n`);
  }
  let tools: ToolRegistry | undefined;
  const runtime = createLocalRuntime({
    tools: (store) => (tools = createToolRegistry({ allowPrivate: "all", store })),
    credentials: {
      find: (name) =>
        Promise.resolve(name === "known" ? { name, type: "bearer", data: { token: "credential" } } : undefined),
    },
    secretSource: source,
    ...options,
  });
  t.after(async () => {
    await runtime.close();
    await tools?.close();
  });
  const before = server.messages.length;
  const state = await runtime.run(
    await runtime.load("calls", folder),
    { input: workload },
    new AbortController().signal,
  );
  const stored = state.steps["call"]?.result;
  const sent = server.messages.slice(before).map(({ headers }) => headers.authorization?.replace("Bearer ", ""));
  return {
    status: state.status,
    error: state.error as Ran["error"],
    result: (stored != null && "value" in stored ? stored.value : {}) as JsonObject,
    tokens: [...new Set(sent)],
  };
}

const to = (endpoint = server.endpoint) => `endpoint: ${endpoint}, tool: echo, arguments: { a: 1 }`;

test("a server is named by the path of its resource, with mcp/ before it or without", async (t) => {
  for (const name of ["demo", "mcp/demo"]) {
    const { status, result, error } = await run(t, {
      task: `server: ${name}, tool: echo`,
      resource: `endpoint: "${server.endpoint}"`,
    });
    assert.equal(status, "COMPLETED", error?.message);
    assert.deepEqual([result["server"], result["endpoint"]], [name, server.endpoint]);
  }
});

test("a resource's address may name variables of the allow-listed environment", async (t) => {
  const { status, error } = await run(t, {
    task: "server: demo, tool: echo",
    resource: 'endpoint: "{{ env.MCP }}"',
    options: { env: { MCP: server.endpoint } },
  });
  assert.equal(status, "COMPLETED", error?.message);
});

test("a server that is registered nowhere fails the task and says what to do", async (t) => {
  const { status, error } = await run(t, { task: "server: other, tool: echo", resource: "endpoint: http://h" });
  assert.equal(status, "FAILED");
  assert.equal(error?.kind, "configuration");
  assert.match(error.message, /no MCP resource 'other' nor 'mcp\/other'.*kind Mcp.*endpoint/);
});

test("the resource's credential is sent to it, and the task's own wins", async (t) => {
  const resource = `endpoint: "${server.endpoint}", auth: known`;
  assert.deepEqual((await run(t, { task: "server: demo, tool: echo", resource })).tokens, ["credential"]);
  const own = await run(t, { task: "server: demo, tool: echo, auth: { type: bearer, token: own }", resource });
  assert.deepEqual(own.tokens, ["own"]);
});

test("the resource's credential goes to no other address that a caller gives", async (t) => {
  const resource = "endpoint: http://127.0.0.1:1, auth: known";
  const { status, tokens } = await run(t, { task: `server: demo, ${to()}`, resource });
  assert.deepEqual([status, tokens], ["COMPLETED", [undefined]]);
});

test("the resource's time-out holds where the task has none", async (t) => {
  const { error } = await run(t, {
    task: "server: demo, tool: slow",
    resource: `endpoint: "${server.endpoint}", timeout_seconds: 0.001`,
  });
  assert.equal(error?.kind, "timeout");
});

test("the machine's identity: the caller's token first, then the operator's, then the metadata service's", async (t) => {
  const managed = `${to()}, auth: { source: adc }`;
  const workload = { access_token: "callers" };
  assert.deepEqual((await run(t, { task: managed, workload, override: "operators" })).tokens, ["callers"]);
  assert.deepEqual((await run(t, { task: managed, override: "operators" })).tokens, ["operators"]);
  assert.deepEqual((await run(t, { task: managed })).tokens, ["metadata"]);
  assert.deepEqual((await run(t, { task: managed, workload: { access_token: "" } })).tokens, ["metadata"]);
});

test("a caller's token is for managed servers: others get it only where the task says so", async (t) => {
  const workload = { access_token: "callers" };
  assert.deepEqual((await run(t, { task: to(), workload })).tokens, [undefined]);
  assert.deepEqual((await run(t, { task: `${to()}, auth: known`, workload })).tokens, ["credential"]);
  const passed = `${to()}, auth: known, access_token: "{{ workload.access_token }}"`;
  assert.deepEqual((await run(t, { task: passed, workload })).tokens, ["callers"]);
  assert.deepEqual((await run(t, { task: passed })).tokens, ["credential"]);
});

test("a caller's token stands in no event", async (t) => {
  const events: unknown[] = [];
  const workload = { access_token: "callers-token-1" };
  const options = { observe: (_: unknown, some: readonly unknown[]) => void events.push(...some) };
  const task = `${to()}, auth: { source: adc }, arguments: { said: "{{ workload.access_token }}" }`.replace(
    "arguments: { a: 1 }, ",
    "",
  );
  const { tokens, status } = await run(t, { task, workload, options });
  assert.deepEqual([status, tokens], ["COMPLETED", ["callers-token-1"]]);
  assert.doesNotMatch(JSON.stringify(events), /callers-token-1/);
});

test("the machine's token goes to registered servers and to allowed hosts, not to an address that a caller chose", async (t) => {
  const options = { mcpTokenHosts: ["*.example.com", "mcp.example.org"] };
  const chosen = `endpoint: "{{ workload.endpoint }}", tool: echo, auth: { source: adc }`;
  const refused = await run(t, { task: chosen, workload: { endpoint: server.endpoint }, options });
  assert.deepEqual([refused.status, refused.tokens], ["FAILED", []]);
  assert.match(refused.error?.message ?? "", /own token to 127\.0\.0\.1.*FLOW_MCP_TOKEN_HOSTS/);
  const resource = `endpoint: "${server.endpoint}", auth: { source: adc }`;
  assert.deepEqual((await run(t, { task: "server: demo, tool: echo", resource, options })).tokens, ["metadata"]);
  const allowed = await run(t, {
    task: chosen,
    workload: { endpoint: server.endpoint },
    options: { mcpTokenHosts: ["127.0.0.1"] },
  });
  assert.deepEqual(allowed.tokens, ["metadata"]);
  // Their own token is theirs to send where they like.
  const own = await run(t, { task: chosen, workload: { endpoint: server.endpoint, access_token: "own" }, options });
  assert.deepEqual(own.tokens, ["own"]);
});
