import assert from "node:assert/strict";
import { test } from "node:test";
import type { Database } from "../../src/repositories/database/database.ts";
import { SLICE } from "../../src/services/bulk/bulk.ts";
import type { Client } from "./support/client.ts";
import { closeEventGate, closeGate } from "./support/event-gate.ts";
import { LONG, openStand, ownedByFile } from "./support/stand.ts";
import { until } from "./support/until.ts";

/* A server is killed while it works on many executions: the next one goes on with its operation. */

const EXECUTIONS = 50;

const stand = await openStand(ownedByFile(), LONG);

test("a server is killed amid a bulk operation: every execution is cancelled, once, and each counts once", async () => {
  const server = await stand.server();
  const client = await stand.client(server);
  const ids = await stand.start(client, "pair", EXECUTIONS);
  const gate = await closeEventGate(stand.database, "execution.cancelled");
  const asked = { action: "cancel", filter: { path: (await pathOf(ids[0] ?? "")) ?? "" } };
  const { status, body } = await client.call("POST", "/api/executions/bulk", asked);
  const { bulk_id, matched } = body as unknown as { bulk_id: string; matched: number };
  assert.deepEqual([status, matched], [202, EXECUTIONS]);
  // Some are begun, and nothing of them is written.
  await gate.reached();
  await server.end("SIGKILL");
  await gate.cutOff();
  await gate.open();
  await stand.server({}, server.port);
  const found = async () => (await client.call("GET", `/api/executions/bulk/${bulk_id}`)).body as unknown as Found;
  await until("the next server has worked it off", async () => (await found()).status === "completed");
  assert.deepEqual((await found()).counts, { matched: EXECUTIONS, done: EXECUTIONS, failed: 0, skipped: 0 });
  const rows = await stand.database.sql<{ status: string; count: number }[]>`
    select status, count(*)::int as count from flow.execution where execution_id = any(${ids}::bigint[]) group by status`;
  assert.deepEqual(
    rows.map(({ status: is, count }) => [is, count]),
    [["CANCELLED", EXECUTIONS]],
  );
  for (const id of ids) {
    const { body: log } = await client.call("GET", `/api/executions/${id}/events?event_type=execution.cancelled`);
    assert.equal(log.events.length, 1, `Execution ${id} was cancelled ${log.events.length} times`);
  }
});

const GATES = {
  "the starts are written": (database: Database) => closeEventGate(database, "playbook.initialized"),
  "they have started and that is not noted": (database: Database) =>
    closeGate(database, "update on flow.bulk_item", "new.state = 'done'"),
};
for (const [moment, gateAt] of Object.entries(GATES)) {
  test(`a server is killed amid a bulk operation as ${moment}: every execution is repeated, once`, async () => {
    const server = await stand.server();
    const client = await stand.client(server);
    const ids = await ended(client, 2 * SLICE + 1);
    const gate = await gateAt(stand.database);
    const bulkId = await repeat(client, ids);
    await gate.reached();
    await server.end("SIGKILL");
    await gate.cutOff();
    await gate.open();
    await stand.server({}, server.port);
    await assertRepeatedOnce(client, bulkId, ids);
  });
}

test("servers are killed again and again at any moment of a bulk operation: every execution is repeated, once", async () => {
  let server = await stand.server();
  const client = await stand.client(server);
  const ids = await ended(client, 10 * SLICE);
  const bulkId = await repeat(client, ids);
  let begun = 0;
  for (let kills = 0; kills < 3 && begun < ids.length; kills += 1) {
    const before = begun;
    // As soon as it has come to more of them: the moment within that is another one each time.
    await until("something more is begun", async () => (await begunOf(bulkId)) > before);
    await server.end("SIGKILL");
    begun = await begunOf(bulkId);
    server = await stand.server({}, server.port);
  }
  await assertRepeatedOnce(client, bulkId, ids);
});

const FIRE_GATES = {
  "a fire is written and its execution is not": (database: Database) =>
    closeEventGate(database, "playbook.initialized"),
  "executions have started and that is not noted of their fires": (database: Database) =>
    closeGate(database, "update on flow.trigger_fire", "new.status = 'started'"),
  "that is not noted of the items": (database: Database) =>
    closeGate(database, "update on flow.bulk_item", "new.state = 'done'"),
};
for (const [index, [moment, gateAt]] of Object.entries(FIRE_GATES).entries()) {
  test(`a server is killed amid a backfill as ${moment}: each time of the schedule starts one execution`, async () => {
    const server = await stand.server();
    const client = await stand.client(server);
    const path = `backfill/n${index}`;
    await client.register(`apiVersion: flow/v2
kind: Playbook
metadata: { name: n${index}, path: ${path} }
workflow: [{ step: start, tool: { kind: noop } }]
triggers: [{ name: daily, schedule: { cron: "@daily" } }]
`);
    const listed = (await client.call("GET", `/api/triggers?path=${path}`)).body as unknown as {
      triggers: { trigger_id: string }[];
    };
    const id = listed.triggers[0]?.trigger_id ?? "";
    const gate = await gateAt(stand.database);
    const asked = { from: "2026-01-01", to: "2026-02-01", max_active: 31 };
    const { status, body } = await client.call("POST", `/api/triggers/${id}/backfill`, asked);
    assert.equal(status, 202, JSON.stringify(body));
    const { bulk_id: bulkId } = body as unknown as { bulk_id: string };
    await gate.reached();
    await server.end("SIGKILL");
    await gate.cutOff();
    await gate.open();
    await stand.server({}, server.port);
    const found = async () => (await client.call("GET", `/api/executions/bulk/${bulkId}`)).body as unknown as Found;
    await until("the next server has worked it off", async () => (await found()).status === "completed");
    assert.deepEqual((await found()).counts, { matched: 31, done: 31, failed: 0, skipped: 0 });
    const [counted] = await stand.database.sql<{ executions: number; fires: number; items: number }[]>`
      select (select count(*)::int from flow.execution where started_id = ${id}) as executions,
        (select count(distinct execution_id)::int from flow.trigger_fire where trigger_id = ${id}) as fires,
        (select count(distinct new_execution_id)::int from flow.bulk_item where bulk_id = ${bulkId}) as items`;
    assert.deepEqual({ ...counted }, { executions: 31, fires: 31, items: 31 });
  });
}

/** Executions that were cancelled in their first step. */
async function ended(client: Client, count: number): Promise<string[]> {
  const ids = await stand.start(client, "pair", count);
  await Promise.all(ids.map((id) => client.call("POST", `/api/executions/${id}/cancel`, {})));
  return ids.sort((left, right) => Number(left) - Number(right));
}

async function repeat(client: Client, ids: readonly string[]): Promise<string> {
  const asked = { action: "rerun", filter: { execution_ids: ids }, options: { reason: "again" } };
  const { status, body } = await client.call("POST", "/api/executions/bulk", asked);
  assert.equal(status, 202, JSON.stringify(body));
  return (body as unknown as { bulk_id: string }).bulk_id;
}

/** How many of its items a server has come to. */
async function begunOf(bulkId: string): Promise<number> {
  const [row] = await stand.database.sql<{ count: number }[]>`
    select count(*)::int as count from flow.bulk_item where bulk_id = ${bulkId} and state <> 'pending'`;
  return row?.count ?? 0;
}

async function assertRepeatedOnce(client: Client, bulkId: string, ids: readonly string[]): Promise<void> {
  const found = async () => (await client.call("GET", `/api/executions/bulk/${bulkId}`)).body as unknown as Found;
  await until("servers have worked it off", async () => (await found()).status === "completed");
  assert.deepEqual((await found()).counts, { matched: ids.length, done: ids.length, failed: 0, skipped: 0 });
  const rows = await stand.database.sql<{ of: string; id: string; told: string | null; begins: number }[]>`
    select e.rerun_of as of, e.execution_id as id, i.new_execution_id as told,
      (select count(*)::int from flow.event v where v.execution_id = e.execution_id and v.event_type = 'playbook.initialized') as begins
    from flow.execution e left join flow.bulk_item i on i.bulk_id = ${bulkId} and i.execution_id = e.rerun_of
    where e.rerun_of = any(${[...ids]}::bigint[]) order by e.rerun_of`;
  assert.deepEqual(
    rows.map(({ of }) => of),
    ids,
  );
  for (const { id, told, begins } of rows) assert.deepEqual([told, begins], [id, 1]);
  const [audit] = await stand.database.sql<{ count: number; distinct: number }[]>`
    select count(*)::int as count, count(distinct resource)::int as distinct from auth.audit_log
    where action = 'execution.rerun' and result = 'allow' and detail ->> 'bulk_id' = ${bulkId}`;
  assert.deepEqual({ ...audit }, { count: ids.length, distinct: ids.length });
}

interface Found {
  status: string;
  counts: object;
}

async function pathOf(id: string): Promise<string | undefined> {
  const [row] = await stand.database.sql<
    { path: string }[]
  >`select path from flow.execution where execution_id = ${id}`;
  return row?.path;
}
