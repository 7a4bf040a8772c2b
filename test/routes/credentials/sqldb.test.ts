import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { createTestDatabase } from "../../support/database/postgres.ts";
import { closedPort } from "../../support/servers/http-server.ts";
import { type Api, type Body, openApi, posted, TOKENS } from "../../support/service/api.ts";

const api = await openApi({ FLOW_SQLDB_EXECUTE_ROWS_MAX: "50", FLOW_SQLDB_EXECUTE_TIMEOUT_SECONDS: "1" });

const { url: _url, ...other } = await createTestDatabase();
await register(api, "other", other);
await register(api, "own", ownOf(api));

function register({ guarded }: Api, name: string, data: Body) {
  return guarded.request("/api/credentials", posted({ name, type: "sqldb", data }, authorization("operator")));
}

/** The database that the service itself uses. */
function ownOf({ database }: Api): Body {
  const { host, port, user, pass, database: name } = database.sql.options;
  return { host: host[0], port: port[0], user, password: typeof pass === "string" ? pass : "x", database: name };
}

function authorization(who: keyof typeof TOKENS) {
  return { authorization: `Bearer ${TOKENS[who]}` };
}

async function execute(body: Body, { guarded } = api, who: keyof typeof TOKENS = "operator") {
  const response = await guarded.request("/api/sqldb/execute", posted(body, authorization(who)));
  return { status: response.status, body: (await response.json()) as Body };
}

const run = (query: string, parameters?: unknown[]) =>
  execute({ credential_name: "other", query, ...(parameters !== undefined && { parameters }) });

test("it answers columns, rows, their number and the command, with values as the sqldb tool gives them", async () => {
  const { status, body } = await run("select $1::int as a, $2::jsonb as b, null as c, 1.5::numeric as d", [
    7,
    { x: [1] },
  ]);
  assert.equal(status, 200);
  assert.deepEqual(body, {
    status: "ok",
    columns: ["a", "b", "c", "d"],
    rows: [{ a: 7, b: { x: [1] }, c: null, d: 1.5 }],
    row_count: 1,
    command: "SELECT",
  });
});

test("of several statements the answer is the last one's; a change of rows returns their number", async () => {
  const { body } = await run(
    "create table t (n int); insert into t select generate_series(1, 20); update t set n = n + 1",
  );
  assert.deepEqual(body, { status: "ok", columns: [], rows: [], row_count: 20, command: "UPDATE" });
  assert.equal((await run("drop table t")).body["command"], "DROP TABLE");
  assert.deepEqual((await run("select 1 as a where false")).body["columns"], ["a"]);
});

test("a value is never text of the statement", async () => {
  const { body } = await run("select $1::text as a", ["'; drop table x; --"]);
  assert.deepEqual(body["rows"], [{ a: "'; drop table x; --" }]);
});

for (const [query, sqlstate] of [
  ["select * from nowhere", "42P01"],
  ["selec 1", "42601"],
  ["select 1 / 0", "22012"],
  ["select pg_sleep(30)", "57014"],
] as const) {
  test(`a database error is 400 with its SQLSTATE: ${query}`, async () => {
    const { status, body } = await run(query);
    assert.deepEqual([status, body["code"], body["detail"]], [400, "SQL_FAILED", { sqlstate }], JSON.stringify(body));
  });
}

test("a statement that lifts its own limit is stopped all the same", async () => {
  const { status, body } = await run("set statement_timeout = 0; select pg_sleep(30)");
  assert.deepEqual([status, body["code"]], [504, "TIMEOUT"]);
});

test("more rows than the limit are refused, also of a statement that would give millions", async () => {
  for (const count of [51, 50_000_000]) {
    const { status, body } = await run(`select generate_series(1, ${count})`);
    assert.deepEqual([status, body["code"]], [413, "TOO_LARGE"]);
  }
  assert.equal((await run("select generate_series(1, 50)")).body["row_count"], 50);
});

test("the error of an unreachable database contains no password", async () => {
  const port = await closedPort();
  await register(api, "away", { ...other, host: "127.0.0.1", port, password: "canary-password" });
  const { status, body } = await execute({ credential_name: "away", query: "select 1" });
  assert.deepEqual([status, body["code"]], [400, "SQL_FAILED"]);
  assert.match(String(body["error"]), /ECONNREFUSED/);
  assert.ok(!JSON.stringify(body).includes("canary"));
});

for (const [what, body, status] of [
  ["an unknown credential", { credential_name: "none", query: "select 1" }, 404],
  ["no query", { credential_name: "other" }, 422],
  ["an empty query", { credential_name: "other", query: "" }, 422],
  ["nothing but a comment", { credential_name: "other", query: "-- x" }, 422],
  ["a parameter too few", { credential_name: "other", query: "select $1::int" }, 422],
  ["a parameter too many", { credential_name: "other", query: "select 1", parameters: [1] }, 422],
  ["parameters that are a map", { credential_name: "other", query: "select $1", parameters: { a: 1 } }, 422],
  ["COPY", { credential_name: "other", query: "copy (select 1) to stdout" }, 422],
] as const) {
  test(`${what}: ${status}`, async () => {
    assert.equal((await execute(body)).status, status);
  });
}

test("a credential of another type is refused", async () => {
  const content = { name: "no-sql", type: "bearer", data: { token: "t" } };
  await api.guarded.request("/api/credentials", posted(content, authorization("operator")));
  const { status, body } = await execute({ credential_name: "no-sql", query: "select 1" });
  assert.deepEqual([status, body["error"]], [422, "'no-sql' is of type bearer; SQL takes a sqldb one"]);
});

test("the service's own database is refused, whatever name its address has; a setting allows it", async () => {
  for (const host of ["localhost", "127.0.0.1"]) {
    await register(api, "own-alias", { ...ownOf(api), host });
    const { status, body } = await execute({ credential_name: "own-alias", query: "select name from flow.credential" });
    assert.deepEqual([status, body["code"]], [403, "FORBIDDEN"], JSON.stringify(body));
    assert.match(String(body["error"]), /FLOW_SQLDB_EXECUTE_CATALOG=true/);
  }
  const allowed = await openApi({ FLOW_SQLDB_EXECUTE_CATALOG: "true" });
  await register(allowed, "own", ownOf(allowed));
  const query = "select name from flow.credential";
  const { body } = await execute({ credential_name: "own", query }, allowed);
  assert.deepEqual(body["rows"], [{ name: "own" }]);
});

test("the own database is known also to a role that may ask for next to nothing", async () => {
  const { sql } = api.database;
  const role = `poor_${process.pid}`;
  await sql.unsafe(`create role ${role} login password 'poor'`);
  try {
    await register(api, "poor", { ...ownOf(api), user: role, password: "poor" });
    const { status, body } = await execute({ credential_name: "poor", query: "select 1" });
    assert.equal(status, 403, JSON.stringify(body));
    await sql.unsafe("revoke execute on function pg_control_system() from public");
    assert.equal((await execute({ credential_name: "poor", query: "select 1" })).status, 403);
  } finally {
    await sql.unsafe("grant execute on function pg_control_system() to public");
    await sql.unsafe(`drop role ${role}`);
  }
});

test("workers may not", async () => {
  assert.equal((await execute({ credential_name: "other", query: "select 1" }, api, "worker")).status, 403);
});

test("each call stands in the audit log with its outcome and the digest of its text, which it does not hold", async () => {
  const { sql } = api.database;
  await api.service.audit.close();
  const [before] = await sql<{ last: string }[]>`select max(audit_id) as last from auth.audit_log`;
  const query = "select 'canary-statement' as told";
  await run(query);
  await run("select canary_statement from nowhere");
  await execute({ credential_name: "own", query });
  await execute({ credential_name: "other", query }, api, "worker");
  await api.service.audit.close();
  const rows = await sql<{ line: string; detail: Body | null }[]>`
    select concat_ws(' ', actor_kind, resource, result) as line, detail from auth.audit_log
    where action = 'sqldb.execute' and audit_id > ${before?.last ?? 0} order by audit_id`;
  assert.deepEqual(
    rows.map(({ line }) => line),
    [
      "operator credential/other allow",
      "operator credential/other error",
      "operator credential/own deny",
      "worker credential deny",
    ],
  );
  assert.deepEqual(rows[0]?.detail, {
    command: "SELECT",
    row_count: 1,
    sha256: createHash("sha256").update(query).digest("hex"),
  });
  assert.equal(rows[1]?.detail?.["sqlstate"], "42P01");
  assert.ok(!JSON.stringify(rows).includes("canary"));
});
