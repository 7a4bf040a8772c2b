import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import type { LeaseAnswer } from "../../../src/ports/keychain.ts";
import { askKeychainLease, type LeaseQuery } from "../../../src/repositories/keychain/leases.ts";
import { createKeychainLeases } from "../../../src/services/keychain/leases.ts";
import { openServiceDatabase } from "../../repositories/service-database.ts";
import { entry, type KeychainBench, keychainBench, token, WORKER } from "../../support/database/keychain-rows.ts";

/** Two servers of one database. */
let here: KeychainBench;
let there: KeychainBench;
beforeEach(async () => {
  const database = await openServiceDatabase();
  here = await keychainBench(database);
  there = await keychainBench(database);
});

const NEVER = new AbortController().signal;
const WAIT_MS = 20_000;
const LEASE_MS = 60_000;

function ask(at: KeychainBench, holder: string, more: { waitMs?: number; leaseMs?: number } = {}, signal = NEVER) {
  return at.keychain.lease(entry("api"), { holder, leaseMs: LEASE_MS, waitMs: WAIT_MS, ...more }, signal);
}

const set = (at: KeychainBench) => at.keychain.set(entry("api"), token(), WORKER);

/** Asks for many holders at once, half of them at each server; the granted one is given to `work`. */
async function storm(holders: number, work: (at: KeychainBench, holder: string) => Promise<unknown>) {
  const granted: string[] = [];
  const answers = await Promise.all(
    Array.from({ length: holders }, async (_, number): Promise<LeaseAnswer> => {
      const at = number % 2 === 0 ? here : there;
      const holder = `worker-${number}`;
      const answer = await ask(at, holder);
      if (answer.status !== "granted") return answer;
      granted.push(holder);
      await work(at, holder);
      return answer;
    }),
  );
  const told = answers.filter(({ status }) => status !== "granted");
  return { granted, told };
}

test("of 200 requests at two servers one gets the lease, and all others learn that the entry was set", async () => {
  const { granted, told } = await storm(200, (at) => set(at));
  assert.equal(granted.length, 1);
  assert.deepEqual([...new Set(told.map(({ status }) => status))], ["set"]);
  assert.equal(told.length, 199);
  assert.equal((await here.keychain.get(entry("api"), WORKER)).status, "success");
});

test("of 200 requests one gets the lease, and all others get the reason of its failure; so do requests soon after", async () => {
  const { granted, told } = await storm(200, (at, holder) =>
    at.keychain.fail(entry("api"), holder, "the IdP said 500"),
  );
  assert.equal(granted.length, 1);
  assert.deepEqual(
    [...new Set(told.map((answer) => JSON.stringify(answer)))],
    [JSON.stringify({ status: "failed", message: "the IdP said 500" })],
  );
  assert.deepEqual(await ask(there, "late", { waitMs: 0 }), { status: "failed", message: "the IdP said 500" });
  await here.database.sql`update flow.keychain_lease set expires_at = now() - interval '1 second'`;
  assert.deepEqual(await ask(there, "later", { waitMs: 0 }), { status: "granted" });
});

test("an expired entry gives one lease again, a live one none", async () => {
  await set(here);
  assert.deepEqual(await ask(here, "a"), { status: "set" });
  await here.age("api", 5);
  assert.deepEqual(await ask(here, "a"), { status: "granted" });
  assert.deepEqual(await ask(there, "b", { waitMs: 0 }), { status: "held" });
  await set(there);
  assert.deepEqual(await ask(here, "b"), { status: "set" });
});

test("a waiter is answered at once by its own server, and soon by another", async () => {
  await ask(here, "holder");
  const waiting = [ask(here, "a"), ask(here, "b"), ask(there, "c")];
  await set(here);
  assert.deepEqual(
    (await Promise.all(waiting)).map(({ status }) => status),
    ["set", "set", "set"],
  );
});

test("a holder that asks again is granted again, also behind others; after its end it waits as they do", async () => {
  assert.deepEqual(await ask(here, "holder"), { status: "granted" });
  const others = [ask(here, "a"), ask(here, "b")];
  assert.deepEqual(await ask(here, "holder"), { status: "granted" });
  assert.equal(await here.keychain.fail(entry("api"), "holder", "no"), true);
  assert.deepEqual(
    (await Promise.all(others)).map(({ status }) => status),
    ["failed", "failed"],
  );
  assert.deepEqual(await ask(here, "holder", { waitMs: 0 }), { status: "failed", message: "no" });
});

test("the lease of a holder that died ends by itself, and the next in line is granted", async () => {
  await ask(here, "dead", { leaseMs: 200 });
  const answers = await Promise.all([ask(there, "a"), ask(there, "b", { waitMs: 1_500 })]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    ["granted", "held"],
  );
});

test("a holder whose lease is another's by now changes nothing by failing", async () => {
  await ask(here, "slow", { leaseMs: 100 });
  assert.deepEqual(await ask(there, "next"), { status: "granted" });
  assert.equal(await here.keychain.fail(entry("api"), "slow", "too late"), false);
  assert.deepEqual(await ask(here, "a", { waitMs: 0 }), { status: "held" });
});

test("a wait ends with its time or its signal, and a waiter that has left is never granted the lease", async () => {
  await ask(here, "holder");
  assert.deepEqual(await ask(here, "a", { waitMs: 0 }), { status: "held" });
  assert.deepEqual(await ask(here, "a", { waitMs: 50 }), { status: "held" });
  const left = new AbortController();
  const waiting = ask(here, "a", {}, left.signal);
  left.abort();
  assert.deepEqual(await waiting, { status: "held" });
  await here.database.sql`delete from flow.keychain_lease`;
  assert.deepEqual(await ask(here, "gone", {}, left.signal), { status: "held" });
  assert.deepEqual(await ask(here, "b", { waitMs: 0 }), { status: "granted" });
});

test("leases of different entries know nothing of each other; those of one tree's shared entry do", async () => {
  const root = await here.execution();
  const child = await here.execution({ parentExecutionId: root, rootExecutionId: root });
  const asked = { holder: "a", leaseMs: LEASE_MS, waitMs: 0 };
  const status = async (...about: Parameters<typeof entry>) =>
    (await here.keychain.lease(entry(...about), { ...asked, holder: about.join() }, NEVER)).status;
  assert.equal(await status("api"), "granted");
  assert.equal(await status("other"), "granted");
  assert.equal(await status("api", "local", root), "granted");
  assert.equal(await status("api", "local", child), "granted");
  assert.equal(await status("api", "shared", root), "granted");
  assert.equal(await status("api", "shared", child), "held");
});

test("no lease is given for what could not be kept", async () => {
  const ended = await here.execution();
  await here.end(ended);
  const asked = { holder: "a", leaseMs: LEASE_MS, waitMs: 0 };
  for (const [about, code] of [
    [{ ...entry("api"), catalogId: "77" }, "NOT_FOUND"],
    [entry("api", "local", "4711"), "NOT_FOUND"],
    [entry("api", "local"), "INVALID_INPUT"],
    [entry("api", "shared", ended), "CONFLICT"],
  ] as const) {
    await assert.rejects(here.keychain.lease(about, asked, NEVER), { code });
  }
  const [row] = await here.database.sql<[{ rows: number }]>`select count(*)::int as rows from flow.keychain_lease`;
  assert.equal(row.rows, 0);
});

test("if the holder sets the entry while another statement waits, no lease is granted", async () => {
  // The statement has looked for a live entry, found none, and waits for the row of the lease that the holder is ending.
  const { sql } = here.database;
  await ask(here, "holder");
  const [before] = await sql`select * from flow.keychain_lease`;
  assert.ok(before !== undefined);
  let pending: Promise<unknown> = Promise.resolve();
  await sql.begin(async (tx) => {
    await tx`delete from flow.keychain_lease`;
    await tx`
      insert into flow.keychain (cache_key, keychain_name, catalog_id, credential_type, cache_type, scope_type, data_encrypted,
        expires_at) values (${before["cache_key"]}, 'api', 1, 'x', 'secret', 'global', '', now() + interval '1 hour')`;
    pending = askKeychainLease(there.database, before["cache_key"], { holder: "other", leaseMs: 1_000 });
    for (;;) {
      const [blocked] = await sql`
        select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and state = 'active'`;
      if (blocked !== undefined) break;
    }
  });
  assert.deepEqual(await pending, { status: "set" });
});

test("200 waiters at one server share one poll at a time, and all get a database error", async () => {
  let looks = 0;
  let most = 0;
  let under = 0;
  let isAway = false;
  const held = async (_: string, { holder }: LeaseQuery) => {
    looks += 1;
    under += 1;
    most = Math.max(most, under);
    await new Promise(setImmediate);
    under -= 1;
    if (isAway) throw new Error("the database is away");
    return holder === "first" ? ({ status: "granted" } as const) : ({ status: "held", holder: "first" } as const);
  };
  const leases = createKeychainLeases(held);
  assert.deepEqual(await leases.ask("k", { holder: "first", leaseMs: 1, waitMs: 0 }, NEVER), { status: "granted" });
  const waiting = Array.from({ length: 200 }, (_, number) =>
    leases.ask("k", { holder: `w${number}`, leaseMs: 1, waitMs: 600 }, NEVER),
  );
  assert.ok((await Promise.all(waiting)).every(({ status }) => status === "held"));
  assert.equal(most, 1);
  assert.ok(looks < 12, `${looks} looks`);
  isAway = true;
  const failing = [1, 2, 3].map((number) =>
    leases.ask("k", { holder: `x${number}`, leaseMs: 1, waitMs: 9_000 }, NEVER),
  );
  for (const one of failing) await assert.rejects(one, /the database is away/);
  isAway = false;
  assert.deepEqual(await leases.ask("k", { holder: "first", leaseMs: 1, waitMs: 0 }, NEVER), { status: "granted" });
});
