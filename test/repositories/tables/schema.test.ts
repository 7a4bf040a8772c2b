import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { before, test } from "node:test";
import { generateDrizzleJson, generateMigration } from "drizzle-kit/api";
import { is } from "drizzle-orm";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";
import { packagePath } from "../../../src/platform/system/package-file.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import * as approval from "../../../src/repositories/tables/approval.ts";
import * as audit from "../../../src/repositories/tables/audit.ts";
import * as access from "../../../src/repositories/tables/auth.ts";
import * as batch from "../../../src/repositories/tables/batch.ts";
import * as bulk from "../../../src/repositories/tables/bulk.ts";
import * as catalog from "../../../src/repositories/tables/catalog.ts";
import * as columns from "../../../src/repositories/tables/columns.ts";
import * as event from "../../../src/repositories/tables/event.ts";
import * as execution from "../../../src/repositories/tables/execution.ts";
import * as result from "../../../src/repositories/tables/result.ts";
import * as runtime from "../../../src/repositories/tables/runtime.ts";
import * as secret from "../../../src/repositories/tables/secret.ts";
import * as statistic from "../../../src/repositories/tables/statistic.ts";
import * as trigger from "../../../src/repositories/tables/trigger.ts";
import * as wait from "../../../src/repositories/tables/wait.ts";
import { describeSchema } from "../describe-schema.ts";
import { openServiceDatabase } from "../service-database.ts";

const MODULES = {
  ...access,
  ...approval,
  ...audit,
  ...batch,
  ...bulk,
  ...catalog,
  ...event,
  ...execution,
  ...result,
  ...runtime,
  ...secret,
  ...trigger,
  ...statistic,
  ...wait,
};
const DUMP = packagePath("test/repositories/tables/schema.sql");

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

test("the schema after all migrations is the one in schema.sql", async () => {
  const now = `-- The schema after all migrations, as the database describes it. Written by: FLOW_UPDATE=1 npm test -- repositories/tables/schema
${await describeSchema(database)}`;
  if (process.env["FLOW_UPDATE"] === "1") await writeFile(DUMP, now);
  assert.equal(await readFile(DUMP, "utf8"), now, "look at what changed, then write it: FLOW_UPDATE=1");
});

test("drizzle finds no difference between the tables in the code and the newest migration", async () => {
  const journal = JSON.parse(await readFile(packagePath("migrations/meta/_journal.json"), "utf8")) as {
    entries: { idx: number }[];
  };
  const newest = String(journal.entries.at(-1)?.idx ?? 0).padStart(4, "0");
  const before = JSON.parse(await readFile(packagePath(`migrations/meta/${newest}_snapshot.json`), "utf8"));
  const statements = await generateMigration(before, generateDrizzleJson({ ...columns, ...MODULES }, before.id));
  assert.deepEqual(statements, [], "npx drizzle-kit generate --name <what_changes>");
});

test("what the migrations make has the columns that the code's tables have", async () => {
  const tables = Object.values(MODULES).filter((value) => is(value, PgTable));
  const inCode = tables.map((table) => {
    const { schema, name: plain, columns: list } = getTableConfig(table);
    const name = `${schema}.${plain}`;
    return { name, columns: list.map((column) => `${column.name}${column.notNull ? " not null" : ""}`).sort() };
  });
  const rows = await database.sql<{ name: string; columns: string[] }[]>`
    select nspname || '.' || relname as name,
      array_agg(attname || case when attnotnull then ' not null' else '' end order by attname collate "C") as columns
    from pg_class join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped
    join pg_namespace on pg_namespace.oid = relnamespace
    where nspname in ('flow', 'auth') and relkind in ('r', 'p') and not relispartition
    group by 1`;
  const byName = (left: { name: string }, right: { name: string }) => (left.name < right.name ? -1 : 1);
  assert.deepEqual(inCode.sort(byName), [...rows].map((row) => ({ ...row })).sort(byName));
});

test("the tables that are updated all the time leave room for it, and the log has one index", async () => {
  const full = await database.sql`
    select relname from pg_class where relnamespace = 'flow'::regnamespace
      and relname in ('execution', 'command', 'runtime', 'batch', 'execution_snapshot')
      and not coalesce(reloptions::text like '%fillfactor=%', false)`;
  assert.deepEqual([...full], []);
  const indexes =
    await database.sql`select indexrelid::regclass::text from pg_index where indrelid = 'flow.event_log'::regclass`;
  assert.equal(indexes.length, 1);
  const foreign =
    await database.sql`select conname from pg_constraint where contype = 'f' and connamespace = 'flow'::regnamespace`;
  assert.deepEqual([...foreign], []);
});
