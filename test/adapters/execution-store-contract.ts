import assert from "node:assert/strict";
import { describe } from "node:test";
import type { BatchChange, Snapshot } from "../../src/ports/execution-store.ts";
import { recordsOf, SHA256 } from "../support/database/store-rows.ts";
import { type Bench, type Check, checkOn, type StoreUnderTest } from "./execution-store-bench.ts";
import { exerciseClaims, exerciseCommands } from "./execution-store-contract-commands.ts";

/** What every store of executions does. `open` gives an empty one. */
export function exerciseExecutionStore(name: string, open: () => Promise<StoreUnderTest>): void {
  const check = checkOn(open);
  describe(name, () => {
    exerciseExecutions(check);
    exerciseKeys(check);
    exerciseBatches(check);
    exerciseCommands(check);
    exerciseClaims(check);
  });
}

const snapshotAt = (eventId: number, format = 1): Snapshot => ({ eventId, format, state: `{"format":${format}}` });

function exerciseExecutions(check: Check): void {
  check("an execution that begins is found as it was written, with its events", async ({ store, rows, write }) => {
    const parent = rows.begin();
    const of = { parentExecutionId: parent.executionId, rootExecutionId: parent.executionId, parentStep: "call" };
    const change = rows.begin(of);
    const snapshot = snapshotAt(change.lastEventId);
    await write(parent, { ...change, snapshot });
    const { executionId, lastEventId } = change;
    const entry = { catalogId: "1", path: "jobs/nightly", version: 3 };
    const { parentExecutionId, rootExecutionId } = of;
    const expected = { executionId, ...entry, status: "RUNNING", lastEventId, parentExecutionId, rootExecutionId };
    assert.deepEqual(await store.find(executionId), { ...expected, startedBy: null, snapshot });
    assert.deepEqual(await store.eventsAfter(executionId, 0, 10), recordsOf(change));
  });

  check("an execution that nobody started is not there", async ({ store, rows, write }) => {
    assert.equal(await store.find("1"), undefined);
    assert.deepEqual(await store.eventsAfter("1", 0, 10), []);
    assert.equal((await write(rows.follow(rows.begin()))).moved.size, 0);
  });

  check("events come in order, in pages", async ({ store, rows, write, begun }) => {
    const change = await begun();
    const steps = ["a", "b", "c"].map((step) => ({ type: "workflow.initialized", at: 1, step }) as const);
    const next = rows.follow(change, {}, steps);
    await write(next);
    assert.deepEqual(await store.eventsAfter(change.executionId, change.lastEventId, 2), recordsOf(next).slice(0, 2));
    const rest = await store.eventsAfter(change.executionId, next.events[1]?.eventId ?? 0, 2);
    assert.deepEqual(rest, recordsOf(next).slice(2));
    assert.deepEqual(await store.eventsAfter(change.executionId, next.lastEventId, 2), []);
  });

  check("a change that was decided on an older event is left out whole, the others are written", async (bench) => {
    const { store, rows, write, begun } = bench;
    const [stale, sound] = [await begun(), await begun()];
    const newer = rows.follow(stale);
    await write(newer);
    const command = rows.issue(stale);
    const snapshot = snapshotAt(stale.lastEventId + 1);
    const late = rows.follow(stale, { status: "FAILED", progress: 99, issued: [command], snapshot });
    assert.deepEqual([...(await write(late, rows.follow(sound))).moved], [sound.executionId]);
    const found = await store.find(stale.executionId);
    assert.deepEqual([found?.status, found?.lastEventId, found?.snapshot], ["RUNNING", newer.lastEventId, null]);
    assert.deepEqual(await bench.eventIds(stale.executionId), [stale.lastEventId, newer.lastEventId]);
    assert.equal(await bench.commandRow(command.commandId), undefined);
    assert.equal((await bench.eventIds(sound.executionId)).length, 2);
  });

  check("an execution whose id is taken does not begin again", async ({ rows, write, begun, eventIds }) => {
    const change = await begun();
    const twin = rows.begin({ rootExecutionId: change.executionId });
    assert.equal((await write({ ...twin, executionId: change.executionId })).moved.size, 0);
    assert.deepEqual(await eventIds(change.executionId), [change.lastEventId]);
  });

  check("an execution that ended stays as it ended; late events move its place in the log", async (bench) => {
    const { store, rows, write, begun } = bench;
    const change = await begun();
    const end = rows.follow(change, { status: "COMPLETED", progress: 100, result: { z: 1, a: null } });
    await write(end);
    const error = { kind: "policy", code: "LATE", message: "no", retryable: false } as const;
    const late = rows.follow(end, { status: "FAILED", progress: 10, result: 7, error });
    assert.equal((await write(late)).moved.size, 1);
    const { status, progress, result } = (await bench.executionRow(change.executionId)) ?? {};
    assert.deepEqual([status, progress, JSON.stringify(result)], ["COMPLETED", 100, '{"z":1,"a":null}']);
    assert.equal((await store.find(change.executionId))?.lastEventId, late.lastEventId);
    assert.equal((await bench.eventIds(change.executionId)).length, 3);
  });

  check("an execution may fail with an error, and end with null as its result", async (bench) => {
    const [failed, done] = [await bench.begun(), await bench.begun()];
    const error = { kind: "timeout", code: "TIMEOUT", message: "too late", retryable: false } as const;
    const { rows, write, executionRow } = bench;
    await write(
      rows.follow(failed, { status: "FAILED", error }),
      rows.follow(done, { status: "COMPLETED", result: null }),
    );
    assert.deepEqual((await executionRow(failed.executionId))?.error, error);
    assert.deepEqual((await executionRow(done.executionId))?.result, null);
  });

  check("a snapshot is replaced by a newer one only", async ({ store, rows, write, begun }) => {
    const change = await begun();
    const next = rows.follow(change);
    const newer = snapshotAt(next.lastEventId, 2);
    await write({ ...next, snapshot: newer });
    const last = rows.follow(next, { snapshot: snapshotAt(change.lastEventId) });
    await write(last);
    assert.deepEqual((await store.find(change.executionId))?.snapshot, newer);
    await write(rows.follow(last));
    assert.deepEqual((await store.find(change.executionId))?.snapshot, newer, "a change without one keeps it");
  });

  check("of the snapshots up to an event the newest is found, in the format asked for", async (bench) => {
    const { store, rows, write, begun } = bench;
    const change = await begun();
    const { executionId } = change;
    assert.equal(await store.snapshotUpTo(executionId, change.lastEventId, 1), null);
    const events = [change];
    for (const format of [1, 1, 2]) {
      const next = rows.follow(events.at(-1) ?? change);
      await write({ ...next, snapshot: snapshotAt(next.lastEventId, format) });
      events.push(next);
    }
    const [, first = 0, second = 0, third = 0] = events.map(({ lastEventId }) => lastEventId);
    const at = async (eventId: number, format = 1) => (await store.snapshotUpTo(executionId, eventId, format))?.eventId;
    assert.deepEqual(await store.snapshotUpTo(executionId, second, 1), snapshotAt(second));
    assert.deepEqual([await at(first - 1), await at(first), await at(second - 1)], [undefined, first, first]);
    assert.deepEqual([await at(third), await at(third, 2), await at(second, 2)], [second, third, undefined]);
    assert.equal(await store.snapshotUpTo("1", third, 1), null);
  });

  check("what was written stays, whatever becomes of the change's objects", async ({ store, rows, write }) => {
    const change = rows.begin();
    const command = rows.issue(change);
    const kept = structuredClone({ events: recordsOf(change), body: command.body });
    await write({ ...change, issued: [command] });
    for (const { event } of change.events) event.at = 0;
    command.body.step = "changed";
    assert.deepEqual(await store.eventsAfter(change.executionId, 0, 10), kept.events);
    assert.deepEqual([...(await store.commandBodies([command.commandId]))], [kept.body]);
  });

  check("nothing at all may be written", async ({ write }) => {
    assert.equal((await write()).moved.size, 0);
  });

  check("an execution past its deadline is overdue until it ends", async ({ store, rows, write, begun }) => {
    await begun();
    const late = [rows.begin({ deadlineAt: 1_000 }), rows.begin({ deadlineAt: 2_000 })] as const;
    await write(...late, rows.begin({ deadlineAt: Date.now() + 3_600_000_000 }));
    const overdue = late.map(({ executionId }) => executionId);
    assert.deepEqual((await store.overdueExecutions(10)).sort(), overdue);
    assert.equal((await store.overdueExecutions(1)).length, 1);
    await write(rows.follow(late[0], { status: "CANCELLED" }));
    assert.deepEqual(await store.overdueExecutions(10), overdue.slice(1));
  });

  check("ids come in blocks, each ahead of all before, for many at once too", async ({ store }) => {
    const first = await store.reserveIds(100);
    const blocks = await Promise.all([10, 10, 10].map((count) => store.reserveIds(count)));
    const sorted = [first, ...blocks.sort((left, right) => left - right)];
    for (const [index, last] of sorted.slice(1).entries()) assert.ok(last >= (sorted[index] ?? 0) + 10, String(sorted));
  });
}

function exerciseKeys(check: Check): void {
  const idempotency = { caller: "c", key: "k", bodySha256: SHA256 };

  check("a start is known by the key of its caller, with what became of it", async ({ store, rows, write }) => {
    const change = rows.begin({ idempotency });
    await write(change, rows.begin({ idempotency: { ...idempotency, caller: "another" } }));
    const known = { executionId: change.executionId, bodySha256: SHA256, status: "RUNNING" };
    assert.deepEqual(await store.findStart("c", "k"), known);
    await write(rows.follow(change, { status: "CANCELLED" }));
    assert.deepEqual(await store.findStart("c", "k"), { ...known, status: "CANCELLED" });
    assert.equal(await store.findStart("c", "other"), undefined);
    assert.equal(await store.findStart("nobody", "k"), undefined);
  });

  check("a start under a key that is taken refuses everything beside it too", async (bench) => {
    const { store, rows, write, begun } = bench;
    const other = await begun();
    const first = rows.begin({ idempotency });
    await write(first);
    const again = rows.begin({ idempotency });
    await assert.rejects(write(rows.follow(other), again), bench.isDuplicateKey);
    assert.equal(await store.find(again.executionId), undefined);
    assert.deepEqual(await bench.eventIds(other.executionId), [other.lastEventId]);
    assert.equal((await store.findStart("c", "k"))?.executionId, first.executionId);
  });

  check("two starts under one key at once are refused", async ({ store, rows, write, isDuplicateKey }) => {
    await assert.rejects(write(rows.begin({ idempotency }), rows.begin({ idempotency })), isDuplicateKey);
    assert.equal(await store.findStart("c", "k"), undefined);
  });
}

type Accepted = BatchChange & { accept: NonNullable<BatchChange["accept"]> };

function exerciseBatches(check: Check): void {
  const accepted = ({ rows }: Bench, executionIds: string[], key: string | null = null): Accepted => {
    const accept = { caller: "w1", idempotencyKey: key, bodySha256: SHA256, executionIds, eventIds: [7, 8] };
    return { requestId: String(rows.next()), accept, state: "accepted", commandsGenerated: 0, executionIds };
  };
  const later = ({ accept: _, ...rest }: Accepted, more: Partial<BatchChange>): BatchChange => ({ ...rest, ...more });

  check("a batch is written with all of its executions, or not at all", async (bench) => {
    const { store, rows, write, begun } = bench;
    const [stale, sound, absent] = [await begun(), await begun(), await begun()];
    await write(rows.follow(stale));
    const both = accepted(bench, [sound.executionId, stale.executionId]);
    const one = accepted(bench, [sound.executionId]);
    const beside = accepted(bench, [absent.executionId]);
    await store.flush({ executions: [rows.follow(stale), rows.follow(sound)], batches: [both, one, beside] });
    assert.equal(await bench.batchRow(both.requestId), undefined);
    const written = { state: "accepted", code: null, commandsGenerated: 0 };
    assert.deepEqual(await bench.batchRow(one.requestId), written);
    assert.deepEqual(await bench.batchRow(beside.requestId), written, "the flush does not change its execution");
  });

  check("a batch ends once, and only with its executions", async (bench) => {
    const { store, rows, write, begun } = bench;
    const change = await begun();
    const batch = accepted(bench, [change.executionId]);
    const next = rows.follow(change);
    await store.flush({ executions: [next], batches: [batch] });
    await write(rows.follow(next));
    const completed = later(batch, { state: "completed", commandsGenerated: 4 });
    await store.flush({ executions: [rows.follow(next)], batches: [completed] });
    assert.equal((await bench.batchRow(batch.requestId))?.state, "accepted");
    await store.flush({ executions: [], batches: [completed] });
    const failed = later(batch, { state: "failed", code: "processing_error", message: "no" });
    await store.flush({ executions: [], batches: [failed] });
    assert.deepEqual(await bench.batchRow(batch.requestId), { state: "completed", code: null, commandsGenerated: 4 });
  });

  check("a batch may begin and end in one flush, and may fail", async (bench) => {
    const change = await bench.begun();
    const { store, rows, batchRow } = bench;
    const [done, failing] = [accepted(bench, [change.executionId]), accepted(bench, [change.executionId])];
    const ended = { ...done, state: "completed", commandsGenerated: 2 } as const;
    await store.flush({ executions: [rows.follow(change)], batches: [ended, failing] });
    assert.deepEqual(await batchRow(done.requestId), { state: "completed", code: null, commandsGenerated: 2 });
    const failed = later(failing, { state: "failed", code: "processing_timeout", message: "no", executionIds: [] });
    await store.flush({ executions: [], batches: [failed] });
    const { state, code } = (await batchRow(failing.requestId)) ?? {};
    assert.deepEqual([state, code], ["failed", "processing_timeout"]);
  });

  check("a batch is known by the key of its caller, which may be used once", async (bench) => {
    const { store, rows } = bench;
    const change = await bench.begun();
    const next = rows.follow(change);
    const batch = accepted(bench, [change.executionId], "k");
    await store.flush({ executions: [next], batches: [batch] });
    const known = await store.findBatch("w1", "k");
    assert.deepEqual([known?.requestId, known?.bodySha256, known?.eventIds], [batch.requestId, SHA256, [7, 8]]);
    await store.flush({ executions: [], batches: [later(batch, { state: "completed", commandsGenerated: 3 })] });
    assert.equal((await store.findBatch("w1", "k"))?.commandsGenerated, 3);
    assert.equal(await store.findBatch("w2", "k"), undefined);
    const twin = accepted(bench, [change.executionId], "k");
    const again = store.flush({ executions: [rows.follow(next)], batches: [twin] });
    await assert.rejects(again, bench.isDuplicateKey);
    assert.equal((await bench.eventIds(change.executionId)).length, 2);
    assert.equal(await bench.batchRow(twin.requestId), undefined);
  });

  check("batches that were left are taken over once, the oldest first; young and ended ones are not", async (bench) => {
    const { store } = bench;
    const { executionId } = await bench.begun();
    const batch = () => accepted(bench, [executionId]);
    const [first, second, third, young, ended] = [batch(), batch(), batch(), batch(), batch()];
    await store.flush({ executions: [], batches: [third, young, ended, second, first] });
    await store.flush({ executions: [], batches: [later(ended, { state: "completed" })] });
    for (const { requestId } of [first, second, third, ended]) await bench.leaveBatch(requestId);
    const told = ({ requestId }: Accepted) => ({ requestId, executionIds: [executionId], eventIds: [7, 8] });
    assert.deepEqual(await store.unprocessedBatches(60_000, 2), [told(first), told(second)]);
    assert.deepEqual(await store.unprocessedBatches(60_000, 2), [told(third)]);
    assert.deepEqual(await store.unprocessedBatches(60_000, 2), []);
    await store.flush({ executions: [], batches: [later(first, { state: "completed" })] });
    assert.equal((await bench.batchRow(first.requestId))?.state, "completed", "who took it ends it");
  });
}
