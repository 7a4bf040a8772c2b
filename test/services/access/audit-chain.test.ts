import assert from "node:assert/strict";
import { before, test } from "node:test";
import { deleteOldAudit, insertAudit } from "../../../src/repositories/access/audit.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { audited, SYSTEM } from "../../../src/services/access/audit.ts";
import {
  CHECKED_MAX,
  type ChainCheck,
  type ChainPlace,
  verifyAudit,
} from "../../../src/services/access/audit-chain.ts";
import { openServiceDatabase } from "../../repositories/service-database.ts";
import { pastTriggers } from "../../support/database/past-triggers.ts";

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

/** Rows 1 to `count` in one chain, in a database of their own. */
async function logOf(count: number): Promise<Database> {
  const own = await openServiceDatabase();
  const odd = "ü \"quoted\" 'and' \\ \u0001 \u2028, NULL";
  const detail = { n: 1.5, text: odd, list: [null, true, {}] };
  await insertAudit(
    own,
    Array.from({ length: count }, (_, index) => audited(SYSTEM, "some.action", `${odd}/${index + 1}`, { detail })),
  );
  return own;
}

async function verifyAll(own: Database, heads: readonly ChainPlace[] = []): Promise<ChainCheck> {
  const verify = verifyAudit(own);
  let check = await verify({ heads });
  const all = { ...check };
  while (check.next !== undefined) {
    check = await verify({ after: check.next });
    all.rows += check.rows;
    all.problems = [...all.problems, ...check.problems];
  }
  return { ...all, heads: check.heads };
}

const told = ({ problems }: ChainCheck) => problems.map(({ kind, seq, message }) => `${kind} ${seq}: ${message}`);

test("an empty log, a log of one row and one of more than a piece are verified", async () => {
  assert.deepEqual(await verifyAll(await logOf(0)), { rows: 0, before: 0, problems: [], heads: [], next: undefined });
  for (const count of [1, 3, CHECKED_MAX, CHECKED_MAX + 1]) {
    const check = await verifyAll(await logOf(count));
    assert.deepEqual([check.rows, told(check)], [count, []]);
    assert.deepEqual([check.heads.length, check.heads[0]?.chain, check.heads[0]?.seq], [1, 1, count]);
  }
});

test("each column of a row is part of its hash", async () => {
  const own = await logOf(2);
  const columns = await own.sql<{ name: string; type: string }[]>`
    select column_name as name, data_type as type from information_schema.columns
    where table_schema = 'auth' and table_name = 'audit_log' and column_name not in ('hash', 'chain', 'chain_seq', 'audit_id')`;
  assert.ok(columns.length >= 16);
  const other: Record<string, string> = {
    actor_kind: "'user'",
    result: "'deny'",
    user_id: "7",
    at: "at + interval '1 second'",
    detail: `'{"n": 2}'`,
  };
  await pastTriggers(own, "alter table auth.audit_log drop constraint audit_log_user");
  for (const { name, type } of columns) {
    const value = other[name] ?? (type === "text" ? "'other'" : "8");
    await pastTriggers(
      own,
      `create table kept as select * from auth.audit_log; update auth.audit_log set ${name} = ${value} where chain_seq = 1`,
    );
    assert.deepEqual(
      told(await verifyAll(own)),
      ["changed 1: row 1 (chain 1, place 1) is not as it was written"],
      `a change of ${name} goes unseen`,
    );
    await pastTriggers(
      own,
      `update auth.audit_log l set ${name} = k.${name} from kept k where k.audit_id = l.audit_id; drop table kept`,
    );
  }
  assert.deepEqual(told(await verifyAll(own)), []);
});

test("rows that are missing are named: at the beginning, in the middle, at the end, and all of them", async () => {
  const own = await logOf(9);
  await pastTriggers(own, "delete from auth.audit_log where chain_seq in (1, 4, 5, 9)");
  assert.deepEqual(told(await verifyAll(own)), [
    "missing 1: row 1 of chain 1 is missing",
    "missing 4: rows 4 to 5 of chain 1 are missing",
    "missing 9: row 9 of chain 1 is missing",
  ]);
  await pastTriggers(own, "truncate auth.audit_log");
  assert.deepEqual(told(await verifyAll(own)), ["missing 1: rows 1 to 9 of chain 1 are missing"]);
});

test("rows that have changed places are named with the place at which they were written", async () => {
  const own = await logOf(6);
  await pastTriggers(
    own,
    `drop index auth.audit_log_chain;
     update auth.audit_log set chain_seq = case chain_seq when 2 then 5 else 2 end where chain_seq in (2, 5)`,
  );
  assert.deepEqual(told(await verifyAll(own)), [
    "reordered 2: row 5 (chain 1, place 2) was written at place 5",
    "reordered 5: row 2 (chain 1, place 5) was written at place 2",
  ]);
});

test("a row that was changed together with its hash no longer fits the one after it", async () => {
  const own = await logOf(4);
  await pastTriggers(
    own,
    `update auth.audit_log set result = 'deny' where chain_seq = 2;
     update auth.audit_log l set hash = auth.audit_hash(l) where chain_seq = 2`,
  );
  assert.deepEqual(told(await verifyAll(own)), [
    "changed 3: row 3 (chain 1, place 3) does not follow the row before it, which is another one",
  ]);
  await pastTriggers(
    own,
    `update auth.audit_log set result = 'deny' where chain_seq = 4;
     update auth.audit_log l set hash = auth.audit_hash(l) where chain_seq = 4`,
  );
  assert.equal(
    told(await verifyAll(own)).at(-1),
    "changed 4: row 4 of chain 1: the end that is noted for the chain is another one",
  );
});

test("a log that was written anew as a whole is found by ends that were noted before", async () => {
  const own = await logOf(4);
  const { heads } = await verifyAll(own);
  await insertAudit(own, [audited(SYSTEM, "later", "x")]);
  assert.deepEqual(told(await verifyAll(own, heads)), []);
  await pastTriggers(
    own,
    `delete from auth.audit_log; update auth.audit_chain set first_seq = 1, last_seq = 0, last_hash = repeat('0', 64)`,
  );
  await insertAudit(own, [audited(SYSTEM, "later", "x")]);
  assert.deepEqual(told(await verifyAll(own)), []);
  assert.deepEqual(told(await verifyAll(own, heads)), ["missing 4: chain 1 ended at 4 before, and is shorter now"]);
  for (let row = 0; row < 4; row += 1) await insertAudit(own, [audited(SYSTEM, "later", "x")]);
  assert.match(told(await verifyAll(own, heads))[0] ?? "", /^changed 4: .* the chain was written anew$/);
});

test("rows of older versions count as before the chains; a row added past the trigger is named", async () => {
  const own = await logOf(1);
  const row = "(actor_kind, action, resource, rule, result) values ('system', 'a', 'b', 'c', 'allow')";
  await pastTriggers(own, `insert into auth.audit_log ${row}; update auth.audit_chain set after_audit_id = 2`);
  const old = await verifyAll(own);
  assert.deepEqual([old.before, told(old)], [1, []]);
  await pastTriggers(own, `insert into auth.audit_log ${row}`);
  assert.deepEqual(told(await verifyAll(own)), ["unchained null: row 3 is in no chain: it was added past the trigger"]);
});

test("transactions that add rows side by side do not wait for each other, and leave no gap when they are rolled back", async () => {
  const { sql } = database;
  const add = (tx: Pick<Database, "sql">) => insertAudit({ sql: tx.sql } as Database, [audited(SYSTEM, "beside", "x")]);
  await sql.begin(async (one) => {
    await add({ sql: one as unknown as Database["sql"] });
    await sql.begin(async (two) => {
      await add({ sql: two as unknown as Database["sql"] });
      await add(database);
    });
    await assert.rejects(
      sql.begin(async (three) => {
        await add({ sql: three as unknown as Database["sql"] });
        throw new Error("rolled back");
      }),
      /rolled back/,
    );
  });
  const check = await verifyAll(database);
  assert.deepEqual([check.rows, told(check), check.heads.map(({ chain }) => chain)], [3, [], [1, 2, 3]]);
});

test("a statement writes the head of its chain once, however many rows it adds", async () => {
  const own = await openServiceDatabase();
  const updates = await own.sql.begin(async (tx) => {
    const rows = Array.from({ length: 50 }, (_, index) => audited(SYSTEM, "many", `x/${index}`));
    await insertAudit({ sql: tx } as unknown as Database, rows);
    return await tx`select n_tup_upd::int as count from pg_stat_xact_user_tables where relname = 'audit_chain'`;
  });
  assert.deepEqual({ ...updates[0] }, { count: 1 });
  const check = await verifyAll(own);
  assert.deepEqual([check.rows, told(check), check.heads.length], [50, [], 1]);
});

test("a statement that is undone within its transaction leaves no gap, and several in one transaction follow on each other", async () => {
  const own = await openServiceDatabase();
  const entries = [audited(SYSTEM, "some", "x"), audited(SYSTEM, "some", "y")];
  await own.sql.begin(async (tx) => {
    const add = (sql: typeof tx) => insertAudit({ sql } as unknown as Database, entries);
    await add(tx);
    await assert.rejects(
      tx.savepoint(async (inner) => {
        await add(inner);
        await inner`insert into auth.audit_log (actor_kind, action, resource, rule, result)
          values ('system', 'a', 'b', 'c', 'allow'), ('system', 'a', 'b', 'c', 'no such result')`;
      }),
      { code: "23514" },
    );
    await add(tx);
  });
  const check = await verifyAll(own);
  assert.deepEqual([check.rows, told(check), check.heads.map(({ seq }) => seq)], [4, [], [4]]);
});

test("two inserts in the parts of one statement are one link after another", async () => {
  const own = await openServiceDatabase();
  const row = "insert into auth.audit_log (actor_kind, action, resource, rule, result)";
  await own.sql.unsafe(`
    with one as (${row} select 'system', 'one', n::text, 'c', 'allow' from generate_series(1, 5) n returning chain_seq),
      two as (${row} select 'system', 'two', n::text, 'c', 'allow' from generate_series(1, 5) n returning chain_seq)
    select * from two, one`);
  const check = await verifyAll(own);
  assert.deepEqual([check.rows, told(check), check.heads.map(({ seq }) => seq)], [10, [], [10]]);
});

test("retention deletes from the beginning of each chain, and what is left is whole", async () => {
  const own = await openServiceDatabase();
  await own.sql`
    insert into auth.audit_log (at, actor_kind, action, resource, rule, result)
    select now() - n * interval '1 day', 'system', 'old', 'x', 'system', 'allow' from unnest(array[9, 8, 2, 7, 1]) n`;
  assert.equal(await deleteOldAudit(own, 5, 100), 2);
  const check = await verifyAll(own);
  assert.deepEqual([check.rows, told(check)], [3, []]);
  // The row of seven days is behind a newer one: it goes with that.
  assert.equal(await deleteOldAudit(own, 5, 100), 0);
  assert.equal(await deleteOldAudit(own, 1, 100), 3);
  assert.deepEqual((await verifyAll(own)).rows, 0);
  await insertAudit(own, [audited(SYSTEM, "later", "x")]);
  const later = await verifyAll(own);
  assert.deepEqual([later.rows, told(later)], [1, []]);
});

test("rows from the middle of a chain cannot be deleted, not even in the name of retention; nor can chains be changed", async () => {
  const own = await openServiceDatabase();
  await own.sql`
    insert into auth.audit_log (at, actor_kind, action, resource, rule, result)
    select now() - n * interval '1 day', 'system', 'old', 'x', 'system', 'allow' from unnest(array[9, 8, 7]) n`;
  await assert.rejects(
    own.sql.begin(async (tx) => {
      await tx`select set_config('flow.audit_retention', 'on', true)`;
      await tx`delete from auth.audit_log where chain_seq = 2`;
    }),
    { code: "42501", message: /only the oldest rows of chain 1 may be deleted/ },
  );
  for (const attempt of [
    () => own.sql`update auth.audit_chain set last_seq = 9`,
    () => own.sql`delete from auth.audit_chain`,
    () => own.sql`insert into auth.audit_chain (chain, after_audit_id) values (65, 0)`,
    () => own.sql`truncate auth.audit_chain`,
  ]) {
    await assert.rejects(attempt, { code: "42501", message: /auth.audit_chain belongs to the audit log/ });
  }
});
