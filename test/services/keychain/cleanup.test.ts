import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { createKeychainUpkeep } from "../../../src/services/keychain/cleanup.ts";
import { openServiceDatabase } from "../../repositories/service-database.ts";
import { entry, type KeychainBench, keychainBench, token, WORKER } from "../../support/database/keychain-rows.ts";

let bench: KeychainBench;
beforeEach(async () => {
  bench = await keychainBench(await openServiceDatabase());
});

const DAY = 86_400;
const set = (...about: Parameters<typeof entry>) => bench.keychain.set(entry(...about), token(), WORKER);

/** Until the rows are gone: deletion at the end of an execution is part of no answer. */
async function untilKeysAre(expected: readonly string[]): Promise<void> {
  while ((await bench.keys()).join() !== expected.join());
}

test("entries are deleted when their owner ends: local ones with their execution, shared ones with the root", async () => {
  const root = await bench.execution();
  const child = await bench.execution({ parentExecutionId: root, rootExecutionId: root });
  await set("mine", "local", child);
  await set("roots", "local", root);
  await set("ours", "shared", child);
  await set("all");
  await bench.end(child);
  bench.upkeep.ended([child]);
  await untilKeysAre(["all:1:global", `ours:1:shared:${root}`, `roots:1:${root}`]);
  await bench.end(root, "FAILED");
  bench.upkeep.ended([root]);
  await untilKeysAre(["all:1:global"]);
});

test("an execution without entries costs nothing at its end", () => {
  const database = new Proxy({}, { get: () => assert.fail("the database was asked") }) as KeychainBench["database"];
  createKeychainUpkeep({ database }).ended(["1", "2", "3"]);
});

test("what a server that died has left is found, and what is still open stays", async () => {
  const ended: string[] = [];
  for (const status of ["COMPLETED", "FAILED", "CANCELLED"] as const) {
    const id = await bench.execution();
    await set("mine", "local", id);
    await set("ours", "shared", id);
    await bench.end(id, status);
    ended.push(id);
  }
  const open = await bench.execution();
  await set("mine", "local", open);
  await set("all");
  const deleted = await bench.execution();
  await set("mine", "local", deleted);
  await bench.database.sql`delete from flow.execution where execution_id = ${deleted}`;
  assert.equal(await createKeychainUpkeep(bench).sweep(), 2 * ended.length + 1);
  assert.deepEqual(await bench.keys(), ["all:1:global", `mine:1:${open}`]);
  assert.equal(await createKeychainUpkeep(bench).sweep(), 0);
});

test("more entries than one statement deletes go all the same", async () => {
  const id = await bench.execution();
  await set("mine", "local", id);
  await bench.database.sql`
    insert into flow.keychain (cache_key, keychain_name, catalog_id, credential_type, cache_type, scope_type, execution_id,
      data_encrypted, expires_at)
    select 'more:1:' || n, 'more', 1, 'x', 'secret', 'local', ${id}, '', now() + interval '1 hour'
    from generate_series(1, 1200) n`;
  await bench.end(id);
  assert.equal(await bench.upkeep.sweep(), 1_201);
});

test("expired entries stay for a day, those that can be renewed for thirty days after their last use", async () => {
  for (const name of ["young", "old"]) await set(name);
  for (const name of ["renewed-young", "renewed-old", "renewed-used"]) {
    await bench.keychain.set(entry(name), token("x", { autoRenew: true }), WORKER);
  }
  await bench.age("young", DAY - 60);
  await bench.age("old", DAY + 60);
  await bench.age("renewed-young", 30 * DAY - 60);
  await bench.age("renewed-old", 30 * DAY + 60);
  await bench.age("renewed-used", 40 * DAY);
  assert.equal((await bench.keychain.get(entry("renewed-used"), WORKER)).status, "expired");
  assert.equal(await bench.upkeep.sweep(), 2);
  assert.deepEqual(await bench.keys(), ["renewed-used:1:global", "renewed-young:1:global", "young:1:global"]);
});

test("leases that are over go, those that are held stay", async () => {
  const ask = (name: string, leaseMs: number) =>
    bench.keychain.lease(entry(name), { holder: "a", leaseMs, waitMs: 0 }, new AbortController().signal);
  await ask("held", 60_000);
  await ask("over", 60_000);
  await bench.database
    .sql`update flow.keychain_lease set expires_at = now() - interval '1 second' where cache_key ~ 'over'`;
  await bench.upkeep.sweep();
  const left = await bench.database.sql`select cache_key from flow.keychain_lease`;
  assert.deepEqual([...left], [{ cache_key: "held:1:global" }]);
});

test("many that end at once are few statements; what fails is left to the sweep", async () => {
  const ids = await Promise.all(Array.from({ length: 50 }, () => bench.execution()));
  for (const id of ids) await set("mine", "local", id);
  for (const id of ids) await bench.end(id);
  let statements = 0;
  let isAway = false;
  const sql = new Proxy(bench.database.sql, {
    apply(target, self, args) {
      statements += 1;
      if (isAway) throw new Error("the database is away");
      return Reflect.apply(target, self, args);
    },
  });
  const upkeep = createKeychainUpkeep({ database: { ...bench.database, sql } });
  for (const id of ids) upkeep.owned(id);
  for (const id of ids) upkeep.ended([id]);
  await untilKeysAre([]);
  assert.ok(statements <= 3, `${statements} statements`);
  const last = await bench.execution();
  await set("mine", "local", last);
  await bench.end(last);
  upkeep.owned(last);
  isAway = true;
  upkeep.ended([last]);
  isAway = false;
  assert.equal(await upkeep.sweep(), 1);
});
