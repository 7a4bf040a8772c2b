import assert from "node:assert/strict";
import { test } from "node:test";
import { firstIdAt } from "../../../src/platform/system/ids.ts";
import { type Database, openDatabase } from "../../../src/repositories/database/database.ts";
import { ensureEventPartitions } from "../../../src/repositories/executions/event-partitions.ts";
import { createServiceDatabase } from "../../support/database/postgres.ts";
import { openServiceDatabase } from "../service-database.ts";

const NOVEMBER = new Date("2026-11-21T00:00:00Z");

/** Writes one event with the given id, of an execution that began with the id before it. */
async function writeEvent({ sql }: Database, eventId: number): Promise<void> {
  await sql`
    insert into flow.event_log (event_id, execution_id, catalog_id, event_type, node_id, node_name, node_type, status)
    values (${eventId}, ${eventId - 1}, 1, 'playbook.initialized', 'a/b', 'a/b', 'playbook', 'RUNNING')`;
}

async function placeOf({ sql }: Database, eventId: number): Promise<string | undefined> {
  const [row] = await sql<{ place: string }[]>`
    select tableoid::regclass::text as place from flow.event_log where event_id = ${eventId}`;
  return row?.place;
}

test("partitions are made for this month and the next two, once, over the end of a year too", async () => {
  const database = await openServiceDatabase();
  assert.deepEqual(await ensureEventPartitions(database, NOVEMBER), [
    "event_2026_11",
    "event_2026_12",
    "event_2027_01",
  ]);
  assert.deepEqual(await ensureEventPartitions(database, NOVEMBER), []);
  assert.deepEqual(await ensureEventPartitions(database, new Date("2026-12-31T23:59:59Z")), ["event_2027_02"]);
});

test("without a date the database's clock decides: an event of now has its month's partition", async () => {
  const database = await openServiceDatabase();
  const made = await ensureEventPartitions(database);
  const [row] = await database.sql<[{ now: Date; month: string }]>`
    select now() as now, to_char(now() at time zone 'UTC', '"event_"YYYY_MM') as month`;
  await writeEvent(database, firstIdAt(row.now.getTime()));
  assert.equal(await placeOf(database, firstIdAt(row.now.getTime())), `flow.${row.month}`);
  assert.equal(made[0], row.month);
});

test("the first and the last id of a month are in its partition", async () => {
  const database = await openServiceDatabase();
  await ensureEventPartitions(database, NOVEMBER);
  const december = firstIdAt(Date.UTC(2026, 11, 1));
  for (const id of [december - 1, december]) await writeEvent(database, id);
  assert.equal(await placeOf(database, december - 1), "flow.event_2026_11");
  assert.equal(await placeOf(database, december), "flow.event_2026_12");
});

test("an event of a month without a partition is kept, and moves when its partition is made", async () => {
  const database = await openServiceDatabase();
  const [inside, outside] = [firstIdAt(NOVEMBER.getTime()), firstIdAt(Date.UTC(2027, 5, 1))];
  await writeEvent(database, inside);
  await writeEvent(database, outside);
  assert.equal(await placeOf(database, inside), "flow.event_default");
  await ensureEventPartitions(database, NOVEMBER);
  assert.equal(await placeOf(database, inside), "flow.event_2026_11");
  assert.equal(await placeOf(database, outside), "flow.event_default");
});

test("a new partition keeps the log's constraints: no event twice, none before its execution", async () => {
  const database = await openServiceDatabase();
  await ensureEventPartitions(database, NOVEMBER);
  const id = firstIdAt(NOVEMBER.getTime());
  await writeEvent(database, id);
  await assert.rejects(writeEvent(database, id), { code: "23505" });
  const misplaced = database.sql`
    insert into flow.event_log (event_id, execution_id, catalog_id, event_type, node_id, node_name, node_type, status)
    values (${id}, ${id + 1}, 1, 'x', 'a', 'a', 'step', 'RUNNING')`;
  await assert.rejects(misplaced, { code: "23514", constraint_name: "event_after_execution" });
});

test("several servers may make them at the same time", async () => {
  const { url } = await createServiceDatabase();
  const servers = Array.from({ length: 4 }, () => openDatabase(url, { connectionsMax: 1 }));
  try {
    const made = await Promise.all(servers.map((server) => ensureEventPartitions(server, NOVEMBER)));
    assert.equal(made.flat().length, 3);
  } finally {
    await Promise.all(servers.map((server) => server.close()));
  }
});

test("events are written to other months while a partition is being made", async () => {
  const database = await openServiceDatabase();
  await ensureEventPartitions(database, NOVEMBER);
  const writing = await database.sql.reserve();
  const id = firstIdAt(NOVEMBER.getTime());
  await writing`begin`;
  await writing`
    insert into flow.event_log (event_id, execution_id, catalog_id, event_type, node_id, node_name, node_type, status)
    values (${id}, ${id - 1}, 1, 'x', 'a', 'a', 'step', 'RUNNING')`;
  // Were the whole log locked, this would fail after its limit.
  assert.deepEqual(await ensureEventPartitions(database, new Date("2026-12-01T00:00:00Z")), ["event_2027_02"]);
  await writing`commit`;
  writing.release();
  assert.equal(await placeOf(database, id), "flow.event_2026_11");
});

test("a page of an execution's events reads its own month and those after, by the key", async () => {
  const database = await openServiceDatabase();
  await ensureEventPartitions(database, NOVEMBER);
  const execution = firstIdAt(Date.UTC(2026, 11, 1));
  const plan = await database.sql.unsafe(
    `explain (costs off) select * from flow.event_log where execution_id = ${execution} and event_id > ${execution}
     order by event_id limit 100`,
  );
  const text = plan.map((row) => String(row["QUERY PLAN"])).join("\n");
  assert.ok(!text.includes("event_2026_11"), text);
  assert.ok(text.includes("event_2026_12_pkey"), text);
});
