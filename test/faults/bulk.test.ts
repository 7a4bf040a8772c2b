import assert from "node:assert/strict";
import { test } from "node:test";
import { closeEventGate } from "./support/event-gate.ts";
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
