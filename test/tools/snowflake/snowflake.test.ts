import assert from "node:assert/strict";
import { createHash, createPublicKey, generateKeyPairSync } from "node:crypto";
import type { ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { jwtVerify } from "jose";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { Credential } from "../../../src/tools/contract/tool.ts";
import { createSnowflakeTool } from "../../../src/tools/snowflake/snowflake.ts";
import {
  closedPort,
  type RecordedRequest,
  startHttpServer,
  type TestHttpServer,
} from "../../support/servers/http-server.ts";
import { toolCall } from "../../support/service/tool-call.ts";

/*
 * A server that answers in the shapes of the SQL interface's documentation: 202 with a handle, then 200 with a result set
 * in format jsonv2, 422 for a statement that failed.
 */

const HANDLE = "01bb5c8e-0000-0000-0000-000000000001";

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function running(handle = HANDLE): JsonObject {
  return {
    code: "333334",
    message: "Asynchronous execution in progress.",
    statementHandle: handle,
    statementStatusUrl: `/api/v2/statements/${handle}`,
  };
}

function resultSet(rowType: JsonObject[], data: (string | null)[][], more: JsonObject = {}): JsonObject {
  return {
    resultSetMetaData: { numRows: data.length, format: "jsonv2", rowType, partitionInfo: [{ rowCount: data.length }] },
    data,
    code: "090001",
    statementStatusUrl: `/api/v2/statements/${HANDLE}?requestId=1`,
    sqlState: "00000",
    statementHandle: HANDLE,
    message: "Statement executed successfully.",
    ...more,
  };
}

const ID: JsonObject = { name: "ID", type: "fixed", scale: 0, precision: 38, nullable: false };
const ONE_ROW = resultSet([ID], [["1"]]);

type Handle = (request: RecordedRequest, response: ServerResponse) => void;

async function warehouse(t: TestContext, handle: Handle): Promise<TestHttpServer> {
  const server = await startHttpServer(handle);
  t.after(() => server.close());
  return server;
}

/** Submits are answered with 202, whatever is asked for afterwards with `result`. */
function answering(result: JsonObject): Handle {
  return (request, response) => {
    if (request.method === "POST") json(response, 202, running());
    else json(response, 200, result);
  };
}

const CONTEXT = { warehouse: "COMPUTE_WH", database: "SHOP", schema: "PUBLIC", role: "LOADER" };

function auth(data: JsonObject, type = "warehouse"): Record<string, Credential> {
  const credential = { name: "wh", type, data: { account: "myorg-my_account", ...CONTEXT, ...data } };
  return { wh: credential, default: credential };
}

function tool(t: TestContext, options: Partial<Parameters<typeof createSnowflakeTool>[0]> = {}) {
  const made = createSnowflakeTool({
    egress: createEgressGuard({ allowPrivate: "all" }),
    poll: { firstMs: 1, longestMs: 2 },
    ...options,
  });
  t.after(() => made.close?.());
  return made;
}

test("a statement is submitted with its context, asked for until it has ended, and its rows are typed", async (t) => {
  const rowType = [
    ID,
    { name: "AMOUNT", type: "fixed", scale: 2 },
    { name: "RATIO", type: "real", scale: 0 },
    { name: "NAME", type: "text", scale: 0 },
    { name: "OPEN", type: "boolean", scale: 0 },
    { name: "DAY", type: "date", scale: 0 },
    { name: "AT_TIME", type: "time", scale: 9 },
    { name: "NTZ", type: "timestamp_ntz", scale: 9 },
    { name: "LTZ", type: "timestamp_ltz", scale: 9 },
    { name: "TZ", type: "timestamp_tz", scale: 9 },
    { name: "BYTES", type: "binary", scale: 0 },
    { name: "V", type: "variant", scale: 0 },
    { name: "GONE", type: "text", scale: 0 },
  ];
  const row = [
    "9007199254740993",
    "12.50",
    "1.5",
    "Ada",
    "true",
    "18656",
    "82919.000000000",
    "1611871777.123456789",
    "-0.500000000",
    "1611871777.000000000 960",
    "68690a",
    '{"a":[1]}',
    null,
  ]; // prettier-ignore
  const states = [running(), resultSet(rowType, [row])];
  const server = await warehouse(t, (request, response) => {
    if (request.method === "POST") json(response, 202, running());
    else {
      const state = states.shift()!;
      json(response, "data" in state ? 200 : 202, state);
    }
  });
  const result = await tool(t).run(
    toolCall(
      { query: "select * from t -- all; of them" },
      { auth: auth({ url: server.origin, token: "secret-token" }) },
    ),
  );
  assert.equal(result.error, undefined, result.error?.message);
  const data = result.data as JsonObject;
  assert.deepEqual((data["rows"] as JsonObject[])[0], {
    ID: "9007199254740993",
    AMOUNT: 12.5,
    RATIO: 1.5,
    NAME: "Ada",
    OPEN: true,
    DAY: "2021-01-29",
    AT_TIME: "23:01:59",
    NTZ: "2021-01-28T22:09:37.123456789",
    LTZ: "1969-12-31T23:59:59.5Z",
    TZ: "2021-01-28T22:09:37Z",
    BYTES: "aGkK",
    V: { a: [1] },
    GONE: null,
  });
  assert.equal(data["status"], "success");
  assert.equal(data["row_count"], 1);
  assert.deepEqual(
    data["columns"],
    rowType.map(({ name }) => name),
  );
  assert.deepEqual((data["statement_0"] as JsonObject)["rows"], data["rows"]);

  const [submit, ...asked] = server.requests;
  assert.match(submit!.url, /^\/api\/v2\/statements\?requestId=[0-9a-f-]{36}&async=true$/);
  assert.equal(submit!.headers.authorization, "Bearer secret-token");
  assert.equal(submit!.headers["content-type"], "application/json");
  assert.equal(submit!.headers.accept, "application/json");
  assert.deepEqual(JSON.parse(submit!.body), {
    statement: "select * from t -- all; of them",
    ...CONTEXT,
    resultSetMetaData: { format: "jsonv2" },
  });
  assert.deepEqual(
    asked.map(({ method, url }) => `${method} ${url}`),
    [`GET /api/v2/statements/${HANDLE}`, `GET /api/v2/statements/${HANDLE}`],
  );
});

test("parameters are bound by $n and by ?, with their types", async (t) => {
  const server = await warehouse(t, answering(ONE_ROW));
  const query = "select '$1', $2, $1, $2 -- $3\n from t where a = '\\'$9'; select ?, ?";
  const result = await tool(t).run(
    toolCall({ query, params: ["x'; drop table t", 7] }, { auth: auth({ url: server.origin, token: "t" }) }),
  );
  assert.equal(result.error, undefined, result.error?.message);
  const bodies = server.requests
    .filter(({ method }) => method === "POST")
    .map(({ body }) => JSON.parse(body) as JsonObject);
  const text = { type: "TEXT", value: "x'; drop table t" };
  const number = { type: "FIXED", value: "7" };
  assert.deepEqual(
    bodies.map(({ statement, bindings }) => ({ statement, bindings })),
    [
      {
        statement: "select '$1', ?, ?, ? -- $3\n from t where a = '\\'$9'",
        bindings: { 1: number, 2: text, 3: number },
      },
      { statement: "select ?, ?", bindings: { 1: text, 2: number } },
    ],
  );
});

test("several statements without parameters are one request, and each one's result is read", async (t) => {
  const server = await warehouse(t, (request, response) => {
    if (request.method === "POST") return json(response, 202, running());
    if (request.url.includes("part-1")) {
      const stats = { numRowsInserted: 2, numRowsUpdated: 0, numRowsDeleted: 0, numDuplicateRowsUpdated: 0 };
      return json(response, 200, resultSet([{ ...ID, name: "number of rows inserted" }], [["2"]], { stats }));
    }
    if (request.url.includes("part-2")) return json(response, 200, ONE_ROW);
    json(response, 200, {
      ...ONE_ROW,
      statementHandles: ["part-1", "part-2"],
      data: [["Multiple statements executed successfully."]],
    });
  });
  const result = await tool(t).run(
    toolCall(
      { commands: ["insert into t values (1), (2)", "select 1 as id;"] },
      { auth: auth({ url: server.origin, token: "t" }) },
    ),
  );
  assert.equal(result.error, undefined, result.error?.message);
  const body = JSON.parse(server.requests[0]!.body) as JsonObject;
  assert.deepEqual(body["parameters"], { MULTI_STATEMENT_COUNT: "2" });
  assert.equal(body["statement"], "insert into t values (1), (2);\nselect 1 as id");
  const data = result.data as JsonObject;
  assert.equal((data["statement_0"] as JsonObject)["row_count"], 2);
  assert.deepEqual(data["rows"], [{ ID: 1 }]);
});

test("further partitions of a result are fetched", async (t) => {
  const meta = {
    numRows: 3,
    format: "jsonv2",
    rowType: [ID],
    partitionInfo: [{ rowCount: 1 }, { rowCount: 1 }, { rowCount: 1 }],
  };
  const server = await warehouse(t, (request, response) => {
    if (request.method === "POST") return json(response, 202, running());
    const partition = /partition=(\d+)/.exec(request.url)?.[1];
    if (partition === undefined) return json(response, 200, { ...ONE_ROW, resultSetMetaData: meta });
    json(response, 200, { data: [[String(Number(partition) + 1)]] });
  });
  const result = await tool(t).run(toolCall({ query: "select 1" }, { auth: auth({ url: server.origin, token: "t" }) }));
  assert.deepEqual((result.data as JsonObject)["rows"], [{ ID: 1 }, { ID: 2 }, { ID: 3 }]);
  const small = await tool(t, { rowsMax: 2 }).run(
    toolCall({ query: "select 1" }, { auth: auth({ url: server.origin, token: "t" }) }),
  );
  assert.equal(small.error?.code, "RESULT_TOO_LARGE");
});

test("a private key signs the token that key-pair authentication asks for", async (t) => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const pem = privateKey.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "open" }).toString();
  const server = await warehouse(t, answering(ONE_ROW));
  const data = {
    url: server.origin,
    account: "xy12345.eu-central-1",
    user: "loader",
    private_key: pem,
    private_key_passphrase: "open",
  };
  const result = await tool(t).run(toolCall({ query: "select 1" }, { auth: auth(data) }));
  assert.equal(result.error, undefined, result.error?.message);
  const { headers } = server.requests[0]!;
  assert.equal(headers["x-snowflake-authorization-token-type"], "KEYPAIR_JWT");
  const token = headers.authorization!.replace("Bearer ", "");
  const { payload, protectedHeader } = await jwtVerify(token, publicKey);
  const der = createPublicKey(publicKey.export({ type: "spki", format: "pem" })).export({
    type: "spki",
    format: "der",
  });
  const fingerprint = createHash("sha256").update(der).digest("base64");
  assert.equal(protectedHeader.alg, "RS256");
  assert.equal(payload.sub, "XY12345.LOADER");
  assert.equal(payload.iss, `XY12345.LOADER.SHA256:${fingerprint}`);
  assert.ok(payload.exp! - payload.iat! <= 3600);

  const wrong = await tool(t).run(
    toolCall({ query: "select 1" }, { auth: auth({ ...data, private_key_passphrase: "no" }) }),
  );
  assert.equal(wrong.error?.kind, "configuration");
  assert.doesNotMatch(wrong.error?.message ?? "", /BEGIN/);
});

test("a password is exchanged for a session once, and again when the session has ended", async (t) => {
  let sessions = 0;
  let good = "";
  const server = await warehouse(t, (request, response) => {
    if (request.url.startsWith("/session/v1/login-request")) {
      sessions += 1;
      good = `ver:3-hint:${sessions}`;
      return json(response, 200, {
        data: { token: good, validityInSeconds: 3600 },
        success: true,
        code: null,
        message: null,
      });
    }
    if (request.headers.authorization !== `Snowflake Token="${good}"`) {
      return json(response, 401, { code: "390112", message: "Your session has expired. Please login again." });
    }
    answering(ONE_ROW)(request, response);
  });
  const made = tool(t);
  const run = () =>
    made.run(toolCall({ query: "select 1" }, { auth: auth({ url: server.origin, user: "ada", password: "pw" }) }));
  for (const result of await Promise.all([run(), run(), run()]))
    assert.equal(result.status, "ok", result.error?.message);
  assert.equal(sessions, 1, "Tasks that begin together share the login");
  assert.deepEqual((JSON.parse(server.requests[0]!.body) as { data: JsonObject }).data, {
    CLIENT_APP_ID: "flow",
    CLIENT_APP_VERSION: "1",
    ACCOUNT_NAME: "myorg-my_account",
    LOGIN_NAME: "ada",
    PASSWORD: "pw",
  });
  good = "another";
  assert.equal((await run()).status, "ok");
  assert.equal(sessions, 2);
});

test("a login that is refused is of kind auth and shows no password", async (t) => {
  const server = await warehouse(t, (_request, response) =>
    json(response, 200, {
      data: {},
      code: "390100",
      message: "Incorrect username or password was specified.",
      success: false,
    }),
  );
  const result = await tool(t).run(
    toolCall({ query: "select 1" }, { auth: auth({ url: server.origin, user: "ada", password: "hunter2" }) }),
  );
  assert.equal(result.error?.kind, "auth");
  assert.match(result.error?.message ?? "", /as ada failed: Incorrect username or password/);
  assert.doesNotMatch(JSON.stringify(result), /hunter2/);
});

for (const [name, status, body, kind, code, retryable] of [
  [
    "a syntax error",
    422,
    {
      code: "001003",
      message: "SQL compilation error:\nsyntax error line 1",
      sqlState: "42000",
      statementHandle: HANDLE,
    },
    "db_error",
    "42000",
    false,
  ],
  [
    "a constraint",
    422,
    { code: "100072", message: "NULL result in a non-nullable column", sqlState: "23502" },
    "db_constraint",
    "23502",
    false,
  ],
  ["a refused token", 401, { code: "390303", message: "Invalid OAuth access token." }, "auth", "HTTP_401", false],
  ["too many requests", 429, { code: "390001", message: "Too many requests" }, "rate_limit", "HTTP_429", true],
  ["a failing service", 503, { message: "busy" }, "server_error", "HTTP_503", true],
] as [string, number, JsonObject, string, string, boolean][]) {
  test(`${name} is ${kind}, code ${code}`, async (t) => {
    const server = await warehouse(t, (_request, response) => json(response, status, body));
    const result = await tool(t).run(
      toolCall({ query: "selec 1" }, { auth: auth({ url: server.origin, token: "t0ken" }) }),
    );
    assert.equal(result.error?.kind, kind);
    assert.equal(result.error?.code, code);
    assert.equal(result.error?.retryable, retryable);
    assert.ok(result.error?.message.includes(String(body["message"]).split("\n")[0]!));
    assert.doesNotMatch(JSON.stringify(result), /t0ken/);
  });
}

test("a statement whose state cannot be asked for a moment is not given up", async (t) => {
  let asked = 0;
  const server = await warehouse(t, (request, response) => {
    if (request.method === "POST") return json(response, 202, running());
    asked += 1;
    if (asked < 3) return json(response, 503, { message: "busy" });
    json(response, 200, ONE_ROW);
  });
  const result = await tool(t).run(toolCall({ query: "select 1" }, { auth: auth({ url: server.origin, token: "t" }) }));
  assert.equal(result.status, "ok");
});

test("a cancelled statement is cancelled at the warehouse", async (t) => {
  const aborter = new AbortController();
  const server = await warehouse(t, (request, response) => {
    if (request.url.endsWith("/cancel")) return json(response, 200, { message: "successfully canceled" });
    if (request.method === "GET") aborter.abort(new Error("stop"));
    json(response, 202, running());
  });
  const result = await tool(t).run(
    toolCall({ query: "select 1" }, { auth: auth({ url: server.origin, token: "t" }), signal: aborter.signal }),
  );
  assert.equal(result.error?.kind, "cancelled");
  assert.equal(server.requests.at(-1)?.url, `/api/v2/statements/${HANDLE}/cancel`);
  assert.equal(server.requests.at(-1)?.headers.authorization, "Bearer t");
});

test("a task that is cancelled while it submits waits for the handle, and cancels there", async (t) => {
  const aborter = new AbortController();
  const server = await warehouse(t, (request, response) => {
    if (request.url.endsWith("/cancel")) return json(response, 200, { message: "successfully canceled" });
    aborter.abort(new DOMException("late", "TimeoutError"));
    setImmediate(() => json(response, 202, running()));
  });
  const result = await tool(t).run(
    toolCall({ query: "select 1" }, { auth: auth({ url: server.origin, token: "t" }), signal: aborter.signal }),
  );
  assert.equal(result.error?.kind, "timeout");
  assert.ok(server.requests.at(-1)?.url.endsWith("/cancel"));
});

test("a status address on another host gets no token", async (t) => {
  const other = await warehouse(t, (_request, response) => json(response, 200, ONE_ROW));
  const server = await warehouse(t, (request, response) => {
    if (request.method === "GET") return json(response, 200, ONE_ROW);
    json(response, 202, { ...running(), statementStatusUrl: `${other.origin}/api/v2/statements/${HANDLE}` });
  });
  const result = await tool(t).run(toolCall({ query: "select 1" }, { auth: auth({ url: server.origin, token: "t" }) }));
  assert.equal(result.status, "ok");
  assert.equal(other.requests.length, 0);
});

test("nothing that listens is db_connection, and a guarded address is refused", async (t) => {
  const url = `http://127.0.0.1:${await closedPort()}`;
  const down = await tool(t).run(toolCall({ query: "select 1" }, { auth: auth({ url, token: "t" }) }));
  assert.equal(down.error?.kind, "db_connection");
  assert.equal(down.error?.retryable, true);
  const guarded = tool(t, { egress: createEgressGuard({ allowPrivate: [] }) });
  const refused = await guarded.run(toolCall({ query: "select 1" }, { auth: auth({ url, token: "t" }) }));
  assert.equal(refused.error?.code, "EGRESS_REFUSED");
});

for (const [name, config, credentials, message] of [
  ["no SQL", {}, auth({ token: "t" }), /No SQL command provided/],
  ["no credential", { query: "select 1" }, {}, /has no account/],
  [
    "a database's credential",
    { query: "select 1" },
    auth({ token: "t" }, "sqldb"),
    /takes one credential of type warehouse.*"wh" \(sqldb\)/,
  ],
  ["no secret", { query: "select 1" }, auth({ user: "ada" }), /has no "password", "private_key" or "token"/],
  [
    "an account that is an address",
    { query: "select 1" },
    auth({ token: "t", account: "evil.example/x" }),
    /has an invalid "account"/,
  ],
  [
    "a missing parameter",
    { query: "select $2", params: [1] },
    auth({ token: "t" }),
    /uses parameter 2, and "params" has 1/,
  ],
] as [string, JsonObject, Record<string, Credential>, RegExp][]) {
  test(`${name} is an error of the configuration`, async (t) => {
    const { error } = await tool(t).run(toolCall(config, { auth: credentials }));
    assert.equal(error?.kind, "configuration");
    assert.match(error?.message ?? "", message);
  });
}
