import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createPostgresExecutionStore } from "../../src/adapters/postgres-execution-store.ts";
import type { BatchChange, ExecutionChange, ExecutionStore } from "../../src/ports/execution-store.ts";
import type { Database } from "../../src/repositories/database/database.ts";
import { violatedConstraint } from "../../src/repositories/database/error-codes.ts";
import { findBatch } from "../../src/repositories/orchestration/batches.ts";
import { openServiceDatabase } from "../repositories/service-database.ts";
import { SHA256, storeRows } from "../support/database/store-rows.ts";
import { POLICY } from "../support/database/store-setup.ts";

// Batches are written with what they brought, end once, and are found again by the server that takes them over.

let database: Database;
let store: ExecutionStore;
const rows = storeRows();
before(async () => {
  database = await openServiceDatabase();
  store = createPostgresExecutionStore({ database, policy: POLICY, processor: "server-1" });
});

const write = (...executions: ExecutionChange[]) => store.flush({ executions, batches: [] });

async function begun(): Promise<ExecutionChange> {
  const change = rows.begin();
  await write(change);
  return change;
}

const accepted = (executionIds: string[], more: Partial<BatchChange> = {}): BatchChange => {
  const accept = { caller: "w1", idempotencyKey: null, bodySha256: SHA256, executionIds, eventIds: [7, 8] };
  return { requestId: String(rows.next()), accept, state: "accepted", commandsGenerated: 0, executionIds, ...more };
};

async function batchRow({ requestId }: BatchChange) {
  const [row] = await database.sql`
    select state, code, execution_ids, commands_generated from flow.batch where request_id = ${requestId}`;
  return row && { ...row };
}

test("a batch is written with its executions, and not at all when one of them was not", async () => {
  const [stale, sound] = [await begun(), await begun()];
  await write(rows.follow(stale));
  const both = accepted([sound.executionId, stale.executionId]);
  const one = accepted([sound.executionId]);
  await store.flush({ executions: [rows.follow(stale), rows.follow(sound)], batches: [both, one] });
  assert.equal(await batchRow(both), undefined);
  const written = { state: "accepted", code: null, execution_ids: [sound.executionId], commands_generated: 0 };
  assert.deepEqual(await batchRow(one), written);
});

test("a batch ends once", async () => {
  const change = await begun();
  const batch = accepted([change.executionId]);
  await store.flush({ executions: [rows.follow(change)], batches: [batch] });
  const { accept: _, ...rest } = batch;
  await store.flush({ executions: [], batches: [{ ...rest, state: "completed", commandsGenerated: 4 }] });
  const ended = { state: "completed", code: null, execution_ids: [change.executionId], commands_generated: 4 };
  assert.deepEqual(await batchRow(batch), ended);
  const failure = { ...rest, state: "failed" as const, code: "processing_error", message: "no" };
  await store.flush({ executions: [], batches: [failure] });
  assert.deepEqual(await batchRow(batch), ended);
});

test("a batch is known by the key of its caller, and the key may be used once", async () => {
  const change = await begun();
  const batch = accepted([change.executionId]);
  const accept = { ...batch.accept, idempotencyKey: "k" } as NonNullable<BatchChange["accept"]>;
  const next = rows.follow(change);
  await store.flush({ executions: [next], batches: [{ ...batch, accept }] });
  const known = await store.findBatch("w1", "k");
  assert.deepEqual([known?.requestId, known?.bodySha256, known?.eventIds], [batch.requestId, SHA256, [7, 8]]);
  assert.equal(await store.findBatch("w2", "k"), undefined);
  const twin = { ...batch, requestId: String(rows.next()), accept };
  const again = store.flush({ executions: [rows.follow(next)], batches: [twin] });
  await assert.rejects(again, (error) => violatedConstraint(error) === "batch_for_idempotency");
  assert.equal((await store.eventsAfter(change.executionId, 0, 10)).length, 2);
});

test("stale batches are taken over, each by one server, until its lease expires", async () => {
  const [other, third] = ["server-2", "server-3"].map((processor) =>
    createPostgresExecutionStore({ database, policy: POLICY, processor }),
  ) as [ExecutionStore, ExecutionStore];
  const change = await begun();
  const batches = [1, 2, 3, 4].map(() => accepted([change.executionId]));
  await database.sql`delete from flow.batch`;
  await store.flush({ executions: [rows.follow(change)], batches });
  const ids = (list: { requestId: string }[]) => list.map(({ requestId }) => requestId);
  assert.deepEqual(ids(await store.unprocessedBatches(60_000, 100)), [], "too young");
  const taken = await Promise.all([store.unprocessedBatches(0, 100), other.unprocessedBatches(0, 100)]);
  assert.deepEqual(ids(taken.flat()).sort(), batches.map(({ requestId }) => requestId).sort());
  assert.deepEqual(ids(await third.unprocessedBatches(0, 100)), [], "in processing");
  await database.sql`update flow.batch set lease_expires_at = now() where state = 'processing'`;
  const again = await third.unprocessedBatches(0, 2);
  assert.deepEqual(
    ids(again),
    batches.slice(0, 2).map(({ requestId }) => requestId),
    "the oldest first",
  );
  assert.deepEqual(again[0]?.eventIds, [7, 8]);
});

test("a batch that is taken over from a server that still lives says so; from a silent one, or one that signed off, it does not", async () => {
  const change = await begun();
  await database.sql`delete from flow.batch`;
  await store.flush({ executions: [rows.follow(change)], batches: [accepted([change.executionId])] });
  const by = (processor: string) => createPostgresExecutionStore({ database, policy: POLICY, processor });
  const held: (boolean | undefined)[] = [(await by("server-0").unprocessedBatches(0, 1))[0]?.isHeld];
  for (const [index, [status, seconds]] of (
    [
      ["ready", 29],
      ["ready", 31],
      ["offline", 1],
    ] as const
  ).entries()) {
    await database.sql`delete from flow.runtime where kind = 'server'`;
    await database.sql`insert into flow.runtime (runtime_id, kind, name, status, heartbeat_at)
      values (${900 + index}, 'server', ${`server-${index}`}, ${status}, now() - ${seconds}::float8 * interval '1 second')`;
    // A whole millisecond ago: the column rounds, and the next statement may come sooner.
    await database.sql`update flow.batch set lease_expires_at = now() - interval '1 millisecond'`;
    held.push((await by(`server-${index + 1}`).unprocessedBatches(0, 1))[0]?.isHeld);
  }
  assert.deepEqual(held, [undefined, true, undefined, undefined]);
});

test("a batch that its server could not go on with is given to that server again, and to no other while its lease lasts", async () => {
  const other = createPostgresExecutionStore({ database, policy: POLICY, processor: "server-2" });
  const change = await begun();
  await database.sql`delete from flow.batch`;
  const batch = accepted([change.executionId]);
  await store.flush({ executions: [rows.follow(change)], batches: [batch] });
  assert.equal((await store.unprocessedBatches(0, 100)).length, 1);
  assert.deepEqual(await store.unprocessedBatches(60_000, 100), [], "taken a moment ago");
  assert.deepEqual(await other.unprocessedBatches(0, 100), []);
  const [again] = await store.unprocessedBatches(0, 100);
  assert.equal(again?.requestId, batch.requestId);
});

test("a batch that failed is kept with its reason", async () => {
  await database.sql`delete from flow.batch`;
  const change = await begun();
  const batch: BatchChange = accepted([change.executionId]);
  await store.flush({ executions: [rows.follow(change)], batches: [batch] });
  const { accept: _, ...first } = batch;
  const failure = { ...first, state: "failed" as const, code: "processing_error", message: "no" };
  await store.flush({ executions: [], batches: [failure] });
  const row = await findBatch(database, first.requestId);
  assert.deepEqual([row?.state, row?.code, row?.message, row?.caller], ["failed", "processing_error", "no", "w1"]);
  assert.equal(await findBatch(database, "9"), undefined);
});
