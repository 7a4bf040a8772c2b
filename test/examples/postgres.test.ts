import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import postgres from "postgres";
import { createTestDatabase } from "../support/database/postgres.ts";
import { runExample } from "./run-flow.ts";

/* load_csv against a real PostgreSQL. */

const TOTAL = 240;
let env: Record<string, string>;
let sql: postgres.Sql;
let folder: string;

before(async () => {
  const { url, ...data } = await createTestDatabase();
  env = { FLOW_CREDENTIAL_PG_DEMO: JSON.stringify({ type: "sqldb", data }) };
  sql = postgres(url, { onnotice: () => undefined });
  folder = await mkdtemp(join(tmpdir(), "flow-examples-"));
});
after(async () => {
  await sql.end();
  await rm(folder, { recursive: true });
});

test("load_csv loads every row of the file in batches, and a second run changes nothing", async () => {
  const first = await runExample("load_csv", {}, env);
  assert.equal(first.status, "COMPLETED", first.stderr);
  const [known] = await sql`select count(*)::int as rows, sum(amount)::float as amount from orders`;
  assert.deepEqual(first.result, { read: TOTAL, batches: 5, written: TOTAL, rows: TOTAL, amount: known?.["amount"] });
  assert.equal(known?.["rows"], TOTAL);
  const [awkward] = await sql`select count(*)::int as rows from orders where customer = ${"O'Brien, Pat"}`;
  assert.ok(awkward?.["rows"] > 0, "a quoted value with a comma and an apostrophe arrives as it is");

  const second = await runExample("load_csv", { batch_size: 7 }, env);
  assert.equal(second.status, "COMPLETED", second.stderr);
  assert.deepEqual(second.result, { ...(first.result as object), batches: 35 });
});

test("load_csv updates a row that is there with what the file says now", async () => {
  const csv = join(folder, "changed.csv");
  await writeFile(csv, "order_id,customer,ordered_on,amount\n1,Somebody Else,2025-06-01,3.50\n");
  const report = await runExample("load_csv", { csv }, env);
  assert.equal(report.status, "COMPLETED", report.stderr);
  const [row] = await sql`select customer, amount::float from orders where order_id = 1`;
  assert.deepEqual({ ...row }, { customer: "Somebody Else", amount: 3.5 });
});

test("load_csv fails for a row that breaks a rule of the table, and says which rule", async () => {
  const csv = join(folder, "negative.csv");
  await writeFile(csv, "order_id,customer,ordered_on,amount\n900,Nobody,2025-06-01,-1\n");
  const report = await runExample("load_csv", { csv }, env);
  assert.equal(report.status, "FAILED");
  assert.equal(report.error?.kind, "db_constraint");
  assert.match(report.error?.message ?? "", /orders_amount_check/);
  assert.equal((await sql`select from orders where order_id = 900`).length, 0);
});

test("load_csv says which credential is missing", async () => {
  const report = await runExample("load_csv");
  assert.equal(report.status, "FAILED");
  assert.match(report.error?.message ?? "", /no credential 'pg_demo'.*FLOW_CREDENTIALS_FILE/);
});
