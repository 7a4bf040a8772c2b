import assert from "node:assert/strict";
import { before, test } from "node:test";
import { getTableColumns, getTableName, is } from "drizzle-orm";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";
import { columnsOf } from "../../../src/repositories/database/columns-of.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import * as audit from "../../../src/repositories/tables/audit.ts";
import * as auth from "../../../src/repositories/tables/auth.ts";
import * as batch from "../../../src/repositories/tables/batch.ts";
import * as bulk from "../../../src/repositories/tables/bulk.ts";
import * as catalog from "../../../src/repositories/tables/catalog.ts";
import * as event from "../../../src/repositories/tables/event.ts";
import * as execution from "../../../src/repositories/tables/execution.ts";
import * as result from "../../../src/repositories/tables/result.ts";
import * as runtime from "../../../src/repositories/tables/runtime.ts";
import * as secret from "../../../src/repositories/tables/secret.ts";
import { openServiceDatabase } from "../service-database.ts";

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

const TABLES = [audit, auth, batch, bulk, catalog, event, execution, result, runtime, secret]
  .flatMap((file) => Object.values<unknown>(file))
  .filter((each): each is PgTable => is(each, PgTable));

test("the columns of every table can be read, with an alias and without", async () => {
  assert.ok(TABLES.length > 20);
  for (const table of TABLES) {
    const { sql } = database;
    const names = Object.keys(getTableColumns(table)) as never[];
    const from = sql.unsafe(`${getTableConfig(table).schema}.${getTableName(table)}`);
    const list = columnsOf(table, names);
    const plain = await sql`select ${list(sql)} from ${from} limit 0`;
    const aliased = await sql`select ${list(sql, "t")} from ${from} as t limit 0`;
    for (const { columns } of [plain, aliased]) {
      assert.deepEqual(
        columns.map(({ name }) => name),
        names,
      );
    }
  }
});

test("a tagged statement reads the same values as the builder: ids, large numbers, times, JSON, bytes, arrays", async () => {
  const { sql, db } = database;
  await db.insert(runtime.runtime).values({
    runtimeId: "9007199254740993",
    kind: "worker",
    name: "w",
    status: "ready",
    labels: { zone: "a" },
    capabilities: ["http", 'odd "kind"'],
  });
  await db.insert(runtime.transient).values({
    bucket: "columns",
    key: "k",
    value: Buffer.from([0, 255]),
    revision: 2 ** 53 - 1,
    expiresAt: new Date("2026-11-21T01:02:03.004Z"),
  });
  for (const table of [runtime.runtime, runtime.transient] as PgTable[]) {
    const built = await db.select().from(table);
    const list = columnsOf(table, Object.keys(getTableColumns(table)) as never[]);
    const tagged = await sql`select ${list(sql)} from ${sql.unsafe(`flow.${getTableName(table)}`)}`;
    assert.deepEqual(
      tagged.map((row) => ({ ...row })),
      built,
    );
    assert.ok(built.length > 0);
  }
});

test("the row type is the table's: an unknown column, a wrong type and a column that was not read do not compile", () => {
  const list = columnsOf(execution.execution, ["executionId", "endedAt"]);
  type Listed = NonNullable<(typeof list)["row"]>;
  const row: Listed = { executionId: "1", endedAt: null };
  // @ts-expect-error the id is text
  const wrong: Listed = { executionId: 1, endedAt: null };
  // @ts-expect-error the list does not read it
  const missing = row.path;
  // @ts-expect-error the table has no such column
  const unknown = () => columnsOf(execution.execution, ["executionID"]);
  assert.ok([row, wrong, missing, unknown]);
});
