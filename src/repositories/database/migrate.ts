import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { packagePath } from "../../platform/system/package-file.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { type Database, type Transaction, transaction } from "./database.ts";
import { databaseMessage, unreachable } from "./error-codes.ts";

/** The result of {@link migrate}. */
export interface Migrated {
  /** Names of the migrations that this call applied, in order. */
  applied: string[];
  /** Those of them that come before one which the database had already: they were merged late. Worth a warning. */
  late: string[];
  /** Name of the newest migration in the database. */
  version: string;
}

/** One file of `migrations/`. */
interface Migration {
  /** File name without its ending; names sort in the order of application. */
  name: string;
  /** SQL: any number of statements. */
  text: string;
  /** Of the text with plain line ends, in hex: a checkout that writes its own line ends is no edit. */
  sha256: string;
}

/** Any number: what all servers of this program lock while they migrate ("flow" in ASCII). */
const LOCK = 0x666c6f77;
/** Queries of running servers wait behind a migration that waits for a table: it gives up instead, and can be tried again. */
const TABLE_LOCK_MS = 10_000;
const SERVER_VERSION_MIN = 14;

/**
 * Brings the schema to that of this program. Any number of processes may do so at once: one applies, the others wait and find
 * nothing left to do. Each migration and its record are one transaction, so a failure leaves the ones before it in place.
 *
 * The journal is `flow_migrations.applied`. All its names count, not the newest one alone: a migration with a lower
 * number that was merged late is applied too, and reported as `late`.
 *
 * Throws `FlowError` SCHEMA_MISMATCH: the database was migrated by a newer program, a migration was edited after it was
 * applied, one failed, or the server is too old. UNAVAILABLE when it cannot be reached.
 */
export async function migrate(database: Database, folder: string = packagePath("migrations")): Promise<Migrated> {
  const migrations = await readMigrations(folder);
  const applied: string[] = [];
  const late: string[] = [];
  for (;;) {
    const step = await guarded(database, () => transaction(database, (tx) => applyNext(tx, migrations)));
    if (step.name === undefined) return { applied, late, version: step.version };
    applied.push(step.name);
    if (step.late) late.push(step.name);
  }
}

/** One applied migration (`name`), or the end. */
type Step = { name: string; late: boolean } | { name: undefined; version: string };

/** Under the lock, and from the journal as it is now: another process may have applied some since the step before. */
async function applyNext(tx: Transaction, migrations: readonly Migration[]): Promise<Step> {
  await lock(tx);
  const journal = await readJournal(tx);
  refuseUnknown(journal, migrations);
  refuseEdited(journal, migrations);
  const next = migrations.find(({ name }) => !journal.has(name));
  const newest = [...journal.keys()].sort().at(-1) ?? "";
  if (next === undefined) return { name: undefined, version: newest };
  await run(tx, next);
  return { name: next.name, late: next.name < newest };
}

async function lock({ sql }: Transaction): Promise<void> {
  // Waiting here may take as long as another process migrates.
  await sql`set local statement_timeout = 0`;
  await sql`select pg_advisory_xact_lock(${LOCK})`;
  await sql.unsafe(`set local lock_timeout = ${TABLE_LOCK_MS}`);
}

/** Names and checksums of the applied migrations. Creates the journal in an empty database. */
async function readJournal({ sql }: Transaction): Promise<Map<string, string>> {
  const [state] = await sql<{ exists: boolean; major: number; encoding: string }[]>`
    select to_regclass('flow_migrations.applied') is not null as exists,
      current_setting('server_version_num')::int / 10000 as major,
      current_setting('server_encoding') as encoding`;
  if (state === undefined || !state.exists) {
    refuseServer(state?.major ?? 0, state?.encoding ?? "");
    await sql.unsafe(JOURNAL);
    return new Map();
  }
  const rows = await sql<{ name: string; sha256: string }[]>`select name, sha256 from flow_migrations.applied`;
  return new Map(rows.map(({ name, sha256 }) => [name, sha256]));
}

/** In a separate schema: the first migration creates the schema `flow`. */
const JOURNAL = `
  create schema if not exists flow_migrations;
  create table flow_migrations.applied (
    name text collate "C" primary key,
    sha256 text not null,
    applied_at timestamptz not null default clock_timestamp()
  )`;

async function run({ sql }: Transaction, migration: Migration): Promise<void> {
  try {
    await sql.unsafe(migration.text);
    await sql`insert into flow_migrations.applied (name, sha256) values (${migration.name}, ${migration.sha256})`;
  } catch (cause) {
    // A server that went away is no fault of the migration.
    if (unreachable(cause) !== undefined) throw cause;
    const message = `Migration ${migration.name} failed: ${databaseMessage(cause)}. Nothing of it was kept; `;
    const hint = "start again when the reason is gone";
    throw new FlowError("SCHEMA_MISMATCH", message + hint, { cause });
  }
}

function refuseServer(major: number, encoding: string): void {
  if (major < SERVER_VERSION_MIN) {
    const message = `The database server is PostgreSQL ${major}; flow needs ${SERVER_VERSION_MIN} or later`;
    throw new FlowError("SCHEMA_MISMATCH", `${message}. Point FLOW_DATABASE_URL at a newer server`);
  }
  if (encoding !== "UTF8") {
    const message = `The database stores text as ${encoding}; flow needs UTF8`;
    throw new FlowError(
      "SCHEMA_MISMATCH",
      `${message}. Create one with: create database … encoding 'UTF8' template template0`,
    );
  }
}

function refuseUnknown(journal: ReadonlyMap<string, string>, migrations: readonly Migration[]): void {
  const known = new Set(migrations.map(({ name }) => name));
  const unknown = [...journal.keys()].filter((name) => !known.has(name)).sort();
  if (unknown.length === 0) return;
  const message = `The database was migrated by a newer flow: this program does not know ${unknown.join(", ")}`;
  const hint = "Start that version or a later one, or point FLOW_DATABASE_URL at another database. Nothing was changed";
  throw new FlowError("SCHEMA_MISMATCH", `${message}. ${hint}`);
}

function refuseEdited(journal: ReadonlyMap<string, string>, migrations: readonly Migration[]): void {
  const edited = migrations.filter(({ name, sha256 }) => journal.has(name) && journal.get(name) !== sha256);
  if (edited.length === 0) return;
  const names = edited.map(({ name }) => name).join(", ");
  const message = `Migration ${names} is not the one that the database was migrated with: it was edited afterwards`;
  const hint = "Restore it and put the change into a new migration; a database for development may be dropped instead";
  throw new FlowError("SCHEMA_MISMATCH", `${message}. ${hint}`);
}

/** Errors of the connection name the server. */
async function guarded<T>(database: Database, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof FlowError || unreachable(error) === undefined) throw error;
    const message = `Cannot use the database at ${database.place}: ${databaseMessage(error)}`;
    throw new FlowError("UNAVAILABLE", `${message}. Check that it runs, and FLOW_DATABASE_URL`, {
      cause: error,
    });
  }
}

const FILE = /^(\d{4}_[a-z0-9_]+)\.sql$/;

/** All migrations of a folder in order. Throws `FlowError` FILE_UNREADABLE when it cannot be read or has none. */
async function readMigrations(folder: string): Promise<Migration[]> {
  try {
    const names = (await readdir(folder)).map((file) => FILE.exec(file)?.[1]).filter((name) => name !== undefined);
    if (names.length === 0) throw new Error("there is no migration in it");
    return await Promise.all(names.sort().map((name) => readMigration(folder, name)));
  } catch (cause) {
    const message = `Cannot read the database migrations in ${folder}: ${messageOf(cause)}`;
    const hint = "The installation is incomplete; install the package again";
    throw new FlowError("FILE_UNREADABLE", `${message}. ${hint}`, { cause });
  }
}

async function readMigration(folder: string, name: string): Promise<Migration> {
  const text = (await readFile(join(folder, `${name}.sql`), "utf8")).replaceAll("\r\n", "\n");
  return { name, text, sha256: createHash("sha256").update(text).digest("hex") };
}
