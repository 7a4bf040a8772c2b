import assert from "node:assert/strict";
import { before, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { type Body, openApi } from "../../support/service/api.ts";
import { type Claimed, endOf, workWith } from "../../support/service/api-work.ts";

// Looking at executions touches nothing of those that run: not their memory, and not their turn.

const api = await openApi();
const work = workWith(api);
const { database } = api;

/** Executions that are looked at, and events of each, all of them after its last snapshot. */
const COUNT = 50;
const EVENTS = 750;

const TWO = "  - { step: one, tool: { kind: noop }, next: two }\n  - { step: two, tool: { kind: noop } }\n";
let source: string;

before(async () => {
  await work.register("apart/two", TWO);
  source = await work.execute("apart/two");
  const [command] = await work.claim("w");
  assert.ok(command);
  const { command_id, execution_id, attempt, step } = command;
  for (let from = 0; from < EVENTS; from += 250) {
    const events = Array.from({ length: 250 }, (_, index) => ({
      ...{ command_id, execution_id, attempt, step, task: step, event_type: "task.progress" },
      meta: { log: { lines: ["a line"], from: from + index } },
    }));
    const { status, body } = await work.post("/api/events/batch", { worker: "w", events });
    assert.equal(status, 202, JSON.stringify(body));
  }
  await work.finish("w", command);
  await work.runToEnd(source);
});

/** Executions of other servers, as long as `source`: their rows and their logs. */
async function copies(): Promise<string[]> {
  const { sql } = database;
  const columns = sql`event_type, node_id, node_name, node_type, status, created_at, command_id, worker, attempt, iteration,
    step_run_id, task_run_id, duration_ms, result, error, meta, catalog_id`;
  const step = 10_000_000;
  await sql`
    insert into flow.event (event_id, execution_id, ${columns})
    select event_id + at * ${step}::bigint, execution_id + at * ${step}::bigint, ${columns}
    from generate_series(1, ${COUNT}) as at cross join flow.event where execution_id = ${source}`;
  const rows = await sql<{ id: string }[]>`
    insert into flow.execution (execution_id, catalog_id, path, version, status, progress, last_event_id,
      root_execution_id, result, started_at, ended_at)
    select execution_id + at * ${step}::bigint, catalog_id, path, version, status, progress,
      last_event_id + at * ${step}::bigint, execution_id + at * ${step}::bigint, result, started_at, ended_at
    from generate_series(1, ${COUNT}) as at cross join flow.execution where execution_id = ${source}
    returning execution_id as id`;
  return rows.map(({ id }) => id);
}

const statusesOf = (body: Body) => (body["steps"] as { status: string }[]).map(({ status }) => status);
const inMemory = () => api.service.orchestrator.inMemory().map(({ executionId }) => executionId);

test("looking at fifty large executions takes nothing into the memory of what runs, and nothing out of it", async () => {
  const running = await work.execute("apart/two");
  const others = await copies();
  const known = inMemory();
  assert.ok(known.includes(running));
  for (const id of others) {
    const { status, body } = await work.get(`/api/executions/${id}`);
    assert.equal(status, 200);
    assert.deepEqual(statusesOf(body), ["COMPLETED", "COMPLETED"]);
  }
  assert.deepEqual(inMemory(), known);
  // The one that runs goes on with the state that it had.
  await work.runToEnd(running);
});

test("a read is answered while a round waits to be written, with what was committed before", async () => {
  const id = await work.execute("apart/two");
  const [first] = await work.claim("w");
  assert.equal(first?.execution_id, id);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let locked = () => {};
  const isLocked = new Promise<void>((resolve) => {
    locked = resolve;
  });
  // The flush waits for the row of the execution, as it would behind another server's.
  const holding = database.sql.begin(async (sql) => {
    await sql`select from flow.execution where execution_id = ${id} for update`;
    locked();
    await held;
  });
  await isLocked;
  const claim = { limit: 1, wait_ms: 5_000 };
  const reported = work.post("/api/events/batch", { worker: "w", events: endOf(first), claim });
  while ((await waiting()) === 0) await setImmediate();
  const { body } = await work.get(`/api/executions/${id}`);
  assert.deepEqual(statusesOf(body), ["RUNNING", "PENDING"]);
  assert.equal((await work.get(`/api/executions/${id}/result`)).body["status"], "RUNNING");
  release();
  await holding;
  assert.equal((await reported).status, 202);
});

/** Statements that wait for a lock. */
async function waiting(): Promise<number> {
  const [row] = await database.sql<{ count: number }[]>`
    select count(*)::int as count from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  return row?.count ?? 0;
}

test("what was answered is read: each report's step has ended in the next look, also right after it", async () => {
  const id = await work.execute("apart/two");
  let [command] = await work.claim("w");
  for (const [index, step] of ["one", "two"].entries()) {
    assert.equal(command?.step, step);
    const claim = { limit: 1, wait_ms: 0 };
    const answer = await work.post("/api/events/batch", { worker: "w", events: endOf(command), claim });
    const { body } = await work.get(`/api/executions/${id}`);
    assert.equal(statusesOf(body)[index], "COMPLETED");
    [command] = answer.body["commands"] as Claimed[];
  }
});
