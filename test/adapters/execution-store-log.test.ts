import assert from "node:assert/strict";
import { before, test } from "node:test";
import fc from "fast-check";
import { createPostgresExecutionStore } from "../../src/adapters/postgres-execution-store.ts";
import type { ExecutionChange, ExecutionStore } from "../../src/ports/execution-store.ts";
import type { Database } from "../../src/repositories/database/database.ts";
import { ensureEventPartitions } from "../../src/repositories/executions/event-partitions.ts";
import { type EventRecord, fromRecord } from "../../src/schema/rules/event-record.ts";
import { openServiceDatabase } from "../repositories/service-database.ts";
import { recordsOf, storeRows } from "../support/database/store-rows.ts";
import { POLICY } from "../support/database/store-setup.ts";
import { anyEvent, eventTypes } from "../support/engine/any-event.ts";

// Events go into the log and come back the same, to the byte of their documents. A failed property prints its seed and path.

let database: Database;
let store: ExecutionStore;
const rows = storeRows();
before(async () => {
  database = await openServiceDatabase();
  await ensureEventPartitions(database);
  store = createPostgresExecutionStore({ database, policy: POLICY, processor: "server-1" });
});

const write = (...executions: ExecutionChange[]) => store.flush({ executions, batches: [] });

async function begun(): Promise<ExecutionChange> {
  const change = rows.begin();
  await write(change);
  return change;
}

test("events come in pages, in order", async () => {
  const change = await begun();
  const next = rows.follow(
    change,
    {},
    [1, 2, 3].map((at) => ({ type: "workflow.initialized", at, step: `s${at}` })),
  );
  await write(next);
  const page = await store.eventsAfter(change.executionId, change.lastEventId, 2);
  assert.deepEqual(page, recordsOf(next).slice(0, 2));
});

test("logs that are asked for together are each read from their own place", async () => {
  const starts = await Promise.all(Array.from({ length: 40 }, begun));
  const nexts = starts.map((start, index) =>
    rows.follow(
      start,
      {},
      Array.from({ length: 1 + (index % 3) }, (_, at) => ({ type: "workflow.initialized", at, step: `s${at}` })),
    ),
  );
  await write(...nexts);
  const asked = nexts.flatMap((next, index) => [
    { next, after: 0, limit: 10, expected: [...recordsOf(starts[index] as ExecutionChange), ...recordsOf(next)] },
    { next, after: next.expectedEventId ?? 0, limit: 10, expected: recordsOf(next) },
    { next, after: next.expectedEventId ?? 0, limit: 2, expected: recordsOf(next).slice(0, 2) },
    { next, after: next.lastEventId, limit: 10, expected: [] },
  ]);
  const read = await Promise.all(
    asked.map(({ next, after, limit }) => store.eventsAfter(next.executionId, after, limit)),
  );
  assert.deepEqual(json(read), json(asked.map(({ expected }) => expected)));
  assert.deepEqual(await Promise.all([1, 2, 3].map((id) => store.eventsAfter(String(id), 0, 10))), [[], [], []]);
});

test("executions that are asked for together are each found, those that are not there are not", async () => {
  const starts = await Promise.all(Array.from({ length: 40 }, begun));
  const ids = starts.flatMap(({ executionId }) => [executionId, String(Number(executionId) + 1), executionId]);
  const found = await Promise.all(ids.map((id) => store.find(id)));
  const known = new Set(starts.map(({ executionId }) => executionId));
  assert.deepEqual(
    found.map((one) => one?.executionId),
    ids.map((id) => (known.has(id) ? id : undefined)),
  );
});

test("a log that cannot be read keeps none of those from being read that are asked for with it", async () => {
  const starts = await Promise.all([1, 2, 3, 4].map(begun));
  const [, damaged] = starts;
  await database.sql`
    update flow.event_log set body = '[{' where execution_id = ${damaged?.executionId ?? ""} and body is not null`;
  const read = await Promise.allSettled(starts.map(({ executionId }) => store.eventsAfter(executionId, 0, 10)));
  assert.deepEqual(
    read.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled", "fulfilled"],
  );
});

for (const type of eventTypes()) {
  test(`any ${type} is read back from the log as it went in`, async () => {
    let last = await begun();
    const property = fc.asyncProperty(fc.array(anyEvent(type, 1_767_225_600_123), { minLength: 1 }), async (events) => {
      const next = rows.follow(last, {}, events);
      last = next;
      assert.deepEqual([...(await write(next)).moved], [next.executionId]);
      const read = await store.eventsAfter(next.executionId, next.expectedEventId ?? 0, 1_000);
      assert.deepEqual(json(read), json(recordsOf(next)));
      assert.deepEqual(read.map(documents), recordsOf(next).map(documents));
      assert.deepEqual(json(read.map(fromRecord)), json(events));
    });
    await fc.assert(property, { numRuns: 15 });
  });
}

/** As text: the order of keys counts. */
const documents = (record: EventRecord) => JSON.stringify([record["result"], record["meta"], record["error"]]);
const json = (value: unknown) => JSON.parse(JSON.stringify(value));

test("a text that PostgreSQL cannot hold does not fail other changes: U+0000 becomes U+FFFD", async () => {
  const change = await begun();
  await write(rows.follow(change, {}, [{ type: "workflow.initialized", at: 1, step: "a\u0000b" }]));
  const [, event] = await store.eventsAfter(change.executionId, 0, 10);
  assert.equal(event?.node_id, "a\ufffdb");
});
