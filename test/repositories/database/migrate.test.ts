import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { packagePath } from "../../../src/platform/system/package-file.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { type Migrated, migrate } from "../../../src/repositories/database/migrate.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { open, openEmptyDatabase } from "../service-database.ts";

const MIGRATIONS = packagePath("migrations");
/** What migrating processes lock. */
const LOCK = 0x666c6f77;

/** A folder with the given migrations, by name; removed after the test. */
async function folderOf(context: TestContext, migrations: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "flow-migrations-"));
  context.after(() => rm(folder, { recursive: true }));
  for (const [name, text] of Object.entries(migrations)) await writeFile(join(folder, `${name}.sql`), text);
  return folder;
}

async function journal({ sql }: Database): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`select name from flow_migrations.applied order by name`;
  return rows.map(({ name }) => name);
}

async function hasTable({ sql }: Database, name: string): Promise<boolean> {
  const [row] = await sql<[{ exists: boolean }]>`select to_regclass(${name}) is not null as exists`;
  return row.exists;
}

function refusal(code: string, ...parts: string[]) {
  return (error: unknown) => {
    assert.ok(error instanceof FlowError, String(error));
    assert.equal(error.code, code);
    for (const part of parts) assert.ok(error.message.includes(part), `"${part}" is missing in: ${error.message}`);
    return true;
  };
}

test("an empty database gets every migration once, and the second time none", async () => {
  const database = await openEmptyDatabase();
  const names = (await readdir(MIGRATIONS)).filter((file) => file.endsWith(".sql")).map((file) => file.slice(0, -4));
  const first = await migrate(database);
  assert.deepEqual(first, { applied: names.sort(), late: [], version: names.at(-1) });
  assert.deepEqual(await migrate(database), { applied: [], late: [], version: names.at(-1) });
  assert.deepEqual(await journal(database), names);
});

test("five processes that start at once: each migration is applied by one of them, and all of them work", async () => {
  const database = await openEmptyDatabase();
  const program = fileURLToPath(new URL("../migrate-process.js", import.meta.url));
  const run = () => promisify(execFile)(process.execPath, [program, database.url]);
  const ended = await Promise.all(Array.from({ length: 5 }, run));
  const results = ended.map(({ stdout }) => JSON.parse(stdout) as Migrated);
  const applied = results.flatMap((result) => result.applied);
  assert.deepEqual(applied.sort(), await journal(database));
  assert.equal(new Set(results.map(({ version }) => version)).size, 1);
});

test("a database that a newer program migrated is refused, and nothing is changed", async (context) => {
  const database = await openEmptyDatabase();
  const newer = await folderOf(context, { "0000_a": "create table a ()", "0002_c": "create table c ()" });
  await migrate(database, newer);
  const ours = await folderOf(context, { "0000_a": "create table a ()", "0001_b": "create table b ()" });
  await assert.rejects(
    migrate(database, ours),
    refusal("SCHEMA_MISMATCH", "newer flow", "0002_c", "Start that version", "FLOW_DATABASE_URL"),
  );
  assert.equal(await hasTable(database, "b"), false);
});

test("a migration with a lower number that was merged late is applied and reported", async (context) => {
  const database = await openEmptyDatabase();
  const folder = await folderOf(context, { "0000_a": "create table a ()", "0002_c": "create table c ()" });
  await migrate(database, folder);
  await writeFile(join(folder, "0001_b.sql"), "create table b ()");
  await writeFile(join(folder, "0003_d.sql"), "create table d ()");
  assert.deepEqual(await migrate(database, folder), {
    applied: ["0001_b", "0003_d"],
    late: ["0001_b"],
    version: "0003_d",
  });
  assert.equal(await hasTable(database, "b"), true);
});

test("a migration that was edited after it was applied is refused", async (context) => {
  const database = await openEmptyDatabase();
  const folder = await folderOf(context, { "0000_a": "create table a ()" });
  await migrate(database, folder);
  await writeFile(join(folder, "0000_a.sql"), "create table a (more int)");
  await writeFile(join(folder, "0001_b.sql"), "create table b ()");
  await assert.rejects(migrate(database, folder), refusal("SCHEMA_MISMATCH", "0000_a", "edited", "new migration"));
  assert.equal(await hasTable(database, "b"), false);
});

test("other line ends are no edit", async (context) => {
  const database = await openEmptyDatabase();
  const folder = await folderOf(context, { "0000_a": "create table a ();\ncreate table b ();\n" });
  await migrate(database, folder);
  await writeFile(join(folder, "0000_a.sql"), "create table a ();\r\ncreate table b ();\r\n");
  assert.deepEqual((await migrate(database, folder)).applied, []);
});

test("a migration that fails leaves nothing of itself, keeps those before it, and can be tried again", async (context) => {
  const database = await openEmptyDatabase();
  const broken = "create table half (); insert into missing values (1);";
  const folder = await folderOf(context, { "0000_a": "create table a ()", "0001_b": broken });
  await assert.rejects(
    migrate(database, folder),
    refusal("SCHEMA_MISMATCH", "0001_b", 'relation "missing" does not exist', "42P01"),
  );
  assert.deepEqual(await journal(database), ["0000_a"]);
  assert.equal(await hasTable(database, "half"), false);
  await writeFile(join(folder, "0001_b.sql"), "create table half ()");
  assert.deepEqual((await migrate(database, folder)).applied, ["0001_b"]);
});

test("a role that may not create says so, with the migration's name", async (context) => {
  const database = await openEmptyDatabase();
  const folder = await folderOf(context, { "0000_a": "create schema a" });
  // Roles are the server's, which other test files use too.
  const role = `weak_${process.pid}`;
  await database.sql.unsafe(`create schema flow_migrations; create role ${role} login password 'weak';
    create table flow_migrations.applied (name text primary key, sha256 text, applied_at timestamptz default now());
    grant usage on schema flow_migrations to ${role}; grant all on flow_migrations.applied to ${role}`);
  const weak = open(database.url.replace(/\/\/[^@]+@/, `//${role}:weak@`));
  await assert.rejects(migrate(weak, folder), refusal("SCHEMA_MISMATCH", "0000_a", "permission denied"));
});

test("a database that does not store Unicode is refused with what to do", async () => {
  const database = await openEmptyDatabase("encoding 'SQL_ASCII' template template0");
  await assert.rejects(migrate(database), refusal("SCHEMA_MISMATCH", "SQL_ASCII", "UTF8", "create database"));
  assert.equal(await hasTable(database, "flow_migrations.applied"), false);
});

test("a server that cannot be reached is named, its password is not", async () => {
  const nowhere = open("postgres://someone:very-secret@127.0.0.1:1/flow");
  await assert.rejects(migrate(nowhere), (error) => {
    refusal("UNAVAILABLE", "127.0.0.1:1/flow", "ECONNREFUSED", "FLOW_DATABASE_URL")(error);
    assert.ok(!(error as Error).message.includes("very-secret"));
    return true;
  });
});

test("a wrong password and a missing database are distinguished from a server that is down", async () => {
  const { url } = await openEmptyDatabase();
  const stranger = open(url.replace(/\/\/[^@]+@/, "//nobody:wrong@"));
  await assert.rejects(migrate(stranger), refusal("UNAVAILABLE", "password authentication failed"));
  const elsewhere = open(url.replace(/\/[^/]+$/, "/missing"));
  await assert.rejects(migrate(elsewhere), refusal("UNAVAILABLE", 'database "missing" does not exist'));
});

test("a migration waits ten seconds at most for a table that is in use", async (context) => {
  const database = await openEmptyDatabase();
  const folder = await folderOf(context, {
    "0000_a": "create table seen as select current_setting('lock_timeout') as v",
  });
  await migrate(database, folder);
  const [seen] = await database.sql<[{ v: string }]>`select v from seen`;
  assert.equal(seen.v, "10s");
});

test("a process that waits for another's migration is not ended by the limit of its statements", async (context) => {
  const database = await openEmptyDatabase();
  const folder = await folderOf(context, { "0000_a": "create table a ()" });
  // The driver reserves only what is connected already (`fetch_types: false`).
  await database.sql`select`;
  const holder = await database.sql.reserve();
  await holder`select pg_advisory_lock(${LOCK})`;
  const hasty = open(database.url, { statementMs: 200 });
  const waiting = migrate(hasty, folder);
  for (let overdue = false; !overdue; ) {
    const waits = await holder`
      select from pg_stat_activity
      where datname = current_database() and wait_event = 'advisory'
        and clock_timestamp() - query_start > interval '300 milliseconds'`;
    overdue = waits.length > 0;
  }
  await holder`select pg_advisory_unlock(${LOCK})`;
  holder.release();
  assert.deepEqual((await waiting).applied, ["0000_a"]);
});

test("a folder without migrations means an incomplete installation", async (context) => {
  const folder = await folderOf(context, {});
  const database = await openEmptyDatabase();
  await assert.rejects(migrate(database, folder), refusal("FILE_UNREADABLE", folder, "install the package again"));
  const missing = join(folder, "missing");
  await assert.rejects(migrate(database, missing), refusal("FILE_UNREADABLE", missing, "ENOENT"));
});
