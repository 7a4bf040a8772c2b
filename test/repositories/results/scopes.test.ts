import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { findOwners } from "../../../src/repositories/results/scopes.ts";
import { openServiceDatabase } from "../service-database.ts";

/* The walk over what ends with something must not grow with what does not. */

const PERMANENT = 20_000;
const SCOPED = 3_000;

let database: Database;
before(async () => {
  database = await openServiceDatabase();
  const { sql } = database;
  const insert = (scope: string, from: number, count: number, each: number) => sql`
    insert into flow.result (execution_id, ref, root_execution_id, state, store, scope, content_type, bytes, sha256, payload)
    select ${from}::bigint + n / ${each}::int, 'noetl://execution/' || n, ${from}::bigint + n / ${each}::int, 'stored', 'kv',
      ${scope}, 'application/json', 1, repeat('0', 64), '1'
    from generate_series(0, ${count}::int - 1) n`;
  await insert("permanent", 1, PERMANENT, 1);
  await insert("execution", 100_000, SCOPED, 1_000);
  await insert("workflow", 200_000, SCOPED, 1_500);
  await sql`analyze flow.result`;
});

test("each owner is found once, page by page; one whose row is gone counts as ended", async () => {
  const first = await findOwners(database, "execution", "0", 2);
  assert.deepEqual(first, { ended: ["100000", "100001"], open: [], next: "100001" });
  assert.deepEqual(await findOwners(database, "execution", "100001", 2), {
    ended: ["100002"],
    open: [],
    next: undefined,
  });
  assert.deepEqual((await findOwners(database, "workflow", "0", 10)).ended, ["200000", "200001"]);
  assert.deepEqual(await findOwners(database, "step", "0", 10), { ended: [], open: [], next: undefined });
});

test("it goes down an index once per owner, and never over the table", async () => {
  const scans = async () => {
    const [row] = await database.sql<[{ seq: number; rows: number }]>`
      select seq_scan::int as seq, idx_tup_fetch::int as rows from pg_stat_user_tables where relname = 'result'`;
    return row;
  };
  const flushed = async () => {
    await database.sql`select pg_stat_force_next_flush()`;
    return await scans();
  };
  const before = await flushed();
  for (const scope of ["execution", "step", "workflow"] as const) await findOwners(database, scope, "0", 100);
  const after = await flushed();
  assert.equal(after.seq - before.seq, 0);
  assert.ok(after.rows - before.rows < 100, `${after.rows - before.rows} rows were looked at`);
});
