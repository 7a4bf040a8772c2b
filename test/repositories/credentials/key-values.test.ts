import assert from "node:assert/strict";
import { before, test } from "node:test";
import {
  deleteExpiredTransients,
  findTransient,
  putTransient,
} from "../../../src/repositories/credentials/key-values.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { openServiceDatabase } from "../service-database.ts";

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

/* What a store does with these statements is in the contract of key-value stores. */

test("expired values are deleted in bounded numbers, the oldest first, and no others", async () => {
  const value = Uint8Array.of(1);
  const { sql } = database;
  for (const [key, ttlMs] of [
    ["stays", null],
    ["lives", 3_600_000],
  ] as const)
    await putTransient(database, { bucket: "b", key, value, ttlMs });
  for (const age of [1, 2, 3, 4, 5]) {
    await putTransient(database, { bucket: "b", key: `old-${age}`, value, ttlMs: 1 });
    await sql`update flow.transient set expires_at = now() - ${age}::int * interval '1 hour' where key = ${`old-${age}`}`;
  }
  assert.equal(await deleteExpiredTransients(database, 2), 2);
  const left = await sql<{ key: string }[]>`select key from flow.transient order by key`;
  assert.deepEqual(
    left.map(({ key }) => key),
    ["lives", "old-1", "old-2", "old-3", "stays"],
  );
  assert.equal(await deleteExpiredTransients(database, 100), 3);
  assert.equal(await deleteExpiredTransients(database, 100), 0);
  assert.ok((await findTransient(database, "b", "lives")) !== undefined);
});

test("rows that another transaction deletes now are passed over", async () => {
  const { sql } = database;
  await putTransient(database, { bucket: "c", key: "old", value: Uint8Array.of(1), ttlMs: 1 });
  await sql`update flow.transient set expires_at = now() - interval '1 hour' where bucket = 'c'`;
  await sql.begin(async (tx) => {
    await tx`select 1 from flow.transient where bucket = 'c' for update`;
    assert.equal(await deleteExpiredTransients(database, 100), 0);
  });
  assert.equal(await deleteExpiredTransients(database, 100), 1);
});
