import assert from "node:assert/strict";
import { before, test } from "node:test";
import { sql as built, eq } from "drizzle-orm";
import postgres from "postgres";
import {
  type Database,
  openDatabase,
  type Transaction,
  transaction,
} from "../../../src/repositories/database/database.ts";
import { unreachable } from "../../../src/repositories/database/error-codes.ts";
import { transient } from "../../../src/repositories/tables/runtime.ts";
import { openServiceDatabase } from "../service-database.ts";

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

const LARGE = "9007199254740993";

test("tagged statements read 64-bit integers as text, times as dates, JSON as values", async () => {
  const [row] = await database.sql`
    select ${LARGE}::bigint as id, '2026-11-21T01:02:03.004Z'::timestamptz as at, '{"a": [1, null]}'::jsonb as json`;
  assert.deepEqual({ ...row }, { id: LARGE, at: new Date("2026-11-21T01:02:03.004Z"), json: { a: [1, null] } });
});

test("tagged statements write JSON and dates, in and outside a transaction that uses the builder too", async () => {
  const at = new Date("2026-11-21T01:02:03.004Z");
  const read = async ({ sql }: Pick<Database, "sql">) => {
    const [row] = await sql`select ${sql.json({ text: 'it\'s "quoted"' })}::jsonb as json, ${at}::timestamptz as at`;
    return { ...row };
  };
  const expected = { json: { text: 'it\'s "quoted"' }, at };
  assert.deepEqual(await read(database), expected);
  await transaction(database, async (tx) => {
    await tx.db.execute(built`select 1`);
    assert.deepEqual(await read(tx as unknown as Database), expected);
  });
  // The builder of a transaction must not have changed the pool's types.
  assert.deepEqual(await read(database), expected);
});

test("arrays go in and come out as lists: ids as text, numbers, texts with whatever is in them", async () => {
  const texts = ["plain", "", 'with "quotes", {braces} and \\', "NULL", "null", " a "];
  const [row] = await database.sql`
    select ${[LARGE, "1"]}::bigint[] as ids, ${[1, -2]}::int[] as numbers, ${texts}::text[] as texts, '{}'::bigint[] as none,
      ${"{1,2}"}::bigint[] as written, array['a', null] as gaps`;
  assert.deepEqual(
    { ...row },
    { ids: [LARGE, "1"], numbers: [1, -2], texts, none: [], written: ["1", "2"], gaps: ["a", null] },
  );
});

test("the builder writes and reads the same types", async () => {
  const at = new Date("2026-11-21T01:02:03.004Z");
  const value = Buffer.from([0, 255, 10]);
  const [row] = await database.db.insert(transient).values({ bucket: "b", key: "k", value, expiresAt: at }).returning();
  assert.deepEqual(row?.expiresAt, at);
  assert.deepEqual(Buffer.from(row?.value ?? []), value);
  assert.equal(row?.revision, 1);
});

test("the builder prepares a statement once per connection, as tagged statements are, unless the pool does not prepare", async () => {
  const { host, port, user, pass, database: name } = database.sql.options;
  for (const [prepare, expected] of [
    [true, 1],
    [false, 0],
  ] as const) {
    const one = openDatabase(`postgres://${user}:${pass}@${host[0]}:${port[0]}/${name}`, {
      connectionsMax: 1,
      prepare,
    });
    const read = ({ db }: Pick<Database, "db">) => db.select().from(transient).where(eq(transient.bucket, "prepared"));
    for (let round = 0; round < 3; round += 1) await read(one);
    await transaction(one, read);
    const rows = await one.sql`
      select from pg_prepared_statements where statement like '%"transient"%' and statement not like '%pg_prepared%'`;
    assert.equal(rows.count, expected);
    await one.close();
  }
});

test("an error of the builder is the driver's own: without the statement and its values", async () => {
  const entry = { bucket: "b", key: "twice", value: Buffer.from("secret") };
  await database.db.insert(transient).values(entry);
  const again = ({ db }: Pick<Database, "db">) => db.insert(transient).values(entry).returning();
  const isPlain = (error: unknown) => {
    assert.ok(error instanceof postgres.PostgresError, String(error));
    assert.equal(error.constraint_name, "transient_pkey");
    assert.doesNotMatch(error.message, /insert|params/);
    return true;
  };
  await assert.rejects(again(database), isPlain);
  await assert.rejects(transaction(database, again), isPlain);
});

test("a statement of the builder that takes too long is cancelled, as a tagged one is", async () => {
  const { host, port, user, pass, database: name } = database.sql.options;
  const hasty = openDatabase(`postgres://${user}:${pass}@${host[0]}:${port[0]}/${name}`, { statementMs: 50 });
  await assert.rejects(hasty.db.select({ nap: built`pg_sleep(10)` }).from(transient), { code: "57014" });
  await hasty.close();
});

test("a transaction is committed when its work returns, and gives what it returned", async () => {
  const key = await transaction(database, async ({ sql, db }) => {
    await sql`insert into flow.transient (bucket, key, value) values ('t', 'kept', ''::bytea)`;
    await db.insert(transient).values({ bucket: "t", key: "kept-too", value: Buffer.alloc(0) });
    return "kept";
  });
  assert.equal(key, "kept");
  const rows = await database.sql`select key from flow.transient where bucket = 't' order by key`;
  assert.deepEqual(
    rows.map(({ key: name }) => name),
    ["kept", "kept-too"],
  );
});

test("a transaction is rolled back when its work throws, and throws the same error", async () => {
  const fault = new Error("no");
  const work = transaction(database, async ({ db }) => {
    await db.insert(transient).values({ bucket: "t", key: "gone", value: Buffer.alloc(0) });
    throw fault;
  });
  await assert.rejects(work, (error) => error === fault);
  assert.deepEqual([...(await database.sql`select from flow.transient where key = 'gone'`)], []);
});

const isLost = (error: unknown) => unreachable(error) !== undefined;

test("a transaction whose session is ended in a statement fails, and its connection serves others", async () => {
  for (let round = 0; round < 5; round += 1) {
    const work = transaction(database, async ({ sql }) => {
      await sql`select pg_terminate_backend(pg_backend_pid())`;
      await sql`select 1`;
    });
    await assert.rejects(work, isLost);
  }
  const [row] = await database.sql`select 1 as one`;
  assert.equal(row?.["one"], 1);
});

test("a transaction whose session is ended between two statements sends none of those that follow", async () => {
  const { host, port, user, pass, database: name } = database.sql.options;
  const one = openDatabase(`postgres://${user}:${pass}@${host[0]}:${port[0]}/${name}`, { connectionsMax: 1 });
  for (const [what, next] of [
    [
      "a statement",
      async ({ sql }: Transaction) =>
        void (await sql`insert into flow.transient (bucket, key, value) values ('t', 'lost', '')`),
    ],
    ["one of the builder", async ({ db }: Transaction) => void (await db.execute(built`select 1`))],
    ["an error of its own", () => Promise.reject(new Error("no"))],
    ["the commit", () => Promise.resolve()],
  ] as const) {
    let ended: Promise<unknown> = Promise.resolve();
    let seen: unknown;
    const told = new Promise<void>((resolve) => {
      const work = transaction(one, async (tx) => {
        const [row] = await tx.sql`select pg_backend_pid() as pid`;
        await database.sql`select pg_terminate_backend(${row?.["pid"]})`;
        await assert.rejects(ended, isLost);
        await next(tx).catch((error: unknown) => {
          seen = error;
        });
        resolve();
      });
      ended = work;
      // It may fail before the test waits for it.
      work.catch(() => undefined);
    });
    await told;
    await assert.rejects(ended, isLost, what);
    if (what === "a statement" || what === "one of the builder") assert.ok(isLost(seen), `${what}: ${seen}`);
    // The same connection, made anew: nothing of the transaction stands in it.
    const [row] = await one.sql`select 1 as one`;
    assert.equal(row?.["one"], 1);
  }
  assert.equal((await database.sql`select from flow.transient where key = 'lost'`).count, 0);
  await one.close();
});

test("a statement that takes too long is ended by the server", async () => {
  const { host, port, user, pass, database: name } = database.sql.options;
  const hasty = openDatabase(`postgres://${user}:${pass}@${host[0]}:${port[0]}/${name}`, { statementMs: 20 });
  try {
    await assert.rejects(hasty.sql`select pg_sleep(60)`, { code: "57014" });
  } finally {
    await hasty.close();
    await hasty.close();
  }
});
