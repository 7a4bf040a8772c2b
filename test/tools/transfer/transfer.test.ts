import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, before, type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import postgres from "postgres";
import type { ProgressNumbers } from "../../../src/schema/words/event.ts";
import type { Json, JsonObject } from "../../../src/schema/words/json.ts";
import type { ToolResult } from "../../../src/schema/words/outcome.ts";
import type { Credential } from "../../../src/tools/contract/tool.ts";
import { createToolRegistry, type ToolRegistry } from "../../../src/tools/registry.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database/postgres.ts";
import { closedPort, type RecordedRequest, startHttpServer } from "../../support/servers/http-server.ts";
import { toolCall } from "../../support/service/tool-call.ts";

/* Real PostgreSQL, real DuckDB, and HTTP servers of our own, by the registry, as a worker has them. */

let database: TestDatabase;
/** Looks at the server from outside the tool. */
let sql: postgres.Sql;
let registry: ToolRegistry;

before(async () => {
  database = await createTestDatabase();
  sql = postgres(database.url, { max: 2, onnotice: () => {} });
  registry = createToolRegistry({ allowPrivate: "all", store: { load: () => Promise.resolve(null) } });
});

after(async () => {
  await registry?.close();
  await sql?.end();
});

function pg(data: JsonObject = {}): Credential {
  const { host, port, user, password, database: db_name } = database;
  return {
    name: "pg",
    type: "sqldb",
    data: { db_host: host, db_port: port, db_user: user, db_password: password, db_name, ...data },
  };
}

function both(source: Credential = pg(), target: Credential = pg()): Record<string, Credential> {
  return { transfer_source: source, transfer_target: target };
}

/** The target's credential alone: the source is open to all. */
function targetOnly(): Record<string, Credential> {
  return { transfer_target: pg() };
}

type More = Parameters<typeof toolCall>[1];

async function run(config: JsonObject, more: More = {}): Promise<ToolResult> {
  return await (await registry.get("transfer")).run(toolCall(config, { auth: both(), ...more }));
}

async function duckdb(query: string, executionId: string): Promise<JsonObject[]> {
  const result = await (await registry.get("duckdb")).run(toolCall({ query }, { executionId }));
  assert.equal(result.error, undefined, result.error?.message);
  return (result.data as { rows: JsonObject[] }).rows;
}

function done(result: ToolResult, rows: number): void {
  assert.equal(result.error, undefined, result.error?.message);
  assert.deepEqual(result.data, { status: "success", rows_read: rows, rows_written: rows });
}

async function serve(
  t: TestContext,
  handle: (request: RecordedRequest, response: ServerResponse) => void,
): Promise<string> {
  const server = await startHttpServer(handle);
  t.after(() => server.close());
  return `${server.origin}/rows`;
}

function answers(t: TestContext, body: Json | string, type = "application/json"): Promise<string> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return serve(t, (_request, response) => response.writeHead(200, { "content-type": type }).end(text));
}

test("every type of PostgreSQL reaches another table as it was", async () => {
  await sql`create type mood as enum ('glad', 'sad')`;
  const columns = `i8 int8, n numeric, f float8, t text, b bytea, ts timestamp, tz timestamptz, d date, iv interval, u uuid,
    j json, jb jsonb, ints int[], texts text[], m mood, bo bool, r int4range, v varchar(5)`;
  await sql.unsafe(`create table types_a (${columns}); create table types_b (${columns})`);
  await sql`insert into types_a values (9007199254740993, 12345678901234567890.1234567890, 'NaN', ${'it\'s "x"\\\n'}, '\\x00ff10',
    '2024-01-02 03:04:05.678901', '2024-01-02 03:04:05+02', 'infinity', '1 mon 2 days', ${"11111111-2222-3333-4444-555555555555"},
    '{"z": 1.50, "a": null}', '{"k": [1]}', '{1,null}', ${["a,b", 'c"d']}, 'sad', true, '[1,3)', 'abcde')`;
  await sql`insert into types_a (t) values (null)`;
  done(
    await run({
      source: { type: "postgres", auth: "pg", query: "select * from types_a -- all" },
      target: { type: "sqldb", auth: "pg", table: "types_b" },
    }),
    2,
  );
  const differences = await sql`select one::text from types_a one except select other::text from types_b other`;
  assert.deepEqual([...differences], []);
});

test("a mapping names the field of each column, and parameters are bound", async () => {
  await sql`create table mapped ("Weird ""name" int, city text, untouched text default 'kept')`;
  done(
    await run({
      source: {
        type: "sqldb",
        query: "select n as id, 'Bern; drop table mapped' as place, 1 as other from generate_series(1, $1) n",
        params: [3],
      },
      target: { type: "sqldb", table: "public.mapped", mapping: { 'Weird "name': "id", city: "place" } },
    }),
    3,
  );
  assert.deepEqual(
    [...(await sql`select * from mapped order by 1 limit 1`.values())],
    [[1, "Bern; drop table mapped", "kept"]],
  );
});

test("replace leaves the new rows alone, in one transaction", async () => {
  await sql`create table replaced (id int primary key)`;
  await sql`insert into replaced select generate_series(1, 10)`;
  const config = (query: string, mode: string) => ({
    source: { type: "sqldb", query },
    target: { type: "sqldb", table: "replaced" },
    mode,
    chunk_size: 2,
  });
  done(await run(config("select generate_series(5, 9) as id", "replace")), 5);
  assert.equal((await sql`select from replaced`).count, 5);
  const broken = await run(
    config("select case when n = 7 then 1 else n end as id from generate_series(1, 9) n", "truncate"),
  );
  assert.equal(broken.error?.kind, "db_constraint");
  assert.equal(broken.error?.code, "23505");
  assert.match(broken.error?.message ?? "", /^Writing to table replaced failed: duplicate key/);
  assert.deepEqual(broken.data, { status: "error", rows_read: 8, rows_written: 0 });
  assert.deepEqual(
    (await sql`select id from replaced order by id`.values()).flat(),
    [5, 6, 7, 8, 9],
    "As it was before",
  );
});

test("upsert changes the rows of the same key, of which the last one counts", async () => {
  await sql`create table upserted (k int, l text, v text, primary key (k, l))`;
  await sql`insert into upserted values (1, 'a', 'old'), (2, 'a', 'stays')`;
  const query = "select * from (values (1, 'a', 'first'), (1, 'a', 'last'), (3, 'a', 'new')) as s(k, l, v)";
  const result = await run({
    source: { type: "sqldb", query },
    target: { type: "sqldb", table: "upserted" },
    mode: "upsert",
    key: ["k", "l"],
  });
  assert.deepEqual(result.data, { status: "success", rows_read: 3, rows_written: 2 });
  assert.deepEqual(
    [...(await sql`select * from upserted order by k`.values())],
    [
      [1, "a", "last"],
      [2, "a", "stays"],
      [3, "a", "new"],
    ],
  );
});

test("rows travel from PostgreSQL to DuckDB and back without a loss", async () => {
  const columns = "i8 bigint, n numeric(38,10), t text, b bytea, tz timestamptz, ints int[], j json, bo boolean";
  await sql.unsafe(`create table there (${columns}); create table back (${columns})`);
  await sql`insert into there select 9007199254740993 + n, 12345678901234567890.1234567890, 'ü' || n, '\\x00ff',
    '2024-01-02 03:04:05.678+02', array[n, null], json_build_object('n', n), n % 2 = 0 from generate_series(1, 5000) n`;
  await duckdb(
    "create table shop (i8 bigint, n decimal(38,10), t varchar, b blob, tz timestamptz, ints int[], j json, bo boolean)",
    "1001",
  );
  done(
    await run({
      source: { type: "sqldb", query: "select * from there" },
      target: { type: "duckdb", table: "shop" },
      chunk_size: 777,
    }),
    5000,
  );
  const [first] = await duckdb("select i8, hex(b) as b, tz, ints, j, bo from shop order by i8 limit 1", "1001");
  assert.deepEqual(first, {
    i8: "9007199254740994",
    b: "00FF",
    tz: "2024-01-02T01:04:05.678Z",
    ints: [1, null],
    j: { n: 1 },
    bo: false,
  });
  done(
    await run({
      source: { type: "duckdb", query: "select * from shop where i8 > $1", params: [0] },
      target: { type: "sqldb", table: "back" },
    }),
    5000,
  );
  const differences = await sql`
    select i8, n, t, b, tz, ints, j::jsonb, bo from there except select i8, n, t, b, tz, ints, j::jsonb, bo from back`;
  assert.deepEqual(differences.length, 0);
});

test("replace and upsert in DuckDB", async () => {
  await duckdb("create table d (id int primary key, v varchar); insert into d values (1, 'old'), (9, 'old')", "1001");
  const config = (query: string, mode: string) => ({
    source: { type: "sqldb", query },
    target: { type: "duckdb", table: "d" },
    mode,
    key: "id",
    chunk_size: 2,
  });
  const changed = await run(
    config("select * from (values (1, 'first'), (1, 'last'), (2, 'new')) as s(id, v)", "upsert"),
  );
  assert.equal(changed.error, undefined, changed.error?.message);
  assert.deepEqual(await duckdb("select * from d order by id", "1001"), [
    { id: 1, v: "last" },
    { id: 2, v: "new" },
    { id: 9, v: "old" },
  ]);
  const broken = await run(
    config("select case n when 5 then 1 else n end as id from generate_series(1, 6) n", "replace"),
  );
  assert.equal(broken.error?.kind, "db_constraint");
  assert.equal((await duckdb("select * from d", "1001")).length, 3, "As it was before");
  done(await run(config("select n as id, 'x' as v from generate_series(1, 3) n", "replace")), 3);
});

test("a JSON list over HTTP, at its place in the answer, with paths into its rows", async (t) => {
  await sql`create table fetched (id int8, name text, city text, tags text[])`;
  const items = [
    { id: 1, profile: { name: "Ada" }, "address.city": "Bern", tags: ["a"] },
    { id: 2, profile: {}, extra: true },
  ];
  const text = JSON.stringify({ next: null, data: { items } }).replace('"id":1,', '"id":9007199254740993,');
  const requests: RecordedRequest[] = [];
  const url = await serve(t, (request, response) => {
    requests.push(request);
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end(gzipSync(text));
  });
  const credential: Credential = { name: "api", type: "bearer", data: { token: "s3cret" } };
  done(
    await run(
      {
        source: { type: "http", url, params: { page: 1 }, rows_path: "data.items" },
        target: {
          type: "sqldb",
          table: "fetched",
          mapping: { id: "id", name: "profile.name", city: "address.city", tags: "tags" },
        },
      },
      { auth: both(credential) },
    ),
    2,
  );
  assert.deepEqual(
    [...(await sql`select id::text, name, city, tags from fetched order by id`.values())],
    [
      ["2", null, null, null],
      ["9007199254740993", "Ada", "Bern", ["a"]],
    ],
  );
  assert.equal(requests[0]?.headers.authorization, "Bearer s3cret");
  assert.equal(requests[0]?.url, "/rows?page=1");
});

test("JSON line by line, and CSV, over HTTP", async (t) => {
  await sql`create table lines (id int, name text)`;
  const target = { type: "sqldb", table: "lines" };
  const ndjson = await answers(t, '{"ID":1,"name":"a"}\n{"ID":2}\n', "application/x-ndjson");
  done(await run({ source: { url: ndjson }, target }, { auth: targetOnly() }), 2);
  const csv = await answers(t, 'id,name\r\n3,"x,y"\r\n4,\r\n', "text/csv; charset=utf-8");
  done(await run({ source: { type: "http", url: csv }, target }, { auth: targetOnly() }), 2);
  assert.deepEqual(
    [...(await sql`select * from lines order by id`.values())],
    [
      [1, "a"],
      [2, null],
      [3, "x,y"],
      [4, null],
    ],
  );
});

test("progress is reported after each chunk, and not written to the task's log", async () => {
  await sql`create table progress (n int)`;
  const config = {
    source: { type: "sqldb", query: "select n from generate_series(1, 25) n" },
    target: { type: "sqldb", table: "progress" },
    chunk_size: 10,
  };
  const told: ProgressNumbers[] = [];
  const call = toolCall(config, { auth: both(), progress: (numbers) => told.push(numbers) });
  done(await (await registry.get("transfer")).run(call), 25);
  assert.deepEqual(told, [
    { rows_read: 10, rows_written: 10, chunks: 1 },
    { rows_read: 20, rows_written: 20, chunks: 2 },
    { rows_read: 25, rows_written: 25, chunks: 3 },
  ]);
  assert.deepEqual(call.lines, []);
});

test("without a receiver of progress it runs all the same", async () => {
  await sql`create table silent (n int)`;
  const source = { type: "sqldb", query: "select n from generate_series(1, 25) n" };
  done(await run({ source, target: { type: "sqldb", table: "silent" }, chunk_size: 10 }), 25);
});

for (const [name, config, kind, code, message] of [
  ["no source", { target: { table: "x" } }, "configuration", "INVALID_CONFIG", /key "source"/],
  ["no table", { source: { query: "select 1" }, target: {} }, "configuration", "INVALID_CONFIG", /key "table"/],
  [
    "another source",
    { source: { type: "ftp" }, target: { table: "x" } },
    "configuration",
    "INVALID_CONFIG",
    /cannot read from "ftp"/,
  ],
  [
    "another target",
    { source: { query: "select 1" }, target: { type: "http", table: "x" } },
    "configuration",
    "INVALID_CONFIG",
    /cannot write to "http"/,
  ],
  [
    "another mode",
    { source: { query: "select 1" }, target: { table: "x" }, mode: "sync" },
    "configuration",
    "INVALID_CONFIG",
    /one of append/,
  ],
  [
    "upsert without a key",
    { source: { query: "select 1" }, target: { table: "x" }, mode: "upsert" },
    "configuration",
    "INVALID_CONFIG",
    /no "key"/,
  ],
  [
    "a chunk of nothing",
    { source: { query: "select 1" }, target: { table: "x" }, chunk_size: 0 },
    "configuration",
    "INVALID_CONFIG",
    /chunk_size/,
  ],
  [
    "a table that is SQL",
    { source: { query: "select 1" }, target: { table: "x; drop table y" } },
    "configuration",
    "INVALID_CONFIG",
    /a name as in orders/,
  ],
  [
    "two statements",
    { source: { query: "select 1; select 2" }, target: { table: "x" } },
    "configuration",
    "INVALID_CONFIG",
    /has 2 SQL statements/,
  ],
  [
    "a missing parameter",
    { source: { query: "select $1" }, target: { table: "x" } },
    "configuration",
    "INVALID_CONFIG",
    /parameters up to \$1/,
  ],
  [
    "a table that is not there",
    { source: { query: "select 1 as a" }, target: { table: "nowhere" } },
    "db_error",
    "42P01",
    /no table nowhere: create it first/,
  ],
  [
    "a syntax error",
    { source: { query: "selec 1" }, target: { table: "narrow" } },
    "db_error",
    "42601",
    /^The source's query failed at line 1: syntax error/,
  ],
  [
    "a field without a column",
    { source: { query: "select 1 as a, 2 as b" }, target: { table: "narrow" } },
    "configuration",
    "UNKNOWN_COLUMN",
    /no column b; it has a\. Name the fields/,
  ],
  [
    "two fields of one name",
    { source: { query: "select 1 as a, 2 as a" }, target: { table: "narrow" } },
    "configuration",
    "DUPLICATE_COLUMN",
    /more than one column "a"/,
  ],
  [
    "a value that does not fit",
    { source: { query: "select 'x' as a" }, target: { table: "narrow" } },
    "db_error",
    "22P02",
    /invalid input syntax for type integer/,
  ],
] as [string, JsonObject, string, string, RegExp][]) {
  test(`${name} fails with ${code}`, async () => {
    await sql`create table if not exists narrow (a int)`;
    const { error } = await run(config);
    assert.equal(error?.code, code, error?.message);
    assert.equal(error?.kind, kind);
    assert.match(error?.message ?? "", message);
  });
}

test("an HTTP source that refuses, breaks off or is not there fails the task, and the target stays as it was", async (t) => {
  await sql`create table untouched (a int)`;
  const target = { type: "sqldb", table: "untouched" };
  const attempt = async (source: JsonObject) => {
    const config = { source: { type: "http", ...source }, target, chunk_size: 1 };
    return (await run(config, { auth: targetOnly() })).error;
  };
  const refused = await attempt({ url: await serve(t, (_q, r) => r.writeHead(403).end('{"message":"no"}')) });
  assert.deepEqual([refused?.kind, refused?.code], ["auth", "HTTP_403"]);
  const cut = await attempt({
    url: await serve(t, (_q, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": 1000 });
      response.write('[{"a":1},{"a":2},', () => response.destroy());
    }),
  });
  assert.equal(cut?.kind, "connection");
  const short = await attempt({ url: await answers(t, '[{"a":1},{"a":2},') });
  assert.deepEqual([short?.kind, short?.code], ["parse", "INVALID_ROWS"]);
  const wrong = await attempt({ url: await answers(t, '[{"a":1},{"a":}]') });
  assert.match(wrong?.message ?? "", /not valid JSON/);
  const twice = await attempt({ url: await answers(t, '{"a":1,"A":2}') });
  assert.equal(twice?.code, "DUPLICATE_COLUMN");
  const down = await attempt({ url: `http://127.0.0.1:${await closedPort()}/` });
  assert.deepEqual([down?.kind, down?.code], ["connection", "ECONNREFUSED"]);
  assert.equal((await sql`select from untouched`).count, 0);
});

test("databases that cannot be reached or do not know us say whose they are", async () => {
  const port = await closedPort();
  const config = { source: { type: "sqldb", query: "select 1 as a" }, target: { type: "sqldb", table: "narrow" } };
  const noSource = await run(config, { auth: both(pg({ db_port: port })) });
  assert.deepEqual([noSource.error?.kind, noSource.error?.retryable], ["db_connection", true]);
  const noTarget = await run(config, { auth: both(pg(), pg({ db_user: "nobody", db_password: "hunter2" })) });
  assert.equal(noTarget.error?.kind, "auth");
  assert.doesNotMatch(JSON.stringify(noTarget), /hunter2/);
  const wrongType = await run(config, { auth: both({ name: "ch", type: "analytics_db", data: { host: "x" } }) });
  assert.match(wrongType.error?.message ?? "", /type analytics_db: its databases are PostgreSQL and DuckDB/);
  const none = await run(config, { auth: {} });
  assert.match(none.error?.message ?? "", /no credential/);
});

test("a cancelled transfer stops its query, and the target stays as it was", async (t) => {
  await sql`create table cancelled (a int)`;
  const aborter = new AbortController();
  const config = {
    source: { type: "sqldb", query: "select n as a from generate_series(1, 3) n, pg_sleep(600)" },
    target: { type: "sqldb", table: "cancelled" },
    mode: "replace",
  };
  const running = run(config, { signal: aborter.signal });
  const isSleeping = () =>
    sql`
      select 1 from pg_stat_activity where datname = current_database() and query like '%pg_sleep(600)%' and state = 'active'
        and pid <> pg_backend_pid()`;
  while ((await isSleeping()).length === 0) await sql`select pg_sleep(0.01)`;
  aborter.abort(new Error("stop"));
  assert.equal((await running).error?.kind, "cancelled");
  while ((await isSleeping()).length > 0) await sql`select pg_sleep(0.01)`;

  const endless = await serve(t, (_request, response) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.write('{"a":1}\n');
  });
  const late = await run(
    { ...config, source: { url: endless }, chunk_size: 1 },
    { signal: AbortSignal.timeout(100), auth: targetOnly() },
  );
  assert.equal(late.error?.kind, "timeout");
  assert.equal((await sql`select from cancelled`).count, 0);
});

test("a kind that may not run on this worker is not used by another name", async () => {
  const narrow = createToolRegistry({
    allowPrivate: [],
    store: { load: () => Promise.resolve(null) },
    kinds: ["transfer", "sqldb"],
  });
  const tool = await narrow.get("transfer");
  const source = { type: "sqldb", query: "select 1 as a" };
  const { error } = await tool.run(toolCall({ source, target: { type: "duckdb", table: "x" } }, { auth: both() }));
  assert.match(error?.message ?? "", /add duckdb to FLOW_WORKER_TOOLS/);
  const guarded = await tool.run(
    toolCall({ source: { url: "http://127.0.0.1:1/" }, target: { table: "narrow" } }, { auth: targetOnly() }),
  );
  assert.equal(guarded.error?.code, "EGRESS_REFUSED");
  await narrow.close();
});

test("more transfers than connections end all, from a database into itself", async () => {
  await sql`create table crowd (n int)`;
  const config = {
    source: { type: "sqldb", query: "select n from generate_series(1, 100) n" },
    target: { type: "sqldb", table: "crowd" },
    chunk_size: 10,
  };
  const results = await Promise.all(Array.from({ length: 12 }, () => run(config)));
  for (const result of results) done(result, 100);
  assert.equal((await sql`select from crowd`).count, 1200);
});
