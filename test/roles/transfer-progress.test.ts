import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, before, type TestContext, test } from "node:test";
import postgres from "postgres";
import { compileProgram } from "../../src/engine/program/program.ts";
import { loadPlaybook } from "../../src/language/load/load.ts";
import { createLocalRuntime } from "../../src/local/runtime.ts";
import { type EventRecord, fromRecord } from "../../src/schema/rules/event-record.ts";
import type { FlowEvent, ProgressNumbers } from "../../src/schema/words/event.ts";
import type { JsonObject } from "../../src/schema/words/json.ts";
import { createToolRegistry } from "../../src/tools/registry.ts";
import { createTestDatabase, type TestDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { startHttpServer } from "../support/servers/http-server.ts";
import { readEvents } from "../support/servers/sse.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startServe } from "../support/service/serve.ts";

// How far a transfer over HTTP into PostgreSQL is, while it runs: on a service, and in a local run.

let database: TestDatabase;
let sql: postgres.Sql;
before(async () => {
  database = await createTestDatabase();
  sql = postgres(database.url, { max: 1, onnotice: () => {} });
});
after(() => sql?.end());

/** Rows of the first part and of the second, which comes when it is asked for; chunks are as large as the first. */
const FIRST = 20;
const ROWS = 45;

/** A source that gives its first rows and waits; `go` ends its answer as `end` says. */
async function source(t: TestContext, end: (response: ServerResponse) => void) {
  let waiting: ServerResponse | undefined;
  const server = await startHttpServer((_request, response) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" }).write(lines(0, FIRST));
    waiting = response;
  });
  t.after(() => server.close());
  const go = () => {
    if (waiting !== undefined) end(waiting);
  };
  return { origin: server.origin, go };
}

function lines(from: number, to: number): string {
  return Array.from({ length: to - from }, (_, index) => `${JSON.stringify({ id: from + index })}\n`).join("");
}

const whole = (response: ServerResponse) => response.end(lines(FIRST, ROWS));
const broken = (response: ServerResponse) => response.destroy();

function playbook(origin: string, table: string): string {
  return `
apiVersion: flow/v2
kind: Playbook
metadata: { name: ${table}, path: ${table} }
workflow:
  - step: copy
    tool:
      kind: transfer
      source: { type: http, url: "${origin}", format: ndjson }
      target: { type: sqldb, auth: target_db, table: ${table} }
      chunk_size: ${FIRST}
`;
}

function credential(): { type: string; data: JsonObject } {
  const { host, port, user, password, database: db_name } = database;
  return { type: "sqldb", data: { db_host: host, db_port: port, db_user: user, db_password: password, db_name } };
}

/** What is told, in its order, and what comes of it. The source goes on when the first progress was seen. */
function check(log: readonly FlowEvent[], status: "ok" | "error"): void {
  const types = log.map(({ type }) => type);
  const told = log.flatMap((event) => (event.type === "task.progress" ? [event] : []));
  const [done, ...more] = log.flatMap((event) => (event.type === "task.done" ? [event] : []));
  assert.deepEqual([done?.status, more], [status, []]);
  assert.deepEqual(told[0]?.progress, { rows_read: FIRST, rows_written: FIRST, chunks: 1 });
  for (const { command_id, task_run_id } of told) {
    assert.deepEqual([command_id, task_run_id], [done?.command_id, done?.task_run_id]);
  }
  assert.ok(types.lastIndexOf("task.progress") < types.indexOf("task.done"), types.join());
  const rows = told.map(({ progress }) => (progress as ProgressNumbers)["rows_written"] ?? 0);
  assert.deepEqual(
    rows,
    [...rows].sort((left, right) => left - right),
  );
}

test("a service's log shows a transfer's progress while it runs", async (t) => {
  await sql`create table on_service (id int primary key)`;
  const { origin, go } = await source(t, whole);
  const environment = {
    ...ownDatabase(database.url),
    FLOW_HTTP_ALLOW_PRIVATE: "all",
    FLOW_WORKER_TOOLS: "all",
  };
  const { url } = await startServe(t, await folderWith(t, {}), environment, ["--role", "all"]);
  const post = async (path: string, body: object): Promise<JsonObject> => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = (await response.json()) as JsonObject;
    assert.ok(response.ok, `${path}: ${JSON.stringify(answer)}`);
    return answer;
  };
  await post("/api/credentials", { name: "target_db", ...credential(), meta: { playbooks: ["on_service"] } });
  await post("/api/catalog/register", { content: playbook(origin, "on_service") });
  const { execution_id: id } = await post("/api/execute", { path: "on_service" });
  const stream = readEvents(await fetch(`${url}/api/executions/${String(id)}/stream`));
  for (let event = await stream.next(); event !== undefined; event = await stream.next()) {
    if ((event.data as JsonObject)["event_type"] === "task.progress") break;
  }
  assert.equal((await sql`select from on_service`).count, 0, "Nothing stands before all of it does");
  go();
  await stream.rest();
  const response = await fetch(`${url}/api/executions/${String(id)}/events?limit=500`);
  const { events } = (await response.json()) as { events: EventRecord[] };
  const known = events.filter(({ event_type }) => !event_type.startsWith("batch."));
  check(known.map(fromRecord), "ok");
  assert.equal((await sql`select from on_service`).count, ROWS);
});

for (const [table, end, status, rows] of [
  ["local_whole", whole, "ok", ROWS],
  ["local_broken", broken, "error", 0],
] as const) {
  test(`a local run's log shows the progress of a transfer whose source ${status === "ok" ? "ends well" : "breaks off"}`, async (t) => {
    await sql.unsafe(`create table ${table} (id int primary key)`);
    const { origin, go } = await source(t, end);
    const log: FlowEvent[] = [];
    const runtime = createLocalRuntime({
      tools: (store) => createToolRegistry({ allowPrivate: "all", store }),
      credentials: { find: (name) => Promise.resolve({ name, ...credential() }) },
      observe(_, events) {
        log.push(...events);
        if (events.some(({ type }) => type === "task.progress")) go();
      },
    });
    t.after(() => runtime.close());
    const text = playbook(origin, table);
    const { playbook: loaded } = loadPlaybook(text, "test.yaml");
    assert.ok(loaded);
    const program = { program: compileProgram(loaded), file: "test.yaml", warnings: [] };
    const { status: ended } = await runtime.run(program, { input: {} }, new AbortController().signal);
    assert.equal(ended, status === "ok" ? "COMPLETED" : "FAILED");
    check(log, status);
    assert.equal((await sql.unsafe(`select from ${table}`)).count, rows);
  });
}
