import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Database, transaction } from "../../../src/repositories/database/database.ts";
import { unreachable } from "../../../src/repositories/database/error-codes.ts";
import { createTestDatabase } from "../../support/database/postgres.ts";
import { startTcpProxy } from "../../support/servers/tcp-proxy.ts";
import { open } from "../service-database.ts";

/* Connections that die silently: nothing is refused, nothing is closed, nothing comes. */

const direct: Awaited<ReturnType<typeof createTestDatabase>> = await createTestDatabase();
const LIMIT_MS = 5_000;
const isLost = (error: unknown) => unreachable(error) !== undefined;

async function throughProxy(options: Parameters<typeof open>[1] = {}) {
  const proxy = await startTcpProxy(direct.port);
  const url = direct.url.replace(`:${direct.port}/`, `:${proxy.port}/`);
  return { proxy, database: open(url, { ...options, applicationName: `through ${proxy.port}` }) };
}

async function failsSoon(work: Promise<unknown>): Promise<number> {
  const began = performance.now();
  await assert.rejects(work, isLost);
  const tookMs = performance.now() - began;
  assert.ok(tookMs < LIMIT_MS, `It failed after ${tookMs} ms`);
  return tookMs;
}

/** How many connections a pool holds: as many statements at once as it takes. */
const fill = ({ sql }: Database, count: number) =>
  Promise.all(Array.from({ length: count }, () => sql`select pg_sleep(0.05)`));

// At once, because they only wait: each has a proxy and connections of its own.
describe("connections that die", { concurrency: true }, () => {
  test("nothing gets through: statements, transactions and those that queue fail within 5 s, and it is known", async () => {
    const told: (string | undefined)[] = [];
    const { proxy, database } = await throughProxy({ connectionsMax: 3, onReach: (away) => told.push(away?.reason) });
    await fill(database, 3);
    assert.equal(database.away(), undefined);
    proxy.swallow();
    const asked = [
      ...Array.from({ length: 20 }, () => database.sql`select 1`),
      transaction(database, ({ sql }) => sql`select 1`),
    ];
    await Promise.all(asked.map(failsSoon));
    assert.match(database.away()?.reason ?? "", /does not answer/);
    const laterMs = await failsSoon(database.sql`select 1`);
    assert.ok(laterMs < 1_000, `Who comes later is told after ${laterMs} ms`);
    proxy.mend();
    const began = performance.now();
    while (database.away() !== undefined && performance.now() - began < 10_000) await sleep(50);
    assert.equal((await database.sql`select 1 as one`)[0]?.["one"], 1);
    assert.deepEqual([told.length, typeof told[0], told[1]], [2, "string", undefined]);
  });

  test("it dies in the middle of a transaction: what follows fails within 5 s", async () => {
    const { proxy, database } = await throughProxy();
    for (const where of ["a statement", "the commit"] as const) {
      const work = transaction(database, async ({ sql }) => {
        await sql`select 1`;
        proxy.swallow();
        if (where === "a statement") await sql`select 2`;
      });
      await failsSoon(work);
      proxy.mend();
      while (database.away() !== undefined) await sleep(50);
    }
  });

  test("new connections are not answered: the first statement fails within 5 s, those behind it too", async () => {
    const { proxy, database } = await throughProxy({ connectionsMax: 1 });
    proxy.swallow();
    await Promise.all([failsSoon(database.sql`select 1`), failsSoon(database.sql`select 2`)]);
    proxy.mend();
  });

  test("old connections are dropped and new ones work: pending statements fail, the next ones are answered", async () => {
    const { proxy, database } = await throughProxy({ connectionsMax: 2 });
    await fill(database, 2);
    proxy.forget();
    await Promise.all([failsSoon(database.sql`select 1`), failsSoon(database.sql`select 2`)]);
    assert.equal(database.away(), undefined);
    assert.equal((await database.sql`select 1 as one`)[0]?.["one"], 1);
  });

  test("a statement that just takes long is left alone, and so is one that waits for a lock", async () => {
    const { database } = await throughProxy({ connectionsMax: 3 });
    const slow = database.sql`select pg_sleep(5)`;
    const held = database.sql.begin(async (sql) => {
      await sql`select pg_advisory_xact_lock(4711)`;
      await sql`select pg_sleep(4)`;
    });
    const waiting = database.sql.begin((sql) => sql`select pg_advisory_xact_lock(4711)`);
    await Promise.all([slow, held, waiting]);
    assert.equal(database.away(), undefined);
  });

  test("a result that comes in many pieces is left alone", async () => {
    const { database } = await throughProxy({ connectionsMax: 1 });
    const rows =
      await database.sql`select n, repeat('x', 1000) as text, pg_sleep(0.0003) from generate_series(1, 10000) n`;
    assert.equal(rows.length, 10_000);
  });

  test("a pooler's session that does not answer is cancelled after its time, and cut off when that does not help", async () => {
    const { proxy, database } = await throughProxy({ connectionsMax: 1, pooled: true, statementMs: 2_000 });
    // The cancellation arrives: the server ends the statement by itself.
    await assert.rejects(database.sql`select pg_sleep(60)`, { code: "57014" });
    proxy.forget();
    await assert.rejects(database.sql`select 1`, isLost);
    assert.equal((await database.sql`select 1 as one`)[0]?.["one"], 1);
  });
});
