import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import type { Json, JsonObject } from "../../../src/schema/words/json.ts";
import type { Credential } from "../../../src/tools/contract/tool.ts";
import { sqlEgress } from "../../../src/tools/sql/socket.ts";
import { createSqldbTool, type SqldbOptions } from "../../../src/tools/sqldb/sqldb.ts";
import {
  closedPort,
  type RecordedRequest,
  startHttpServer,
  type TestHttpServer,
} from "../../support/servers/http-server.ts";
import { toolCall } from "../../support/service/tool-call.ts";

/* `sqldb` with a credential of type `analytics_db`, against a server that answers as ClickHouse's HTTP interface does. */

type Handle = (request: RecordedRequest, response: ServerResponse) => void;

async function clickhouse(t: TestContext, handle: Handle): Promise<TestHttpServer> {
  const server = await startHttpServer(handle);
  t.after(() => server.close());
  return server;
}

function rows(response: ServerResponse, meta: [string, string][], data: Json[][]): void {
  const body = {
    meta: meta.map(([name, type]) => ({ name, type })),
    data,
    rows: data.length,
    statistics: { elapsed: 0.001, rows_read: 1, bytes_read: 1 },
  };
  response.writeHead(200, {
    "content-type": "application/json; charset=UTF-8",
    "x-clickhouse-format": "JSONCompact",
    "x-clickhouse-summary": '{"read_rows":"1","written_rows":"0"}',
  });
  response.end(JSON.stringify(body));
}

function exception(response: ServerResponse, status: number, code: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=UTF-8", "x-clickhouse-exception-code": code });
  response.end(`Code: ${code}. DB::Exception: ${text} (version 25.3.2.39 (official build))\n`);
}

function auth(server: { port: number }, data: JsonObject = {}, type = "analytics_db"): Record<string, Credential> {
  const credential = {
    name: "clickhouse_k8s",
    type,
    data: { host: "127.0.0.1", port: server.port, user: "ada", password: "pässword", ...data },
  };
  return { clickhouse_k8s: credential, default: credential };
}

const OPEN = sqlEgress("all", createEgressGuard({ allowPrivate: "all" }));

function tool(t: TestContext, options: Partial<SqldbOptions> = {}) {
  const made = createSqldbTool({ egress: OPEN, ...options });
  t.after(() => made.close?.());
  return made;
}

function queryOf({ url }: RecordedRequest): Record<string, string> {
  return Object.fromEntries(new URL(url, "http://x").searchParams);
}

test("a statement goes out as the body of a POST, and its rows are typed", async (t) => {
  const server = await clickhouse(t, (_request, response) =>
    rows(
      response,
      [
        ["id", "UInt64"],
        ["wide", "Nullable(Int128)"],
        ["amount", "Decimal(9, 2)"],
        ["ratio", "Float64"],
        ["at", "DateTime64(3)"],
        ["tags", "Array(LowCardinality(String))"],
        ["counts", "Map(String, UInt64)"],
        ["pair", "Tuple(n Int64, d Decimal(5, 1))"],
        ["gone", "Nullable(String)"],
      ],
      [["7", "9007199254740993", "12.50", 1.5, "2024-01-02T03:04:05.678Z", ["a"], { x: "3" }, ["4", "0.5"], null]],
    ),
  );
  const result = await tool(t).run(toolCall({ query: "select * from t;" }, { auth: auth(server) }));
  assert.equal(result.error, undefined, result.error?.message);
  const row = {
    id: 7,
    wide: "9007199254740993",
    amount: 12.5,
    ratio: 1.5,
    at: "2024-01-02T03:04:05.678Z",
    tags: ["a"],
    counts: { x: 3 },
    pair: [4, 0.5],
    gone: null,
  };
  assert.deepEqual(result.data, {
    status: "success",
    rows: [row],
    row_count: 1,
    columns: Object.keys(row),
    statement_count: 1,
  });
  const [request] = server.requests;
  assert.equal(request?.method, "POST");
  assert.equal(request?.body, "select * from t");
  assert.equal(request?.headers.authorization, `Basic ${Buffer.from("ada:pässword").toString("base64")}`);
  const { query_id, ...query } = queryOf(request!);
  assert.match(query_id ?? "", /^[0-9a-f-]{36}$/);
  assert.deepEqual(query, {
    database: "default",
    default_format: "JSONCompact",
    wait_end_of_query: "1",
    output_format_json_quote_64bit_integers: "1",
    output_format_json_quote_decimals: "1",
    output_format_json_quote_denormals: "1",
    date_time_output_format: "iso",
  });
});

test("parameters travel as param_…, with the type that their value has", async (t) => {
  const server = await clickhouse(t, (_request, response) => rows(response, [["x", "String"]], [["1"]]));
  const params = ["it's\n\\", 7, 1.5, true, ["a'b", null], null, [1, 2.5]];
  const query = "select $1, $2, $3, $4, $5, $6, $7, '$9 \\' $8', `$8`, $1 -- $8";
  const result = await tool(t).run(toolCall({ query, params }, { auth: auth(server) }));
  assert.equal(result.error, undefined, result.error?.message);
  assert.equal(
    server.requests[0]?.body,
    "select {p1:String}, {p2:Int64}, {p3:Float64}, {p4:Bool}, {p5:Array(Nullable(String))}, {p6:Nullable(String)}, " +
      "{p7:Array(Float64)}, '$9 \\' $8', `$8`, {p1:String} -- $8",
  );
  const { param_p1, param_p2, param_p3, param_p4, param_p5, param_p6, param_p7 } = queryOf(server.requests[0]!);
  assert.deepEqual(
    [param_p1, param_p2, param_p3, param_p4, param_p5, param_p6, param_p7],
    ["it\\'s\\n\\\\", "7", "1.5", "true", "['a\\'b',NULL]", "\\N", "[1,2.5]"],
  );
});

test("a map of parameters is for the types that the statement names itself", async (t) => {
  const server = await clickhouse(t, (_request, response) => rows(response, [["x", "Date"]], [["2024-01-02"]]));
  const query = "select {day:Date} as x";
  await tool(t).run(toolCall({ query, params: { day: "2024-01-02" } }, { auth: auth(server) }));
  assert.equal(server.requests[0]?.body, query);
  assert.equal(queryOf(server.requests[0]!)["param_day"], "2024-01-02");
});

test("several statements share a session, and what an insert wrote is counted", async (t) => {
  const server = await clickhouse(t, (request, response) => {
    if (request.body.startsWith("select")) return rows(response, [["n", "UInt64"]], [["2"]]);
    const written = request.body.startsWith("insert") ? "2" : "0";
    response.writeHead(200, { "x-clickhouse-summary": `{"read_rows":"0","written_rows":"${written}"}` }).end();
  });
  const result = await tool(t).run(
    toolCall(
      { command: "create temporary table t (a Int64); insert into t values (1), (2); select count() as n from t" },
      { auth: auth(server, { database: "shop" }) },
    ),
  );
  assert.deepEqual((result.data as JsonObject)["rows"], [{ n: 2 }]);
  assert.deepEqual(result.virtual?.["command_1"], { status: "success", rows: [], row_count: 2, columns: [] });
  const sessions = new Set(server.requests.map((request) => queryOf(request)["session_id"]));
  assert.equal(sessions.size, 1);
  assert.ok(!sessions.has(undefined));
  assert.equal(queryOf(server.requests[0]!)["database"], "shop");
});

test("a user who may change no setting gets the server's defaults", async (t) => {
  const server = await clickhouse(t, (request, response) => {
    if (queryOf(request)["date_time_output_format"] !== undefined) {
      return exception(
        response,
        500,
        164,
        "Cannot modify 'date_time_output_format' setting in readonly mode. (READONLY)",
      );
    }
    rows(
      response,
      [
        ["at", "DateTime"],
        ["id", "UInt64"],
      ],
      [["2024-01-02 03:04:05", 7]],
    );
  });
  const result = await tool(t).run(toolCall({ query: "select at, id from t" }, { auth: auth(server) }));
  assert.deepEqual((result.data as JsonObject)["rows"], [{ at: "2024-01-02T03:04:05", id: 7 }]);
});

for (const [code, status, text, kind, name, retryable] of [
  [
    62,
    400,
    "Syntax error: failed at position 1 (selec): selec 1. Expected one of: SELECT. (SYNTAX_ERROR)",
    "db_error",
    "SYNTAX_ERROR",
    false,
  ],
  [
    516,
    403,
    "ada: Authentication failed: password is incorrect, or there is no user with such name. (AUTHENTICATION_FAILED)",
    "auth",
    "AUTHENTICATION_FAILED",
    false,
  ],
  [
    159,
    500,
    "Timeout exceeded: elapsed 1.2 seconds, maximum: 1. (TIMEOUT_EXCEEDED)",
    "db_timeout",
    "TIMEOUT_EXCEEDED",
    false,
  ],
  [
    202,
    500,
    "Too many simultaneous queries. Maximum: 100. (TOO_MANY_SIMULTANEOUS_QUERIES)",
    "db_error",
    "TOO_MANY_SIMULTANEOUS_QUERIES",
    true,
  ],
  [
    469,
    500,
    "Constraint `c` for table t is violated at row 1. (VIOLATED_CONSTRAINT)",
    "db_constraint",
    "VIOLATED_CONSTRAINT",
    false,
  ],
] as [number, number, string, string, string, boolean][]) {
  test(`exception ${code} is ${kind}, code ${name}`, async (t) => {
    const server = await clickhouse(t, (_request, response) => exception(response, status, code, text));
    const { error } = await tool(t).run(
      toolCall({ query: "selec 1" }, { auth: auth(server, { password: "hunter2" }) }),
    );
    assert.equal(error?.kind, kind);
    assert.equal(error?.code, name);
    assert.equal(error?.retryable, retryable);
    assert.deepEqual(error?.details, { code });
    assert.match(error?.message ?? "", /^The SQL statement failed: [^(]*/);
    assert.doesNotMatch(error?.message ?? "", /version|hunter2/);
  });
}

test("an answer that is not from ClickHouse is reported with its status", async (t) => {
  const server = await clickhouse(t, (_request, response) => response.writeHead(502).end("<h1>Bad gateway</h1>"));
  const { error } = await tool(t).run(toolCall({ query: "select 1" }, { auth: auth(server) }));
  assert.equal(error?.code, "HTTP_502");
  assert.equal(error?.retryable, true);
});

test("a statement with a format of its own gives nothing that can be read", async (t) => {
  const server = await clickhouse(t, (_request, response) =>
    response.writeHead(200, { "x-clickhouse-format": "CSV" }).end("1\n"),
  );
  const { error } = await tool(t).run(toolCall({ query: "select 1 format CSV" }, { auth: auth(server) }));
  assert.match(error?.message ?? "", /\(format CSV\): leave "format" out/);
});

test("a cancelled statement is killed on the server", async (t) => {
  const aborter = new AbortController();
  const server = await clickhouse(t, (request, response) => {
    if (request.body.startsWith("KILL")) return void response.writeHead(200).end();
    aborter.abort(new Error("stop"));
  });
  const { error } = await tool(t).run(
    toolCall({ query: "select sleep(3)" }, { auth: auth(server), signal: aborter.signal }),
  );
  assert.equal(error?.kind, "cancelled");
  const [started, killed] = server.requests;
  assert.equal(killed?.body, "KILL QUERY WHERE query_id = {id:String} ASYNC");
  assert.equal(queryOf(killed!)["param_id"], queryOf(started!)["query_id"]);
});

test("a time-out is of kind timeout", async (t) => {
  const server = await clickhouse(t, (request, response) => {
    if (request.body.startsWith("KILL")) response.writeHead(200).end();
  });
  const { error } = await tool(t).run(
    toolCall({ query: "select sleep(3)" }, { auth: auth(server), signal: AbortSignal.timeout(20) }),
  );
  assert.equal(error?.kind, "timeout");
});

test("more rows or bytes than a task may give are refused", async (t) => {
  const server = await clickhouse(t, (_request, response) => rows(response, [["a", "UInt8"]], [[1], [2], [3]]));
  const call = toolCall({ query: "select 1" }, { auth: auth(server) });
  assert.equal((await tool(t, { rowsMax: 2 }).run(call)).error?.code, "RESULT_TOO_LARGE");
  assert.equal((await tool(t, { resultBytesMax: 20 }).run(call)).error?.code, "RESULT_TOO_LARGE");
});

test("nothing that listens is db_connection, and a guarded address is refused", async (t) => {
  const port = await closedPort();
  const call = toolCall({ query: "select 1" }, { auth: auth({ port }) });
  const { error } = await tool(t).run(call);
  assert.equal(error?.kind, "db_connection");
  assert.equal(error?.code, "ECONNREFUSED");
  const guarded = await tool(t, { egress: sqlEgress([], createEgressGuard({ allowPrivate: [] })) }).run(call);
  assert.equal(guarded.error?.code, "EGRESS_REFUSED");
});

for (const [name, config, credentials, message] of [
  ["no SQL", {}, auth({ port: 1 }), /No SQL command provided/],
  ["a missing parameter", { query: "select $2", params: [1] }, auth({ port: 1 }), /uses parameter \$2/],
  ["a port that is none", { query: "select 1" }, auth({ port: 1 }, { port: "x" }), /port "x"/],
  ["a host that is none", { query: "select 1" }, auth({ port: 1 }, { host: "ftp://x" }), /has an invalid host/],
] as [string, JsonObject, Record<string, Credential>, RegExp][]) {
  test(`${name} is an error of the configuration`, async (t) => {
    const { error } = await tool(t).run(toolCall(config, { auth: credentials }));
    assert.equal(error?.kind, "configuration");
    assert.match(error?.message ?? "", message);
  });
}
