import assert from "node:assert/strict";
import { test } from "node:test";
import { type Body, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { claimOf, ONE_STEP, workWith } from "../../support/service/api-work.ts";

const api = await openApi();

const CANARY = "canary-secret-4711";
const SQLDB = { host: "db", port: 5432, user: "u", password: CANARY, database: "d" };

const as = (token: keyof typeof TOKENS) => ({ authorization: `Bearer ${TOKENS[token]}` });

async function call(path: string, init: RequestInit = {}, token: keyof typeof TOKENS = "operator") {
  const headers = { ...(init.headers as Record<string, string>), ...as(token) };
  const response = await api.guarded.request(
    path,
    { ...init, headers },
    { incoming: { socket: { remoteAddress: "10.1.2.3" } } },
  );
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
}

/** What a worker sends in the name of a command that it has claimed. */
async function claimed(): Promise<Record<string, string>> {
  const work = workWith(api);
  await work.register("reads/credentials", ONE_STEP);
  return await claimOf(api, await work.execute("reads/credentials"));
}

/** Every playbook may use it. */
const EVERY = { playbooks: ["**"] };
const save = (body: unknown, token: keyof typeof TOKENS = "operator") => call("/api/credentials", posted(body), token);
const replace = (name: string, body: unknown) =>
  call(`/api/credentials/${encodeURIComponent(name)}`, { ...posted(body), method: "PUT" });

test("a credential is created with 201 and replaced with 200; the answer is its record, never its data", async () => {
  const content = {
    name: "pg_demo",
    type: "sqldb",
    description: "Demo",
    tags: ["demo"],
    data: SQLDB,
    meta: { owner: "a" },
  };
  const { status, body, headers } = await save({ ...content, schema: { required: ["host"] } });
  assert.equal(status, 201);
  assert.ok(headers.get("x-request-id"));
  const { id, created_at, updated_at, ...rest } = body;
  assert.match(String(id), /^\d+$/);
  for (const at of [created_at, updated_at]) assert.match(String(at), /^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/);
  assert.deepEqual(rest, {
    name: "pg_demo",
    type: "sqldb",
    description: "Demo",
    tags: ["demo"],
    schema: { required: ["host"] },
    meta: { owner: "a" },
    playbooks: [],
  });
  const again = await save({ name: "pg_demo", type: "sqldb", data: SQLDB });
  assert.equal(again.status, 200);
  const { updated_at: later, ...same } = again.body;
  assert.deepEqual(same, {
    id,
    name: "pg_demo",
    type: "sqldb",
    description: null,
    tags: [],
    schema: null,
    meta: null,
    playbooks: [],
    created_at,
  });
  assert.ok(String(later) >= String(updated_at));
});

test("PUT creates and replaces by the name in the address; another name in the body is refused", async () => {
  assert.equal((await replace("team/pg & co", { type: "basic", data: { username: "u", password: "p" } })).status, 201);
  const again = await replace("team/pg & co", { name: "team/pg & co", type: "bearer", data: { token: "t" } });
  assert.deepEqual([again.status, again.body["type"]], [200, "bearer"]);
  const { status, body } = await replace("team/pg & co", { name: "other", type: "bearer", data: { token: "t" } });
  assert.equal(status, 422);
  assert.match(String(body["error"]), /name: must be 'team\/pg & co' as in the address/);
});

test("one credential is read by name or id; its data only on request, and without caching", async () => {
  const { body: record } = await save({ name: "read me", type: "sqldb", data: SQLDB, meta: EVERY });
  const byId = `/api/credentials/${String(record["id"])}`;
  for (const path of ["/api/credentials/read%20me", byId, `${byId}?include_data=false`]) {
    assert.deepEqual((await call(path)).body, record);
  }
  for (const [token, headers] of [
    ["worker", await claimed()],
    ["operator", {}],
  ] as const) {
    const { status, body, headers: told } = await call(`${byId}?include_data=true`, { headers }, token);
    assert.equal(status, 200);
    assert.deepEqual(body, { ...record, data: SQLDB });
    assert.equal(told.get("cache-control"), "no-store");
  }
});

test("without a token, or with an unknown one, no data are returned", async () => {
  await save({ name: "closed", type: "bearer", data: { token: CANARY } });
  for (const headers of [{}, { authorization: "Bearer wrong" }] as Record<string, string>[]) {
    const response = await api.guarded.request("/api/credentials/closed?include_data=true", { headers });
    assert.equal(response.status, 401);
    assert.ok(!(await response.text()).includes(CANARY));
  }
});

test("data that violate the schema are 400 with every message of the specification", async () => {
  const { status, body } = await save({
    name: "wrong",
    type: "custom",
    data: { client_id: 1, ratio: "x", extra: CANARY },
    schema: {
      fields: ["client_id", "client_secret", "ratio"],
      required: ["client_id", "client_secret"],
      types: { client_id: "string", ratio: "number" },
    },
  });
  assert.equal(status, 400);
  assert.deepEqual(body["detail"], {
    message: "Credential validation failed",
    errors: [
      "Missing required field: client_secret",
      "Field 'client_id' must be string, got integer",
      "Field 'ratio' must be number, got string",
      "Unexpected fields: extra",
    ],
  });
  assert.equal(body["code"], "INVALID_SECRET");
  assert.ok(!JSON.stringify(body).includes(CANARY));
  assert.equal((await call("/api/credentials/wrong")).status, 404);
});

test("the keys that a type needs are its schema", async () => {
  const { status, body } = await replace("oauth", { type: "oauth2", data: { client_id: "a", token_url: 7 } });
  assert.equal(status, 400);
  assert.deepEqual((body["detail"] as Body)["errors"], [
    "Missing required field: client_secret",
    "Field 'token_url' must be string, got integer",
  ]);
});

for (const [what, body] of [
  ["an unknown type", { name: "a", type: "postgres", data: {} }],
  ["no name", { type: "custom", data: {} }],
  ["an empty name", { name: "", type: "custom", data: {} }],
  ["a name that is a number", { name: "123", type: "custom", data: {} }],
  ["a name that never arrives", { name: "..", type: "custom", data: {} }],
  ["a name with U+0000", { name: "a\u0000", type: "custom", data: {} }],
  ["data that are a text", { name: "a", type: "custom", data: CANARY }],
  ["data that are a list", { name: "a", type: "custom", data: [CANARY] }],
  ["no data", { name: "a", type: "custom" }],
  ["a schema with an unknown key", { name: "a", type: "custom", data: {}, schema: { needs: ["a"] } }],
  ["a schema with an unknown type", { name: "a", type: "custom", data: {}, schema: { types: { a: "text" } } }],
  ["tags that are a text", { name: "a", type: "custom", data: {}, tags: "x" }],
  ["data that are too long", { name: "a", type: "custom", data: { a: CANARY.repeat(5_000) } }],
] as const) {
  test(`${what}: 422, and the answer contains no value of the data`, async () => {
    const { status, body: answer } = await save(body);
    assert.equal(status, 422, JSON.stringify(answer));
    assert.ok(!JSON.stringify(answer).includes(CANARY));
  });
}

test("lists have pages and filters, and never data", async () => {
  for (const name of ["list-a", "list-b", "list-c"]) {
    const tags = name === "list-b" ? ["listed", "odd"] : ["listed"];
    await save({ name, type: "bearer", tags, data: { token: CANARY } });
  }
  const names = ({ body }: { body: Body }) => (body["items"] as Body[]).map((item) => item["name"]);
  const first = await call("/api/credentials?tag=listed&limit=2");
  assert.deepEqual(names(first), ["list-a", "list-b"]);
  const cursor = encodeURIComponent(String(first.body["next_cursor"]));
  const second = await call(`/api/credentials?tag=listed&limit=2&cursor=${cursor}`);
  assert.deepEqual([names(second), second.body["next_cursor"]], [["list-c"], null]);
  assert.deepEqual(names(await call("/api/credentials?tag=odd&type=bearer&q=LIST")), ["list-b"]);
  assert.ok(!JSON.stringify([first, second]).includes(CANARY));
  for (const query of ["type=none", "limit=0", "cursor=x"]) {
    assert.equal((await call(`/api/credentials?${query}`)).status, 422, query);
  }
});

test("a credential is deleted by its name; an unknown one is 404", async () => {
  await save({ name: "gone", type: "custom", data: {} });
  const { status, body } = await call("/api/credentials/gone", { method: "DELETE" });
  assert.deepEqual([status, body], [200, { status: "success", name: "gone" }]);
  for (const init of [{ method: "DELETE" }, {}]) {
    const { status: after, body: refused } = await call("/api/credentials/gone", init);
    assert.deepEqual([after, refused["error"]], [404, "There is no credential 'gone'"]);
  }
});

test("allowed and refused calls are recorded in the audit log, with the rule, the address and the request", async () => {
  await save({ name: "watched", type: "bearer", data: { token: CANARY }, meta: EVERY });
  const { headers } = await call("/api/credentials/watched?include_data=true", { headers: await claimed() }, "worker");
  await call("/api/credentials/watched", { method: "DELETE" }, "worker");
  await save({ name: "watched", type: "custom", data: {} }, "worker");
  await api.service.audit.close();
  const rows = await api.database.sql<{ line: string; request: string }[]>`
    select concat_ws(' ', actor_kind, action, result, rule, address) as line, request_id as request
    from auth.audit_log where resource = 'credential/watched' order by audit_id`;
  assert.deepEqual(
    rows.map(({ line }) => line),
    [
      "operator credential.create allow access:operator 10.1.2.3",
      "worker credential.read allow access:worker 10.1.2.3",
      "worker credential.delete deny access:operator 10.1.2.3",
    ],
  );
  assert.equal(rows[1]?.request, headers.get("x-request-id"));
  const [denied] = await api.database.sql<{ count: number }[]>`
    select count(*)::int as count from auth.audit_log where action = 'credential.write' and result = 'deny'`;
  assert.ok((denied?.count ?? 0) > 0);
});

test("refusals beyond what a second may hold are counted in one row", async () => {
  for (let index = 0; index < 120; index += 1)
    await call(`/api/credentials/flood${index}`, { method: "DELETE" }, "worker");
  await api.service.audit.close();
  const [row] = await api.database.sql<{ rows: number; counted: number }[]>`
    select (count(*) filter (where resource like 'credential/flood%'))::int as rows,
      (sum((detail ->> 'count')::int) filter (where action = 'refused'))::int as counted
    from auth.audit_log`;
  assert.equal((row?.rows ?? 0) + (row?.counted ?? 0), 120);
  assert.ok((row?.rows ?? 0) >= 50);
});

test("an odd spelling in an address is an unknown credential, or the one that it spells", async () => {
  await save({ name: "ümlaut/x", type: "custom", data: { a: 1 } });
  assert.equal((await call("/api/credentials/%C3%BCmlaut%2Fx?include_data=true")).status, 200);
  for (const name of ["%00", "%E0%A4%A", "a%00b", "99999999999999999999", "%2e%2e%2e", "'--"]) {
    const { status } = await call(`/api/credentials/${name}?include_data=true`);
    assert.equal(status, 404, name);
  }
});

test("nothing of it ever stands in the log", async () => {
  await save({ name: "logged", type: "sqldb", data: SQLDB });
  await call("/api/credentials/logged?include_data=true");
  assert.ok(api.log().includes("GET /api/credentials/logged 200"));
  assert.ok(!api.log().includes(CANARY));
});

test("the rotation route returns its numbers, to operators only", async () => {
  const { status, body } = await call("/api/admin/secrets/rotate", { method: "POST" });
  assert.equal(status, 200);
  assert.deepEqual(body, {
    status: "ok",
    key_id: "k1",
    rotated: 0,
    failed: [],
    total: 0,
    next_cursor: body["next_cursor"],
  });
  assert.equal((await call("/api/admin/secrets/rotate", posted({ limit: 0 }))).status, 422);
  assert.equal((await call("/api/admin/secrets/rotate", posted({}), "worker")).status, 403);
});
