import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { startHttpServer } from "../support/servers/http-server.ts";
import { type ReceivedSpan, startOtlpReceiver } from "../support/servers/otlp-receiver.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { type Serving, startServe } from "../support/service/serve.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER = "00f067aa0ba902b7";

/** A service with a worker beside it, and a server that its playbooks call. */
async function setUp(t: TestContext, environment: NodeJS.ProcessEnv) {
  const { url: databaseUrl } = await createServedDatabase();
  const folder = await folderWith(t, {});
  const called = await startHttpServer((_request, response) => response.end("{}"));
  t.after(() => called.close());
  const settings = { ...ownDatabase(databaseUrl), FLOW_WORKER_TOOLS: "all", FLOW_HTTP_ALLOW_PRIVATE: "all" };
  const server = await startServe(t, folder, { ...settings, ...environment }, ["--role", "all"]);
  const document = (name: string, workflow: string) =>
    post(server, "/api/catalog/register", {
      content: `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: ${name}}\nworkflow:\n${workflow}`,
    });
  await document("child", `- step: inner\n  tool: {kind: http, url: "${called.origin}/inner"}\n`);
  await document(
    "parent",
    `- step: ask
  tool:
    kind: http
    url: "${called.origin}/ask"
    spec: {policy: {rules: [{when: "{{ _attempt < 2 }}", then: {do: retry, attempts: 2}}]}}
  next: {arcs: [{step: call}]}
- step: call
  tool: {kind: playbook, path: child}
`,
  );
  return { server, called };
}

async function post(server: Serving, path: string, body: object, headers: Record<string, string> = {}) {
  const init = { method: "POST", headers: { "content-type": "application/json", ...headers } };
  const response = await fetch(`${server.url}${path}`, { ...init, body: JSON.stringify(body) });
  const answer = await response.text();
  assert.ok(response.ok, answer);
  return JSON.parse(answer) as { execution_id: string };
}

/** Runs the parent to its end and gives its id. */
async function run(server: Serving, headers: Record<string, string>): Promise<string> {
  const { execution_id: id } = await post(server, "/api/execute", { path: "parent" }, headers);
  const response = await fetch(`${server.url}/api/executions/${id}/result?wait_ms=30000`);
  assert.equal(((await response.json()) as { status: string }).status, "COMPLETED");
  return id;
}

async function stop(server: Serving): Promise<string> {
  server.process.kill("SIGTERM");
  const { code, stderr } = await server.ended;
  assert.equal(code, 0, stderr);
  return stderr;
}

test("with a collector: one trace from the caller to the service that a task calls, or one of each execution, or none where its caller keeps none", async (t) => {
  const receiver = await startOtlpReceiver();
  t.after(() => receiver.close());
  const { server, called } = await setUp(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.endpoint}/`,
    OTEL_SERVICE_NAME: "orders",
  });
  const id = await run(server, { traceparent: `00-${TRACE}-${CALLER}-01` });
  const calls = called.requests.splice(0);
  await run(server, {});
  await run(server, { traceparent: "nonsense" });
  // Its caller keeps no spans of it.
  await run(server, { traceparent: `00-${TRACE}-${CALLER}-00` });
  await stop(server);
  const [spans, others] = [true, false].map((isOurs) =>
    receiver.spans.filter(({ traceId }) => (traceId === TRACE) === isOurs),
  ) as [ReceivedSpan[], ReceivedSpan[]];
  const roots = others.filter(({ parentSpanId }) => parentSpanId === undefined);
  assert.deepEqual(
    roots.map(({ name }) => name),
    ["execution parent", "execution parent"],
  );
  assert.equal(new Set(others.map(({ traceId }) => traceId)).size, 2);
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length, "every span has an id of its own");
  assert.deepEqual(pathsOf(spans), [
    "execution parent",
    "execution parent > command ask",
    "execution parent > command ask > task ask",
    "execution parent > command ask > task ask",
    "execution parent > command call",
    "execution parent > command call > task call",
    "execution parent > command call > task call > execution child",
    "execution parent > command call > task call > execution child > command inner",
    "execution parent > command call > task call > execution child > command inner > task inner",
  ]);
  const root = spans.find(({ name }) => name === "execution parent");
  assert.equal(root?.parentSpanId, CALLER);
  assert.deepEqual(
    [root?.attributes["flow.execution_id"], root?.attributes["flow.status"], root?.resource["service.name"]],
    [id, "COMPLETED", "orders"],
  );
  const tasks = spans.filter(({ name }) => name === "task ask" || name === "task inner");
  assert.deepEqual(
    calls.map(({ headers }) => headers["traceparent"]).sort(),
    tasks.map(({ spanId }) => `00-${TRACE}-${spanId}-01`).sort(),
    "what a task calls stands under that run of the task",
  );
});

test("without a collector: the caller's trace context is passed to the tasks' calls, and none without a caller's", async (t) => {
  const { server, called } = await setUp(t, { FLOW_LOG_LEVEL: "debug" });
  const traceparent = `00-${TRACE}-${CALLER}-01`;
  await run(server, { traceparent });
  const [first, again, inner] = called.requests.splice(0);
  assert.deepEqual(
    [first, again, inner].map((request) => request?.headers["traceparent"]),
    [traceparent, traceparent, traceparent],
  );
  const id = await run(server, {});
  assert.deepEqual(
    called.requests.map(({ headers }) => headers["traceparent"]),
    [undefined, undefined, undefined],
  );
  const lines = (await stop(server))
    .split("\n")
    .filter((line) => line.includes(id))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const ended = lines.find(({ msg }) => msg === "an execution ended COMPLETED");
  assert.deepEqual([ended?.["level"], ended?.["role"], typeof ended?.["duration_ms"]], ["debug", "server", "number"]);
  const reported = lines.filter(({ msg }) => msg === "a command was reported");
  assert.equal(reported.length, 2);
  for (const line of reported) assert.match(String(line["command_id"]), /^\d+$/);
});

/** Each span by the names from its root to it, sorted. */
function pathsOf(spans: readonly ReceivedSpan[]): string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const pathOf = (span: ReceivedSpan): string => {
    const parent = byId.get(span.parentSpanId ?? "");
    return parent === undefined ? span.name : `${pathOf(parent)} > ${span.name}`;
  };
  return spans.map(pathOf).sort();
}
