import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { deleteExpiredTransients } from "../../../src/repositories/executions/execution-values.ts";
import { openServiceDatabase } from "../service-database.ts";

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

/** A value that expires in `hours`; null: never. */
async function keep(bucket: string, key: string, hours: number | null): Promise<void> {
  await database.sql`
    insert into flow.transient (bucket, key, value, expires_at)
    values (${bucket}, ${key}, 'x', now() + ${hours}::float8 * interval '1 hour')`;
}

test("expired values are deleted in bounded numbers, the oldest first, and no others", async () => {
  const { sql } = database;
  await keep("b", "stays", null);
  await keep("b", "lives", 1);
  for (const age of [1, 2, 3, 4, 5]) await keep("b", `old-${age}`, -age);
  assert.equal(await deleteExpiredTransients(database, 2), 2);
  const left = await sql<{ key: string }[]>`select key from flow.transient order by key`;
  assert.deepEqual(
    left.map(({ key }) => key),
    ["lives", "old-1", "old-2", "old-3", "stays"],
  );
  assert.equal(await deleteExpiredTransients(database, 100), 3);
  assert.equal(await deleteExpiredTransients(database, 100), 0);
  assert.equal((await sql`select from flow.transient`).length, 2);
});

test("rows that another transaction deletes now are passed over", async () => {
  const { sql } = database;
  await keep("c", "old", -1);
  await sql.begin(async (tx) => {
    await tx`select 1 from flow.transient where bucket = 'c' for update`;
    assert.equal(await deleteExpiredTransients(database, 100), 0);
  });
  assert.equal(await deleteExpiredTransients(database, 100), 1);
});
