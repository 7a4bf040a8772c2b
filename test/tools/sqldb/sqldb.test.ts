import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import postgres from "postgres";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import { isJsonObject, type JsonObject } from "../../../src/schema/words/json.ts";
import type { ToolResult } from "../../../src/schema/words/outcome.ts";
import type { Credential } from "../../../src/tools/contract/tool.ts";
import { sqlEgress } from "../../../src/tools/sql/socket.ts";
import { createSqldbTool } from "../../../src/tools/sqldb/sqldb.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database/postgres.ts";
import { closedPort } from "../../support/servers/http-server.ts";
import { toolCall } from "../../support/service/tool-call.ts";

const OPEN = sqlEgress("all", createEgressGuard({ allowPrivate: "all" }));
let database: TestDatabase;
/** Looks at the server from outside the tool. */
let observer: postgres.Sql;
const tool = createSqldbTool({ egress: OPEN });

before(async () => {
  database = await createTestDatabase();
  observer = postgres(database.url, { max: 2, onnotice: () => {} });
});

after(async () => {
  await tool.close?.();
  await observer?.end();
});

function credential(data: JsonObject = {}): Record<string, Credential> {
  const { host, port, user, password, database: db_name } = database;
  const found = {
    name: "pg",
    type: "sqldb",
    data: { db_host: host, db_port: port, db_user: user, db_password: password, db_name, ...data },
  };
  return { pg: found, default: found };
}

function run(config: JsonObject, more: Parameters<typeof toolCall>[1] = {}): Promise<ToolResult> {
  return tool.run(toolCall(config, { auth: credential(), ...more }));
}

/** What one statement of several gave. */
function commandOf(result: ToolResult, index: number): JsonObject {
  const command = result.virtual?.[`command_${index}`];
  assert.ok(isJsonObject(command), result.error?.message);
  return command;
}

async function value(expression: string, params: JsonObject["x"][] = []): Promise<unknown> {
  const result = await run({ query: `select ${expression} as value`, params });
  assert.equal(result.error, undefined, result.error?.message);
  const { rows } = result.data as { rows: { value: unknown }[] };
  return rows[0]?.value;
}

/** Waits until the server itself says so; the query is the wait, so nothing sleeps for a fixed time. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt += 1) {
    if (await condition()) return;
    await observer`select pg_sleep(0.01)`;
  }
  assert.fail("the condition did not come true within five seconds");
}

async function isRunning(text: string): Promise<boolean> {
  const rows =
    await observer`select 1 from pg_stat_activity where datname = current_database() and state = 'active' and query = ${text}`;
  return rows.length > 0;
}

test("the last statement's rows are the result, every statement's are virtual", async () => {
  const result = await run({
    command:
      "create table people (id int, name text); insert into people values (1, 'Ada'), (2, 'Bo'); select * from people order by id;",
  });
  assert.deepEqual(result.data, {
    status: "success",
    rows: [
      { id: 1, name: "Ada" },
      { id: 2, name: "Bo" },
    ],
    row_count: 2,
    columns: ["id", "name"],
    statement_count: 3,
  });
  assert.deepEqual(result.virtual?.["command_0"], { status: "success", rows: [], row_count: 0, columns: [] });
  assert.deepEqual(result.virtual?.["command_1"], { status: "success", rows: [], row_count: 2, columns: [] });
  assert.equal(commandOf(result, 2)["row_count"], 2);
});

test("each statement is its own transaction, and nothing runs after the first error", async () => {
  const result = await run({
    commands: [
      "create table kept (id int primary key)",
      "insert into kept values (1); insert into kept values (1); insert into kept values (2)",
    ],
  });
  assert.equal(result.status, "error");
  assert.match(
    result.error?.message ?? "",
    /^SQL statement 3 of 4 failed: duplicate key.*Key \(id\)=\(1\) already exists\.$/,
  );
  assert.deepEqual(await observer`select id from kept`.values().then((rows) => [...rows]), [[1]]);
});

test("an explicit transaction is kept together", async () => {
  const result = await run({
    command: "create table t1 (id int); begin; insert into t1 values (1); rollback; select count(*) as n from t1",
  });
  assert.equal(result.error, undefined, result.error?.message);
  assert.deepEqual((result.data as JsonObject)["rows"], [{ n: 0 }]);
});

test("a transaction that is left open is rolled back and reported", async () => {
  const result = await run({ command: "create table t2 (id int); begin; insert into t2 values (1)" });
  assert.equal(result.error?.code, "TRANSACTION_LEFT_OPEN");
  await until(
    async () =>
      (
        await observer`select 1 from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`
      ).length === 0,
  );
  assert.deepEqual(await observer`select id from t2`.values().then((rows) => [...rows]), []);
});

for (const [expression, expected] of [
  ["42::int8", 42],
  ["9007199254740993::int8", "9007199254740993"],
  ["12.50::numeric", 12.5],
  ["'NaN'::numeric", "NaN"],
  ["'Infinity'::float8", "Infinity"],
  ["1.5::float4", 1.5],
  ["true", true],
  ["null::int", null],
  ["'2024-02-29'::date", "2024-02-29"],
  ["'2024-02-29 12:30:00.123456'::timestamp", "2024-02-29T12:30:00.123456"],
  ["'2024-02-29 12:30:00+05:30'::timestamptz", "2024-02-29T07:00:00Z"],
  ["'2024-02-29 12:30:00.25-03'::timestamptz", "2024-02-29T15:30:00.25Z"],
  ["'infinity'::timestamptz", "infinity"],
  ["'0044-03-15 BC'::date", "0044-03-15 BC"],
  ["'12:30:00'::time", "12:30:00"],
  [`'{"a": [1, 12345678901234567890]}'::jsonb`, { a: [1, "12345678901234567890"] }],
  ["'[1, null]'::json", [1, null]],
  ["'\\x00ff'::bytea", "AP8="],
  ["array[1, null, 3]::int8[]", [1, null, 3]],
  ["array[array['a'], array['b,\"c']]", [["a"], ['b,"c']]],
  ["array['2024-01-01']::date[]", ["2024-01-01"]],
  ["'{}'::text[]", []],
  ["'7f000000-0000-4000-8000-000000000001'::uuid", "7f000000-0000-4000-8000-000000000001"],
  ["interval '1 day 2 hours'", "1 day 02:00:00"],
] as [string, unknown][]) {
  test(`${expression} comes back as ${JSON.stringify(expected)}`, async () => {
    assert.deepEqual(await value(expression), expected);
  });
}

test("a time stamp comes in UTC whatever the session's zone is", async () => {
  const result = await run({
    command: "set timezone = 'America/New_York'; select '2024-07-01 00:00:00+00'::timestamptz as value",
  });
  assert.deepEqual((result.data as JsonObject)["rows"], [{ value: "2024-07-01T00:00:00Z" }]);
});

for (const [expression, param, expected] of [
  ["$1::int8", "9007199254740993", "9007199254740993"],
  ["$1::int + 1", 41, 42],
  ["$1::text", 5, "5"],
  ["$1::text", true, "true"],
  ["$1::boolean", false, false],
  ["$1::boolean", true, true],
  ["$1::boolean", "true", true],
  ["$1::boolean", "no", false],
  ["$1::boolean", 1, true],
  ["$1::boolean[]", [true, "f", null], [true, false, null]],
  ["$1::json ->> 'a'", { a: "b" }, "b"],
  ["$1::text", null, null],
  ["$1::date", "2024-02-29", "2024-02-29"],
  ["$1::timestamptz", "2024-02-29T12:00:00+02:00", "2024-02-29T10:00:00Z"],
  ["$1::jsonb", { a: [1, { b: null }] }, { a: [1, { b: null }] }],
  ["$1::jsonb", [1, "two"], [1, "two"]],
  ["$1::jsonb", '{"text": "is JSON already"}', { text: "is JSON already" }],
  ["$1::text", { a: 1 }, '{"a":1}'],
  ["$1::text", [1, 2], "[1,2]"],
  ["$1::int[]", [3, 1, 2], [3, 1, 2]],
  ["$1::text[]", ["a,b", 'c"d', null], ["a,b", 'c"d', null]],
  ["4 = any($1::int[])", [1, 4], true],
  ["$1::text", "'; drop table people; --", "'; drop table people; --"],
] as [string, JsonObject["x"], unknown][]) {
  test(`a parameter ${JSON.stringify(param)} for ${expression} arrives as ${JSON.stringify(expected)}`, async () => {
    assert.deepEqual(await value(expression, [param]), expected);
  });
}

test("a parameter that is no boolean is refused and not taken for false", async () => {
  const result = await run({ command: "select $1::boolean", params: ["maybe"] });
  assert.deepEqual([result.error?.kind, result.error?.code], ["db_error", "22P02"]);
});

test("each of several statements takes the parameters that it uses", async () => {
  const result = await run({
    command:
      "create temp table p (a int, b text); insert into p values ($1, $2); select a from p where b = $2 and a = $1; select $1::int as a",
    params: [7, "x"],
  });
  assert.equal(result.error, undefined, result.error?.message);
  assert.deepEqual(commandOf(result, 2)["rows"], [{ a: 7 }]);
});

test("a statement need not take the first of the parameters, nor all up to its last", async () => {
  const result = await run({
    command:
      "create temp table p (a int, b text, c int); insert into p values ($1, $2, 1); insert into p values ($3, $4, $3); select '$1' as text, b from p where b = $4 or (b = $4 and c > $10) /* $7 */; select a from p where a in ($3, $1) order by a",
    params: [7, "x", 8, "y", 0, 0, 0, 0, 0, 5],
  });
  assert.equal(result.error, undefined, result.error?.message);
  assert.deepEqual(commandOf(result, 3)["rows"], [{ text: "$1", b: "y" }]);
  assert.deepEqual(commandOf(result, 4)["rows"], [{ a: 7 }, { a: 8 }]);
  const wrong = await run({ command: "select $1::int;\nselect $2::int,\n       nothing", params: [1, 2] });
  // The line is that of the text as it was written.
  assert.match(wrong.error?.message ?? "", /line 3|statement 2/);
  assert.deepEqual(wrong.error?.code, "42703");
});

test("missing and superfluous parameters are a configuration error", async () => {
  for (const params of [[], [1, 2]]) {
    const result = await run({ command: "select $1::int", params });
    assert.equal(result.error?.kind, "configuration");
    assert.match(result.error?.message ?? "", /parameters up to \$1/);
  }
  assert.match(
    (await run({ command: "select 1", params: { a: 1 } })).error?.message ?? "",
    /key "params": expects a list/,
  );
});

test("columns of the same name and of dangerous names stay data", async () => {
  const result = await run({ query: 'select 1 as "__proto__", 2 as a, 3 as a' });
  const data = result.data as { rows: JsonObject[]; columns: string[] };
  assert.deepEqual(data.columns, ["__proto__", "a", "a"]);
  assert.deepEqual(Object.entries(data.rows[0]!), [
    ["__proto__", 1],
    ["a", 3],
  ]);
});

test("a command may come as base64", async () => {
  const result = await run({ command_b64: Buffer.from("select 'ä' as v").toString("base64") });
  assert.deepEqual((result.data as JsonObject)["rows"], [{ v: "ä" }]);
});

for (const [name, config] of [
  ["no key", {}],
  ["empty text", { command: " ; -- nothing" }],
  ["a template that gave nothing", { command: null }],
] as [string, JsonObject][]) {
  test(`${name} is "No SQL command provided"`, async () => {
    const { error } = await run(config);
    assert.equal(error?.kind, "configuration");
    assert.match(error?.message ?? "", /^No SQL command provided/);
  });
}

for (const [name, command, kind, code, retryable] of [
  [
    "a unique violation",
    "create temp table u (a int unique); insert into u values (1), (1)",
    "db_constraint",
    "23505",
    false,
  ],
  [
    "a null violation",
    "create temp table n (a int not null); insert into n values (null)",
    "db_constraint",
    "23502",
    false,
  ],
  ["a syntax error", "selec 1", "db_error", "42601", false],
  ["an unknown table", "select * from nowhere", "db_error", "42P01", false],
  ["a statement time-out", "set statement_timeout = 20; select pg_sleep(10)", "db_timeout", "57014", false],
  ["a serialization failure", "do $$ begin raise exception sqlstate '40001'; end $$", "db_error", "40001", true],
  ["a lack of resources", "do $$ begin raise exception sqlstate '53200'; end $$", "db_error", "53200", true],
] as [string, string, string, string, boolean][]) {
  test(`${name} is an error of kind ${kind}`, async () => {
    const result = await run({ command });
    assert.deepEqual(
      { kind: result.error?.kind, code: result.error?.code, retryable: result.error?.retryable, pg: result.pg },
      { kind, code, retryable, pg: { code, sqlstate: code } },
    );
  });
}

test("an error names the line in the task's text", async () => {
  const { error } = await run({ command: "select 1;\n\nselect\n  'ü',\n  nonsense" });
  assert.match(error?.message ?? "", /^SQL statement 2 of 2 failed at line 5: column "nonsense" does not exist\./);
  assert.deepEqual(error?.details, { statement: 2, line: 5 });
});

test("of two tasks that block each other one fails as a deadlock that may be retried", async () => {
  await run({ command: "create table locks (id int primary key, n int); insert into locks values (1, 0), (2, 0)" });
  const lockBoth = (first: number, second: number) =>
    run({
      command: `set deadlock_timeout = '50ms'; begin; update locks set n = n + 1 where id = ${first};
        select pg_advisory_lock_shared(77); update locks set n = n + 1 where id = ${second}; commit`,
    });
  // Both wait for the advisory lock with their first row locked, so that the deadlock is certain.
  const gate = await observer.reserve();
  await gate`select pg_advisory_lock(77)`;
  const both = Promise.all([lockBoth(1, 2), lockBoth(2, 1)]);
  await until(
    async () =>
      (
        await observer`
          select 1 from pg_locks where locktype = 'advisory' and not granted
            and database = (select oid from pg_database where datname = current_database())`
      ).length === 2,
  );
  await gate`select pg_advisory_unlock(77)`;
  gate.release();
  const results = await both;
  const failed = results.filter((result) => result.status === "error");
  assert.equal(failed.length, 1, JSON.stringify(results));
  assert.equal(failed[0]?.error?.kind, "db_deadlock");
  assert.equal(failed[0]?.error?.retryable, true);
});

test("cancelling a task stops its statement on the server at once", async () => {
  const controller = new AbortController();
  const running = run({ command: "select pg_sleep(60)" }, { signal: controller.signal });
  await until(() => isRunning("select pg_sleep(60)"));
  const stoppedAt = performance.now();
  controller.abort();
  const result = await running;
  assert.equal(result.error?.kind, "cancelled");
  assert.ok(performance.now() - stoppedAt < 30_000);
  assert.equal(await isRunning("select pg_sleep(60)"), false);
});

test("a time-out is distinguished from a cancellation, and the next task works", async () => {
  const result = await run({ command: "select pg_sleep(61)" }, { signal: AbortSignal.timeout(300) });
  assert.equal(result.error?.kind, "timeout");
  assert.equal(result.error?.retryable, true);
  assert.equal(await value("1"), 1);
});

test("a task whose signal is aborted before it begins does nothing", async () => {
  const result = await run({ command: "create table never (id int)" }, { signal: AbortSignal.abort() });
  assert.equal(result.error?.kind, "cancelled");
  assert.equal((await observer`select to_regclass('never') as name`)[0]?.["name"], null);
});

test("nothing of a session reaches the next task", async () => {
  const single = createSqldbTool({ egress: OPEN, connectionsMax: 1 });
  const again = (command: string) => single.run(toolCall({ command }, { auth: credential() }));
  await again("set search_path = elsewhere; create temp table leftover (id int); select pg_advisory_lock(5)");
  const result = await again(
    "select current_setting('search_path') as path, to_regclass('pg_temp.leftover') as temp, (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks",
  );
  assert.deepEqual((result.data as JsonObject)["rows"], [{ path: '"$user", public', temp: null, locks: 0 }]);
  await single.close?.();
});

test("twelve tasks share at most four connections and all get their own answer", async () => {
  const pooled = createSqldbTool({ egress: OPEN, connectionsMax: 4 });
  const results = await Promise.all(
    Array.from({ length: 12 }, (_, n) =>
      pooled.run(
        toolCall({ query: "select $1::int as n, pg_backend_pid() as pid", params: [n] }, { auth: credential() }),
      ),
    ),
  );
  const rows = results.map((result) => (result.data as { rows: { n: number; pid: number }[] }).rows[0]!);
  assert.deepEqual(
    rows.map((row) => row.n),
    Array.from({ length: 12 }, (_, n) => n),
  );
  assert.ok(new Set(rows.map((row) => row.pid)).size <= 4);
  await pooled.close?.();
});

test("a connection that the server ended is replaced", async () => {
  const single = createSqldbTool({ egress: OPEN, connectionsMax: 1 });
  const again = (command: string) => single.run(toolCall({ command }, { auth: credential() }));
  const first = await again("select pg_backend_pid() as pid");
  const pid = (first.data as { rows: { pid: number }[] }).rows[0]!.pid;
  const killed = await again(`select pg_terminate_backend(${pid})`);
  assert.equal(killed.error?.kind, "db_connection");
  assert.equal(killed.error?.retryable, true);
  assert.equal((await again("select 1")).status, "ok");
  await single.close?.();
});

test("more rows or bytes than the limit are an error, and the statement is undone", async () => {
  const small = createSqldbTool({ egress: OPEN, rowsMax: 100, resultBytesMax: 10_000 });
  const again = (command: string) => small.run(toolCall({ command }, { auth: credential() }));
  assert.equal((await again("select * from generate_series(1, 100)")).status, "ok");
  assert.equal((await again("select generate_series(1, 100000000)")).error?.code, "RESULT_TOO_LARGE");
  assert.equal((await again("select repeat('x', 20000)")).error?.code, "RESULT_TOO_LARGE");
  assert.equal((await again("select 1")).status, "ok");
  await small.close?.();
});

test("notices of the server are lines of the task's log", async () => {
  const call = toolCall({ command: "do $$ begin raise notice 'step %', 3; end $$" }, { auth: credential() });
  await tool.run(call);
  assert.deepEqual(call.lines, ["NOTICE: step 3"]);
});

for (const command of ["copy people from stdin", "copy people to stdout"]) {
  test(`"${command}" is refused and leaves the tool usable`, async () => {
    const result = await run({ command });
    assert.equal(result.error?.code, "COPY_NOT_SUPPORTED");
    assert.equal(await value("1"), 1);
  });
}

test("a refused connection is retryable and names the server", async () => {
  const port = await closedPort();
  const { error } = await run({ command: "select 1" }, { auth: credential({ db_port: port }) });
  assert.equal(error?.kind, "db_connection");
  assert.equal(error?.code, "ECONNREFUSED");
  assert.equal(error?.retryable, true);
  assert.match(error?.message ?? "", new RegExp(`postgres@127\\.0\\.0\\.1:${port}/`));
});

test("a host that does not resolve is reported with the resolver's message", async () => {
  const { error } = await run({ command: "select 1" }, { auth: credential({ db_host: "nowhere.invalid" }) });
  assert.deepEqual([error?.kind, error?.retryable], ["db_connection", true]);
  // The second on a machine that reaches no name server at all.
  const words = { ENOTFOUND: "Name or service not known", EAI_AGAIN: "Temporary failure in name resolution" };
  assert.ok(error?.message.includes(words[error.code as keyof typeof words] ?? "?"), error?.message);
});

test("a server that hangs up silently is a connection error in time", async () => {
  const rude = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => rude.listen(0, "127.0.0.1", resolve));
  const impatient = createSqldbTool({ egress: OPEN, connectTimeoutMs: 300 });
  const auth = credential({ db_port: (rude.address() as AddressInfo).port });
  const { error } = await impatient.run(toolCall({ command: "select 1" }, { auth }));
  assert.equal(error?.kind, "db_connection");
  await impatient.close?.();
  await new Promise((resolve) => rude.close(resolve));
});

test("a wrong password is an auth error that does not show it", async () => {
  const { error } = await run({ command: "select 1" }, { auth: credential({ db_password: "wr0ng-secret" }) });
  assert.equal(error?.kind, "auth");
  assert.equal(error?.retryable, false);
  assert.doesNotMatch(JSON.stringify(error), /wr0ng-secret/);
});

test("without a credential the error says how to give one", async () => {
  const { error } = await run({ command: "select 1" }, { auth: {} });
  assert.equal(error?.kind, "configuration");
  assert.match(error?.message ?? "", /"auth: <name>"/);
});

test("a connection may be given by string, by libpq's form and by plain keys", async () => {
  const { host, port, user, password, database: dbname } = database;
  for (const keys of [
    { connection_string: database.url },
    { dsn: `host=${host} port=${port} user=${user} password='${password}' dbname=${dbname}` },
    { host, port, user, password, dbname },
    { host, port: String(port), username: user, password, database: dbname, sslmode: "disable" },
  ]) {
    const result = await run({ command: "select current_database() as name", ...keys }, { auth: {} });
    assert.deepEqual((result.data as JsonObject | null)?.["rows"], [{ name: dbname }], result.error?.message);
  }
});

test("sslmode require does not fall back to a plain connection", async () => {
  const { error } = await run({ command: "select 1" }, { auth: credential({ sslmode: "require" }) });
  assert.equal(error?.kind, "db_connection");
  assert.equal((await run({ command: "select 1", sslmode: "maybe" })).error?.kind, "configuration");
});

test("a task that waits for a connection can be cancelled, and the connection is not lost by that", async () => {
  const single = createSqldbTool({ egress: OPEN, connectionsMax: 1 });
  const controller = new AbortController();
  const busy = single.run(toolCall({ command: "select pg_sleep(0.3)" }, { auth: credential() }));
  const waiting = single.run(toolCall({ command: "select 1" }, { auth: credential(), signal: controller.signal }));
  controller.abort();
  assert.equal((await waiting).error?.kind, "cancelled");
  assert.equal((await busy).status, "ok");
  assert.equal((await single.run(toolCall({ command: "select 1" }, { auth: credential() }))).status, "ok");
  await single.close?.();
});

test("a closed tool answers with an error, to those who wait too", async () => {
  const single = createSqldbTool({ egress: OPEN, connectionsMax: 1 });
  const ask = () => single.run(toolCall({ command: "select pg_sleep(30)" }, { auth: credential() }));
  const both = [ask(), ask()];
  await until(() => isRunning("select pg_sleep(30)"));
  await single.close?.();
  for (const result of [...(await Promise.all(both)), await ask()]) assert.equal(result.error?.kind, "db_connection");
});
