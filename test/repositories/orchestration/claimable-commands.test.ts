import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { findClaimable, judgeClaim } from "../../../src/repositories/orchestration/claimable-commands.ts";
import { POLICY, type StoreSetup, storeSetup } from "../../support/database/store-setup.ts";
import { openServiceDatabase } from "../service-database.ts";

// The claim policy (Worker protocol), by the database's clock.

let database: Database;
let setup: StoreSetup;
before(async () => {
  database = await openServiceDatabase();
  setup = storeSetup(database);
  await setup.worker("healthy");
  await setup.worker("draining", { status: "draining" });
  await setup.worker("offline", { status: "offline" });
  await setup.worker("stale", { silentSeconds: 61 });
});

const find = async (commandId: string, by?: string, isGone = false) => {
  const abandoned = by === undefined ? undefined : { worker: by, isGone };
  return (await findClaimable(database, [commandId], POLICY, abandoned)).find((found) => found.commandId === commandId);
};
const claimable = async (commandId: string, by?: string) => (await find(commandId, by)) !== undefined;

const HARD = -1_801;
const CASES: [what: string, worker: string, at: { claimedSeconds?: number; leaseSeconds?: number }, free: boolean][] = [
  ["a live lease holds, whoever the worker is", "missing", { leaseSeconds: 5 }, false],
  ["a live lease holds for a stale worker", "stale", { leaseSeconds: 5 }, false],
  ["a live lease holds beyond the hard timeout", "healthy", { leaseSeconds: 5, claimedSeconds: HARD }, false],
  ["a lease that is over does not hold for a missing worker", "missing", { leaseSeconds: -1 }, true],
  ["a lease that is over does not hold for a draining worker", "draining", { leaseSeconds: -1 }, true],
  ["a lease that is over does not hold for an offline worker", "offline", { leaseSeconds: -1 }, true],
  ["a lease that is over does not hold for a stale worker", "stale", { leaseSeconds: -1 }, true],
  ["a healthy worker keeps a young claim without its lease", "healthy", { leaseSeconds: -1 }, false],
  [
    "a healthy worker loses an old claim without its lease",
    "healthy",
    { leaseSeconds: -1, claimedSeconds: HARD },
    true,
  ],
];

for (const [what, worker, at, free] of CASES) {
  test(what, async () => {
    const commandId = await setup.held(worker, at);
    assert.equal(await claimable(commandId), free);
    const judged = await judgeClaim(database, commandId, POLICY);
    assert.deepEqual([judged?.claimable, judged?.worker, judged?.status], [free, worker, "CLAIMED"]);
    assert.equal((judged?.leaseRestMs ?? 0) > 0, (at.leaseSeconds ?? 0) > 0);
  });
}

test("a command that its holder has given up is claimable whatever its lease, and only on that holder's word", async () => {
  const commandId = await setup.held("healthy");
  assert.equal(await claimable(commandId, "healthy"), true);
  assert.equal(await claimable(commandId, "stale"), false);
});

test("a worker that has signed off gave its command back; one that is missing, stale, draining or too slow lost it", async () => {
  const lostBy = async (worker: string, claimedSeconds?: number) => {
    const at = { leaseSeconds: -1, ...(claimedSeconds !== undefined && { claimedSeconds }) };
    return (await find(await setup.held(worker, at)))?.lostBy;
  };
  assert.equal(await lostBy("offline"), null);
  for (const worker of ["missing", "stale", "draining"]) assert.equal(await lostBy(worker), worker);
  assert.equal(await lostBy("healthy", HARD), "healthy");
});

test("a command given up on its holder's word was lost if the holder's process is gone", async () => {
  const commandId = await setup.held("healthy");
  assert.equal((await find(commandId, "healthy", true))?.lostBy, "healthy");
  assert.equal((await find(commandId, "healthy", false))?.lostBy, null);
  const waiting = await setup.command();
  assert.equal((await find(waiting.commandId, "healthy", true))?.lostBy, null);
});

test("a waiting command is claimable; an ended or unknown one is not", async () => {
  const { commandId, change } = await setup.command();
  assert.equal(await claimable(commandId), true);
  assert.equal((await judgeClaim(database, commandId, POLICY))?.claimable, true);
  await database.sql`update flow.command set status = 'CANCELLED', ended_at = now() where command_id = ${commandId}`;
  assert.equal(await claimable(commandId), false);
  const judged = await judgeClaim(database, commandId, POLICY);
  assert.deepEqual(
    [judged?.claimable, judged?.status, judged?.worker, judged?.leaseExpiresAt, judged?.executionId],
    [false, "CANCELLED", null, null, change.executionId],
  );
  assert.equal(await judgeClaim(database, "9", POLICY), undefined);
  assert.equal((await findClaimable(database, ["9"], POLICY, undefined)).length, 0);
  assert.equal((await findClaimable(database, [], POLICY, undefined)).length, 0);
});
