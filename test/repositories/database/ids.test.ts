import assert from "node:assert/strict";
import { before, test } from "node:test";
import { firstIdAt } from "../../../src/platform/system/ids.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { reserveIds } from "../../../src/repositories/database/ids.ts";
import { openEmptyDatabase, openServiceDatabase } from "../service-database.ts";

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

test("ids grow within a block and from block to block", async () => {
  const ids = [
    ...(await reserveIds(database, 5)),
    ...(await reserveIds(database, 1)),
    ...(await reserveIds(database, 3)),
  ];
  assert.equal(ids.length, 9);
  assert.ok(ids.every((id, index) => index === 0 || BigInt(id) > BigInt(ids[index - 1] ?? 0)));
});

test("ids follow the database's clock and fit in 53 bits", async () => {
  const [row] = await database.sql<[{ now: Date }]>`select clock_timestamp() as now`;
  const [id] = await reserveIds(database, 1);
  // The largest block that this file reserves, and a second for a slow machine.
  assert.ok(Number(id) >= firstIdAt(row.now.getTime()));
  assert.ok(Number(id) <= firstIdAt(row.now.getTime() + 10_000));
  assert.ok(Number.isSafeInteger(Number(id)));
});

test("processes that ask at once get different ids", async () => {
  const blocks = await Promise.all(Array.from({ length: 50 }, (_, index) => reserveIds(database, 1 + (index % 7))));
  const ids = blocks.flat();
  assert.equal(new Set(ids).size, ids.length);
});

test("a clock that steps back does not make ids shrink", async () => {
  // As if the last id had been given an hour ahead of the clock.
  await database.sql`update flow.id_source set last_id = last_id + ${3_600_000 * 4_096}`;
  const [before] = await database.sql<[{ last: string }]>`select last_id as last from flow.id_source`;
  const ids = await reserveIds(database, 2);
  assert.deepEqual(ids, [String(BigInt(before.last) + 1n), String(BigInt(before.last) + 2n)]);
});

test("a database without the schema is an error, not an id", async () => {
  await assert.rejects(reserveIds(await openEmptyDatabase(), 1), { code: "42P01" });
});
