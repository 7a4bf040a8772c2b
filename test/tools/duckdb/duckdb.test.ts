import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, before, test } from "node:test";
import type { Json, JsonObject } from "../../../src/schema/words/json.ts";
import type { ToolResult } from "../../../src/schema/words/outcome.ts";
import { createDuckdbTool } from "../../../src/tools/duckdb/duckdb.ts";
import { toolCall } from "../../support/service/tool-call.ts";

let folder: string;
const tool = createDuckdbTool();

before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "flow-duckdb-")));
});

after(async () => {
  await tool.close?.();
  await rm(folder, { recursive: true, force: true });
});

function run(config: JsonObject, more: Parameters<typeof toolCall>[1] = {}): Promise<ToolResult> {
  return tool.run(toolCall(config, more));
}

async function value(expression: string, params: Json = []): Promise<Json> {
  const result = await run({ query: `select ${expression} as value`, params }, { executionId: "values" });
  assert.equal(result.error, undefined, result.error?.message);
  const { rows } = result.data as { rows: { value: Json }[] };
  return rows[0]!.value;
}

test("the last statement's rows are the result, every statement's are virtual", async () => {
  const result = await run({
    command: `create table people (id int, name text);
      insert into people values (1, 'Ada'), (2, 'Bo; "x"'); select * from people order by id;`,
  });
  assert.deepEqual(result.data, {
    status: "success",
    rows: [
      { id: 1, name: "Ada" },
      { id: 2, name: 'Bo; "x"' },
    ],
    row_count: 2,
    columns: ["id", "name"],
    statement_count: 3,
  });
  assert.deepEqual(result.virtual?.["command_0"], { status: "success", rows: [], row_count: 0, columns: [] });
  assert.deepEqual(result.virtual?.["command_1"], { status: "success", rows: [], row_count: 2, columns: [] });
});

test("an execution keeps its tables in memory from task to task, and another one does not see them", async () => {
  await run({ query: "create table kept as select 42 as n" }, { executionId: "7" });
  const same = await run({ query: "select n from kept" }, { executionId: "7" });
  assert.deepEqual((same.data as JsonObject)["rows"], [{ n: 42 }]);
  const other = await run({ query: "select n from kept" }, { executionId: "8" });
  assert.equal(other.error?.kind, "db_error");
  assert.equal(other.error?.code, "CATALOG_ERROR");
  assert.match(other.error?.message ?? "", /Table with name kept does not exist.*stays on its worker/s);
});

for (const [expression, expected] of [
  ["9007199254740991::bigint", 9007199254740991],
  ["9007199254740993::bigint", "9007199254740993"],
  ["170141183460469231731687303715884105727::hugeint", "170141183460469231731687303715884105727"],
  ["1.50::decimal(10, 2)", 1.5],
  ["'nan'::double", "NaN"],
  ["timestamp '2024-01-02 03:04:05.678901'", "2024-01-02T03:04:05.678901"],
  ["timestamptz '2024-01-02 03:04:05+02'", "2024-01-02T01:04:05Z"],
  ["timestamp 'infinity'", "infinity"],
  ["date '2024-01-02'", "2024-01-02"],
  ["time '03:04:05'", "03:04:05"],
  ["interval 1 month", "1 month"],
  ["[1, null, 3]", [1, null, 3]],
  ["{a: 1, b: [timestamp '2024-01-02 03:04:05']}", { a: 1, b: ["2024-01-02T03:04:05"] }],
  ["map {'k': 1::hugeint}", { k: 1 }],
  ["map {1: 'x'}", [{ key: 1, value: "x" }]],
  ["'\\xff\\x00'::blob", "/wA="],
  ["'{\"z\": 12345678901234567890}'::json", { z: "12345678901234567890" }],
  ["union_value(num := 2)", 2],
  ["'b'::enum('a', 'b')", "b"],
  ["null", null],
] as [string, Json][]) {
  test(`${expression} becomes ${JSON.stringify(expected)}`, async () => {
    assert.deepEqual(await value(expression), expected);
  });
}

test("parameters are bound as values, never as text of the statement", async () => {
  assert.equal(await value("$1", ["'; drop table people; --"]), "'; drop table people; --");
  assert.deepEqual(await value("$1::integer + $2", [1, 2]), 3);
  assert.equal(await value("? || ?", ["a", "b"]), "ab");
  assert.equal(await value("$name", { name: "Ada" }), "Ada");
  assert.deepEqual(await value("$1::integer[]", [[1, 2]]), [1, 2]);
  assert.deepEqual(await value("$1::double[]", [[1, 2.5]]), [1, 2.5]);
  assert.deepEqual(await value("$1::json", [{ a: [1, "x"] }]), { a: [1, "x"] });
  assert.equal(await value("$1 is null", [null]), true);
});

test("a parameter without a value is an error of the configuration", async () => {
  const { error } = await run({ query: "select $1, $2", params: [1] });
  assert.equal(error?.kind, "configuration");
  assert.match(error?.message ?? "", /uses the parameter \$2/);
});

for (const [name, config, kind, code, message] of [
  ["no SQL", {}, "configuration", "INVALID_CONFIG", /No SQL command provided/],
  ["only a comment", { query: "-- nothing" }, "configuration", "INVALID_CONFIG", /No SQL command provided/],
  ["SQL that is a number", { query: 1 }, "configuration", "INVALID_CONFIG", /expects SQL text/],
  ["params that are text", { query: "select 1", params: "x" }, "configuration", "INVALID_CONFIG", /a list of values/],
  [
    "a syntax error",
    { query: "selec 1" },
    "db_error",
    "PARSER_ERROR",
    /^The SQL failed: Parser Error: syntax error at or near "selec"\.$/,
  ],
  [
    "a wrong value",
    { query: "select 1; select 'a'::int" },
    "db_error",
    "CONVERSION_ERROR",
    /^SQL statement 2 of 2 failed: Conversion Error: Could not convert string 'a' to INT32/,
  ],
  [
    "a constraint",
    { query: "create temp table c (id int primary key); insert into c values (1), (1)" },
    "db_constraint",
    "CONSTRAINT_ERROR",
    /[Dd]uplicate key/,
  ],
] as [string, JsonObject, string, string, RegExp][]) {
  test(`${name} fails with ${code}`, async () => {
    const { status, error } = await run(config);
    assert.equal(status, "error");
    assert.equal(error?.kind, kind);
    assert.equal(error?.code, code);
    assert.match(error?.message ?? "", message);
  });
}

test("a transaction that is left open is rolled back and reported", async () => {
  const result = await run({ query: "create table o (id int); begin; insert into o values (1)" }, { executionId: "9" });
  assert.equal(result.error?.code, "TRANSACTION_LEFT_OPEN");
  const rows = await run({ query: "begin; commit; select * from o" }, { executionId: "9" });
  assert.deepEqual((rows.data as JsonObject)["rows"], []);
});

test("more rows than a task may give are refused, and the database goes on", async () => {
  const small = createDuckdbTool({ rowsMax: 3000 });
  const { error } = await small.run(toolCall({ query: "select * from range(1000000000)" }));
  assert.equal(error?.code, "RESULT_TOO_LARGE");
  assert.equal((await small.run(toolCall({ query: "select 1" }))).status, "ok");
  await small.close?.();
});

test("what does not fit into the memory of a database says so", async () => {
  const small = createDuckdbTool({ memory: "20MB" });
  const { error } = await small.run(
    toolCall({ query: "select * from range(50000000) order by random() limit 1 offset 49999999" }),
  );
  assert.equal(error?.code, "OUT_OF_MEMORY_ERROR");
  assert.match(error?.message ?? "", /FLOW_DUCKDB_MEMORY/);
  await small.close?.();
});

/** Runs for hours unless it is interrupted. */
const ENDLESS = "select count(*) from range(10000000000) a, range(10000000000) b where a.range % 7 = b.range % 3";

test("a cancelled statement is interrupted, and the connection's database stays usable", async () => {
  const aborter = new AbortController();
  const running = run({ query: ENDLESS }, { signal: aborter.signal, executionId: "5" });
  setImmediate(() => aborter.abort(new Error("stop")));
  assert.equal((await running).error?.kind, "cancelled");
  assert.equal((await run({ query: "select 1" }, { executionId: "5" })).status, "ok");
});

test("a time-out is of kind timeout, while reading rows too", async () => {
  const slow = await run({ query: ENDLESS }, { signal: AbortSignal.timeout(50) });
  assert.equal(slow.error?.kind, "timeout");
  const gone = await run({ query: "select 1" }, { signal: AbortSignal.abort(new Error("stop")) });
  assert.equal(gone.error?.kind, "cancelled");
});

test("a task that waits for its turn can be cancelled", async () => {
  const endless = new AbortController();
  const busy = [1, 2].map((n) => run({ query: ENDLESS }, { signal: endless.signal, executionId: `busy${n}` }));
  const wait = () => run({ query: "select 1" }, { signal: AbortSignal.timeout(100), executionId: "waits" });
  let waiting = await wait();
  // Until both of the others have their turn.
  while (waiting.error === undefined) waiting = await wait();
  assert.equal(waiting.error.kind, "timeout");
  endless.abort(new Error("stop"));
  for (const result of await Promise.all(busy)) assert.equal(result.error?.kind, "cancelled");
});

for (const query of [
  "from read_csv('/etc/passwd')",
  "from glob('/etc/*')",
  "copy (select 1) to '/tmp/flow-duckdb-escape.csv'",
  "attach '/tmp/flow-duckdb-escape.db'",
  "from read_parquet('http://127.0.0.1:1/x.parquet')",
  "install httpfs",
  "load httpfs",
  "export database '/tmp/flow-duckdb-escape'",
]) {
  test(`without allowed folders there is no way out: ${query}`, async () => {
    const { status, error } = await run({ query });
    assert.equal(status, "error");
    assert.match(error?.message ?? "", /disabled|Cannot access/i);
  });
}

for (const query of [
  "set enable_external_access = true",
  "set memory_limit = '100GB'",
  "set lock_configuration = false",
]) {
  test(`a task cannot give itself more: ${query}`, async () => {
    assert.equal((await run({ query })).status, "error");
  });
}

test("files are reached in the allowed folders, and nowhere else", async (t) => {
  const inside = join(folder, "allowed");
  await mkdir(inside);
  await writeFile(join(folder, "secret.csv"), "a\n1\n");
  await symlink(folder, join(inside, "link"));
  const files = createDuckdbTool({ files: [inside, join(folder, "absent")] });
  t.after(() => files.close?.());
  const call = (config: JsonObject) => files.run(toolCall(config));
  const database = join(inside, "shop.duckdb");
  assert.equal((await call({ database, query: "create table t as select 1 as a" })).status, "ok");
  const read = await call({ database, query: `copy t to '${inside}/t.csv'; select * from t` });
  assert.deepEqual((read.data as JsonObject)["rows"], [{ a: 1 }], "The file outlives the task");
  assert.equal((await call({ query: `from '${inside}/t.csv'` })).status, "ok");
  for (const path of [join(folder, "x.duckdb"), join(inside, "../x.duckdb"), join(inside, "link/x.duckdb"), "/etc/x"]) {
    const { error } = await call({ database: path, query: "select 1" });
    assert.match(error?.message ?? "", /not in a folder that tasks may use.*FLOW_DUCKDB_FILES/s, path);
  }
  await symlink(inside, join(folder, "alias"));
  const linked = createDuckdbTool({ files: [join(folder, "alias")] });
  t.after(() => linked.close?.());
  const byLink = await linked.run(toolCall({ query: `from '${folder}/alias/t.csv'` }));
  assert.equal(byLink.status, "ok", "A folder may be given, and named, by a link");
  const escaped = await call({ query: `from '${inside}/../secret.csv'` });
  assert.equal(escaped.error?.code, "PERMISSION_ERROR");
});

test("with all files, and without the network, files are all that it reaches", async (t) => {
  const files = createDuckdbTool({ files: "all" });
  t.after(() => files.close?.());
  const call = (query: string) => files.run(toolCall({ query }));
  const written = await call(`copy (select 7 as a) to '${folder}/all.csv'; from '${folder}/all.csv'`);
  assert.deepEqual((written.data as JsonObject)["rows"], [{ a: 7 }]);
  assert.equal((await call(`from '${relative(process.cwd(), folder)}/all.csv'`)).status, "ok", "Paths may be relative");
  for (const query of [
    "install httpfs",
    "load httpfs",
    "from read_csv('http://127.0.0.1:1/x.csv')",
    "attach 'postgres:host=x'",
  ]) {
    assert.equal((await call(query)).status, "error", query);
  }
});

test("no file at all without allowed folders", async () => {
  const { error } = await run({ database: join(folder, "y.duckdb"), query: "select 1" });
  assert.equal(error?.kind, "configuration");
  assert.match(error?.message ?? "", /no folder is named by FLOW_DUCKDB_FILES/);
});

test("a file that another process has open fails as a connection that may be tried again", async (t) => {
  const database = join(folder, "locked.duckdb");
  const files = createDuckdbTool({ files: "all" });
  t.after(() => files.close?.());
  assert.equal((await files.run(toolCall({ database, query: "create table t (a int)" }))).status, "ok");
  const holder = spawn(process.execPath, [
    "-e",
    `require("@duckdb/node-api").DuckDBInstance.create(${JSON.stringify(database)}).then((db) => {
       globalThis.db = db; console.log("open"); setInterval(() => {}, 1000); });`,
  ]);
  t.after(() => holder.kill("SIGKILL"));
  await new Promise((resolve) => holder.stdout.once("data", resolve));
  const { error } = await files.run(toolCall({ database, query: "select 1" }));
  assert.equal(error?.kind, "db_connection");
  assert.equal(error?.retryable, true);
});

test("tasks on one file share it, and it is free when the last has ended", async (t) => {
  const database = join(folder, "shared.duckdb");
  const files = createDuckdbTool({ files: [folder] });
  t.after(() => files.close?.());
  await files.run(toolCall({ database, query: "create table t (a int)" }));
  const writes = Array.from({ length: 8 }, (_, n) =>
    files.run(toolCall({ database, query: "insert into t values ($1)", params: [n] }, { executionId: `w${n}` })),
  );
  for (const { error } of await Promise.all(writes)) assert.equal(error, undefined, error?.message);
  const other = createDuckdbTool({ files: [folder] });
  t.after(() => other.close?.());
  const count = await other.run(toolCall({ database, query: "select count(*) as n from t" }));
  assert.deepEqual((count.data as JsonObject)["rows"], [{ n: 8 }]);
});

test("of more in-memory databases than are kept, the one used longest ago is dropped", async (t) => {
  const few = createDuckdbTool({ databasesMax: 2 });
  t.after(() => few.close?.());
  const call = (executionId: string, query: string) => few.run(toolCall({ query }, { executionId }));
  await call("a", "create table t (a int)");
  await call("b", "create table t (a int)");
  await call("a", "select * from t");
  await call("c", "create table t (a int)");
  assert.equal((await call("a", "select * from t")).status, "ok");
  assert.equal((await call("b", "select * from t")).error?.code, "CATALOG_ERROR");
});

test("without the driver the task says what to install", async () => {
  const missing = createDuckdbTool({
    load: () =>
      Promise.reject(
        Object.assign(new Error("Cannot find package '@duckdb/node-api'"), { code: "ERR_MODULE_NOT_FOUND" }),
      ),
  });
  const { error } = await missing.run(toolCall({ query: "select 1" }));
  assert.equal(error?.kind, "configuration");
  assert.equal(error?.code, "NOT_FOUND");
  assert.match(error?.message ?? "", /npm install @duckdb\/node-api/);
});
