import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { ExecutionChange } from "../../../src/ports/execution-store.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { findLeftWork } from "../../../src/repositories/orchestration/left-work.ts";
import { takeDueWaits } from "../../../src/repositories/orchestration/waits.ts";
import { type StoreSetup, storeSetup } from "../../support/database/store-setup.ts";
import { openServiceDatabase } from "../service-database.ts";

// Parked commands: written with their execution, taken by one server at a time.

let database: Database;
let setup: StoreSetup;
before(async () => {
  database = await openServiceDatabase();
  setup = storeSetup(database);
});

/** A command that is parked until as many seconds from now; its execution goes on with `more`. */
async function parked(seconds: number | null): Promise<{ commandId: string; change: ExecutionChange }> {
  const { commandId, change } = await setup.command();
  await goOn(change, { parked: [{ commandId, kind: "timer", dueAt: seconds && Date.now() + seconds * 1_000 }] });
  return { commandId, change };
}

/** Writes a further change of an execution; true if it was written. */
async function goOn(change: ExecutionChange, more: Partial<ExecutionChange>): Promise<boolean> {
  const { executionId, lastEventId: expectedEventId } = change;
  const lastEventId = expectedEventId + 1;
  const { start: _start, ...rest } = change;
  const next = { ...rest, expectedEventId, lastEventId, issued: [], events: [], ...more };
  const { moved } = await setup.store.flush({ executions: [next], batches: [] });
  if (moved.has(executionId)) change.lastEventId = lastEventId;
  return moved.has(executionId);
}

const clean = () => database.sql`delete from flow.wait`;

test("what is due is taken once, the most overdue first, and again after the time for which it was taken", async () => {
  await clean();
  const late = await parked(-10);
  const later = await parked(-20);
  await parked(60);
  await parked(null);
  assert.equal((await findLeftWork(database)).waits, true);
  const taken = await takeDueWaits(database, 60_000, 10);
  assert.deepEqual(
    taken.map(({ commandId, executionId }) => [commandId, executionId]),
    [later, late].map(({ commandId, change }) => [commandId, change.executionId]),
  );
  assert.deepEqual(await takeDueWaits(database, 60_000, 10), []);
  await database.sql`update flow.wait set taken_until = now()`;
  assert.deepEqual(
    (await takeDueWaits(database, 60_000, 1)).map(({ commandId }) => commandId),
    [later.commandId],
  );
});

test("two servers at once take different ones", async () => {
  await clean();
  const all = await Promise.all(Array.from({ length: 6 }, (_, index) => parked(-index - 1)));
  const taken = await Promise.all([1, 2, 3].map(() => takeDueWaits(database, 60_000, 3)));
  const ids = taken.flat().map(({ commandId }) => commandId);
  assert.equal(new Set(ids).size, ids.length);
  const rest = await takeDueWaits(database, 60_000, 10);
  assert.equal(ids.length + rest.length, all.length);
});

test("one that is parked anew is free to be taken; one that waits no longer is gone", async () => {
  await clean();
  const { commandId, change } = await parked(-1);
  assert.equal((await takeDueWaits(database, 60_000, 10)).length, 1);
  const dueAt = Date.now() - 500;
  assert.ok(await goOn(change, { parked: [{ commandId, kind: "timer", dueAt }] }));
  const [again] = await takeDueWaits(database, 60_000, 10);
  assert.deepEqual([again?.commandId, again?.executionId, again?.dueAt], [commandId, change.executionId, dueAt]);
  assert.ok(Math.abs((again?.takenAt ?? 0) - Date.now()) < 60_000);
  assert.ok(await goOn(change, { unparked: [commandId] }));
  assert.deepEqual([...(await database.sql`select command_id from flow.wait`)], []);
  assert.equal((await findLeftWork(database)).waits, false);
});

test("a change that is decided on another event changes no wait", async () => {
  await clean();
  const { commandId, change } = await parked(-1);
  const stale = { ...change, lastEventId: change.lastEventId + 7 };
  assert.equal(await goOn(stale, { unparked: [commandId] }), false);
  assert.equal((await takeDueWaits(database, 60_000, 10)).length, 1);
});
