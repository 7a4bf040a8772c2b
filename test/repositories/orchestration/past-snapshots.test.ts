import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createPostgresExecutionStore } from "../../../src/adapters/postgres-execution-store.ts";
import type { ExecutionChange, ExecutionStore } from "../../../src/ports/execution-store.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { olderSnapshotsMax } from "../../../src/repositories/orchestration/past-snapshots.ts";
import { storeRows } from "../../support/database/store-rows.ts";
import { POLICY } from "../../support/database/store-setup.ts";
import { openServiceDatabase } from "../service-database.ts";

let database: Database;
let store: ExecutionStore;
const rows = storeRows();
before(async () => {
  database = await openServiceDatabase();
  store = createPostgresExecutionStore({ database, policy: POLICY, processor: "server" });
});

const snapshotOf = (change: ExecutionChange, state = "{}") => ({ eventId: change.lastEventId, format: 1, state });
const write = (...executions: ExecutionChange[]) => store.flush({ executions, batches: [] });

/** Numbers of the snapshots that an execution keeps. */
async function kept({ executionId }: ExecutionChange): Promise<number[]> {
  const found = await database.sql<{ number: number }[]>`
    select number from flow.past_snapshot where execution_id = ${executionId} order by number`;
  return found.map(({ number }) => number);
}

/** Writes an event with a snapshot, so often. */
async function grow(begun: ExecutionChange, snapshots: number, state?: string): Promise<ExecutionChange> {
  let last = begun;
  for (let count = 0; count < snapshots; count += 1) {
    const next = rows.follow(last);
    await write({ ...next, snapshot: snapshotOf(next, state) });
    last = next;
  }
  return last;
}

async function begun(): Promise<ExecutionChange> {
  const change = rows.begin();
  await write(change);
  return change;
}

/** The largest distance to the last snapshot before, in snapshots. */
const largestGap = (numbers: readonly number[], newest: number) =>
  Math.max(...[...numbers, newest].map((number, index) => number - (numbers[index - 1] ?? 0)));

test("all snapshots are kept up to 32; then the young ones, and of the older ones every second, fourth, eighth …", async () => {
  let change = await grow(await begun(), 32);
  const up = (first: number, last: number, by = 1) =>
    Array.from({ length: Math.floor((last - first) / by) + 1 }, (_, at) => first + at * by);
  assert.deepEqual(await kept(change), up(1, 32));
  change = await grow(change, 1);
  assert.deepEqual(await kept(change), [...up(2, 16, 2), ...up(18, 33)]);
  change = await grow(change, 95);
  assert.deepEqual(await kept(change), [...up(4, 112, 4), ...up(113, 128)]);
  for (const newest of [129, 200, 256, 257, 400]) {
    change = await grow(change, newest - (await kept(change)).at(-1)!);
    const numbers = await kept(change);
    assert.ok(numbers.length <= 48, `${numbers.length} of ${newest}`);
    assert.deepEqual(numbers.slice(-16), up(newest - 15, newest));
    assert.ok(largestGap(numbers, newest) <= newest / 16, `${largestGap(numbers, newest)} of ${newest}`);
  }
});

test("of large states fewer are kept", async () => {
  assert.deepEqual(
    [2, 512 * 1024, 512 * 1024 + 1, 4 * 1024 * 1024, 100 * 1024 * 1024].map((length) =>
      olderSnapshotsMax("x".repeat(length)),
    ),
    [32, 32, 31, 4, 2],
  );
  const large = `"${"x".repeat(8 * 1024 * 1024)}"`;
  const change = await grow(await begun(), 9, large);
  assert.deepEqual(await kept(change), [8, 9]);
});

test("executions of one flush are thinned each for itself; one that was decided on an older event keeps what it had", async () => {
  const [one, two] = [await grow(await begun(), 32), await grow(await begun(), 32)];
  const [next, stale] = [rows.follow(one), rows.follow(two)];
  const twoKept = await kept(two);
  await write(rows.follow(two));
  const { moved } = await write({ ...next, snapshot: snapshotOf(next) }, { ...stale, snapshot: snapshotOf(stale) });
  assert.deepEqual([...moved], [one.executionId]);
  assert.equal((await kept(one)).length, 24);
  assert.deepEqual(await kept(two), twoKept);
});

test("the newest snapshot is found where a server of an earlier version wrote it alone", async () => {
  const change = await begun();
  await database.sql`
    insert into flow.execution_snapshot (execution_id, event_id, format, state)
    values (${change.executionId}, ${change.lastEventId}, 1, '{"old":1}')`;
  assert.deepEqual(await store.snapshotUpTo(change.executionId, change.lastEventId, 1), {
    eventId: change.lastEventId,
    format: 1,
    state: '{"old":1}',
  });
});
