import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import type { Notice } from "../../../src/schema/words/notice.ts";
import { createReaper, type Reaper, type Swept } from "../../../src/services/workers/reaper.ts";
import { openServiceDatabase } from "../../repositories/service-database.ts";
import { POLICY, type StoreSetup, storeSetup } from "../../support/database/store-setup.ts";

// The reaper publishes notices, and workers that receive them may claim. It changes nothing itself.

let database: Database;
let setup: StoreSetup;
before(async () => {
  database = await openServiceDatabase();
  setup = storeSetup(database);
});

function reaperOf(
  holder: string,
  maxPerRun = 100,
  on = database,
): { reaper: Reaper; told: string[][]; swept: Swept[] } {
  const told: string[][] = [];
  const swept: Swept[] = [];
  const publish = (notice: Notice) => {
    if (notice.kind === "commands") told.push(notice.commandIds);
  };
  const policy = { ...POLICY, pendingMs: 60_000 };
  const onSwept = (found: Swept) => void swept.push(found);
  const deps = {
    database: on,
    broker: { publish },
    holder,
    policy,
    maxPerRun,
    intervalMs: 60_000,
    onSwept,
    now: () => 0,
  };
  return { reaper: createReaper(deps), told, swept };
}

const statusOf = async (commandId: string) => {
  const [row] = await database.sql<{ status: string; attempt: number }[]>`
    select status, attempt from flow.command where command_id = ${commandId}`;
  return row;
};

test("what a missing worker held is published and left as it is", async () => {
  const commandId = await setup.held("gone", { claimedSeconds: -60 });
  const before = await statusOf(commandId);
  const { reaper, told, swept } = reaperOf("server-1");
  assert.deepEqual(await reaper.sweep(), { pending: 0, worker: 1, timeout: 0 });
  assert.deepEqual(told, [[commandId]]);
  assert.deepEqual(swept, [{ pending: 0, worker: 1, timeout: 0 }]);
  assert.deepEqual(await statusOf(commandId), before);
  await reaper.release();
});

test("lost commands are published before waiting ones, however many of those there are, and at once", async () => {
  const own = await openServiceDatabase();
  const { command, held } = storeSetup(own);
  const waiting: string[] = [];
  for (let count = 0; count < 30; count += 1) waiting.push((await command()).commandId);
  await own.sql`update flow.command set created_at = now() - interval '1 hour'`;
  const lost: string[] = [];
  for (let count = 0; count < 25; count += 1) lost.push(await held("gone", { leaseSeconds: -1 }));
  const { reaper, told } = reaperOf("server-1", 10, own);
  for (const behind of [true, true, false]) {
    await reaper.sweep();
    assert.equal(reaper.isBehind(), behind);
  }
  const all = told.flat();
  for (const id of lost) assert.ok(all.includes(id), `${id} was not told of`);
  // Those that wait have a tenth of each sweep, and go on where they were.
  assert.deepEqual(
    all.filter((id) => waiting.includes(id)),
    waiting.slice(0, 1 + 1 + 3),
  );
  await reaper.release();
});

test("of two servers one sweeps; the other does when the first has let go", async () => {
  const first = reaperOf("server-1");
  const second = reaperOf("server-2");
  assert.notEqual(await first.reaper.sweep(), undefined);
  assert.equal(await second.reaper.sweep(), undefined);
  assert.deepEqual(second.told, []);
  assert.deepEqual(second.swept, [undefined]);
  await first.reaper.release();
  assert.notEqual(await second.reaper.sweep(), undefined);
  await second.reaper.release();
});

test("a sweep publishes so many at most, and the next one goes on after them", async () => {
  const { reaper, told } = reaperOf("server-3", 2);
  const ids = [await setup.held("gone"), await setup.held("gone"), await setup.held("gone")];
  for (let sweeps = 0; sweeps < 4; sweeps += 1) await reaper.sweep();
  for (const part of told) assert.ok(part.length <= 2);
  for (const id of ids) assert.ok(told.flat().includes(id), `${id} was never published`);
  await reaper.release();
});

test("a sweep that is asked for is made although another server has the lease, and leaves it that", async () => {
  const holder = reaperOf("server-4");
  const asked = reaperOf("server-5", 2);
  assert.notEqual(await holder.reaper.sweep(), undefined);
  const ids = [await setup.held("gone"), await setup.held("gone"), await setup.held("gone")];
  let more = true;
  for (let sweeps = 0; more && sweeps < 20; sweeps += 1) {
    const swept = await asked.reaper.sweepNow();
    assert.ok(swept.republished.worker <= 2);
    more = swept.more;
  }
  assert.equal(more, false);
  for (const id of ids) assert.ok(asked.told.flat().includes(id), `${id} was never published`);
  assert.equal(await asked.reaper.sweep(), undefined);
  await holder.reaper.release();
});
