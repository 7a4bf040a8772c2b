import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { acquireLease, releaseLease, renewLease } from "../../../src/repositories/database/leases.ts";
import { openServiceDatabase } from "../service-database.ts";

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

const acquire = (name: string, holder: string) => acquireLease(database, name, holder, 60_000);
/** As if its time had passed. */
const end = (name: string) => database.sql`
  update flow.lease set acquired_at = now() - interval '2 minutes', expires_at = now() - interval '1 minute'
  where name = ${name}`;

test("one holder at a time has a lease, and goes on with the same token", async () => {
  assert.equal(await acquire("a", "one"), 1);
  assert.equal(await acquire("a", "two"), undefined);
  assert.equal(await acquire("a", "one"), 1);
});

test("of many that ask at once one gets it", async () => {
  const tokens = await Promise.all(Array.from({ length: 20 }, (_, index) => acquire("many", `holder-${index}`)));
  assert.deepEqual(
    tokens.filter((token) => token !== undefined),
    [1],
  );
});

test("a lease that is over goes to the next, with a higher token, and the first one cannot renew it", async () => {
  await acquire("b", "one");
  await end("b");
  assert.equal(await renewLease(database, "b", 1, 60_000), false);
  assert.equal(await acquire("b", "two"), 2);
  assert.equal(await renewLease(database, "b", 1, 60_000), false);
  assert.equal(await renewLease(database, "b", 2, 60_000), true);
});

test("a holder that comes back after its time gets another token", async () => {
  await acquire("c", "one");
  await end("c");
  assert.equal(await acquire("c", "one"), 2);
});

test("a released lease is free at once, and its token is never used again", async () => {
  await acquire("d", "one");
  await releaseLease(database, "d", 1);
  // The row says when it ended, to the millisecond: the next moment is after it.
  await end("d");
  assert.equal(await acquire("d", "two"), 2);
});

test("releasing what is another's by now changes nothing", async () => {
  await acquire("e", "one");
  await end("e");
  await acquire("e", "two");
  await releaseLease(database, "e", 1);
  assert.equal(await renewLease(database, "e", 2, 60_000), true);
});
