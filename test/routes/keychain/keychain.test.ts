import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi, posted } from "../../support/service/api.ts";
import { claimOf, ONE_STEP, workWith } from "../../support/service/api-work.ts";

const api = await openApi();
const work = workWith(api);
let catalogId: string;

before(async () => {
  await work.register("kc", ONE_STEP);
  catalogId = String((await work.get("/api/catalog/resource/kc")).body["catalog_id"]);
});

const path = (name: string, query: Record<string, string> = {}) =>
  `/api/keychain/${catalogId}/${encodeURIComponent(name)}${Object.keys(query).length === 0 ? "" : `?${new URLSearchParams(query)}`}`;
const TOKEN = { access_token: "t0p", token_type: "Bearer", expires_in: 3600 };
const body = (more: Body = {}) => ({ token_data: TOKEN, credential_type: "oauth2", ...more });

async function kept(name: string, more: Body = {}): Promise<Body> {
  const { status, body: answer } = await work.post(path(name), body(more));
  assert.equal(status, 200, JSON.stringify(answer));
  return answer;
}

async function rows(): Promise<number> {
  const [row] = await api.database.sql<[{ rows: number }]>`select count(*)::int as rows from flow.keychain`;
  return row.rows;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

test("setting and reading answer every field that is specified, the catalog's id as a number", async () => {
  const set = await kept("api", { cache_type: "token", scope_type: "global", ttl_seconds: 600, execution_id: null });
  const { message, expires_at, ...rest } = set;
  assert.equal(typeof message, "string");
  assert.match(String(expires_at), TIME);
  const names = { keychain_name: "api", catalog_id: Number(catalogId), cache_key: `api:${catalogId}:global` };
  assert.deepEqual(rest, { status: "success", ...names, ttl_seconds: 600, auto_renew: false });
  const { status, body: found, headers } = await work.get(path("api"));
  assert.equal(status, 200);
  assert.equal(headers.get("cache-control"), "no-store");
  const { accessed_at, ttl_seconds, ...other } = found;
  assert.match(String(accessed_at), TIME);
  assert.ok(Number(ttl_seconds) > 590 && Number(ttl_seconds) <= 600);
  assert.deepEqual(other, {
    ...{ status: "success", ...names, token_data: TOKEN, credential_type: "oauth2", cache_type: "token" },
    ...{ scope_type: "global", expires_at, access_count: 1, auto_renew: false, expired: false },
  });
});

test("an expired or missing entry is 200 with that status; renewal data come only with auto_renew", async () => {
  const past = new Date(Date.now() - 60_000).toISOString();
  const renew_config = { endpoint: "https://idp.example/token", data: { client_secret: "s" } };
  const shown = async (name: string) => (await work.get(path(name))).body;
  const keyed = (name: string) => ({
    ...{ keychain_name: name, catalog_id: Number(catalogId), cache_key: `${name}:${catalogId}:global` },
  });
  await kept("old", { expires_at: past, renew_config });
  await kept("renewed", { expires_at: past, auto_renew: true, renew_config });
  await kept("typed", {
    expires_at: past,
    auto_renew: true,
    cache_type: "secret",
    schema: { required: ["access_token"] },
  });
  const expired = { status: "expired", expired: true, expires_at: past };
  const renewing = { auto_renew: true, credential_type: "oauth2", cache_type: "token" };
  assert.deepEqual(await shown("old"), { ...expired, ...keyed("old"), auto_renew: false });
  assert.deepEqual(await shown("renewed"), { ...expired, ...keyed("renewed"), ...renewing, renew_config });
  const schema = { required: ["access_token"] };
  assert.deepEqual(await shown("typed"), { ...expired, ...keyed("typed"), ...renewing, cache_type: "secret", schema });
  assert.deepEqual(await shown("none"), { status: "not_found", ...keyed("none") });
});

test("a renewal is kept as it was sent: texts as data, null for what is left out, keys of others", async () => {
  const past = new Date(Date.now() - 60_000).toISOString();
  for (const more of [
    ...[{}, { method: null, headers: null, data: null, token_field: null, ttl_field: null }, { comment: "ours" }],
    ...[{ data: "a=1" }, { data: [1] }, { headers: { accept: "x", "x-number": 1, "x-none": null } }, { method: "PUT" }],
  ]) {
    const renew_config = { endpoint: "https://idp.example/token", ...more };
    await kept("sent", { expires_at: past, auto_renew: true, renew_config });
    assert.deepEqual((await work.get(path("sent"))).body["renew_config"], renew_config);
  }
});

test("times may have another zone, or none, which is UTC; null says that nothing is given", async () => {
  for (const [given, at] of [
    ["2030-06-01T12:00:00Z", "2030-06-01T12:00:00.000Z"],
    ["2030-06-01T14:00:00.5+02:00", "2030-06-01T12:00:00.500Z"],
    ["2030-06-01T12:00:00.123456", "2030-06-01T12:00:00.123Z"],
    ["2030-06-01 12:00:00", "2030-06-01T12:00:00.000Z"],
  ]) {
    assert.equal((await kept("timed", { expires_at: given }))["expires_at"], at, given);
  }
  const nulls = { expires_at: null, ttl_seconds: null, renew_config: null, schema: null, parent_execution_id: null };
  assert.equal((await kept("timed", nulls))["ttl_seconds"], 86_400);
});

test("local and shared entries belong to executions, whose ids may be numbers, and end with them", async () => {
  const id = await work.execute("kc");
  await kept("mine", { scope_type: "local", execution_id: Number(id) });
  await kept("ours", { scope_type: "shared", execution_id: id });
  const read = async (name: string, scope_type: string) =>
    (await work.get(path(name, { scope_type, execution_id: id }))).body;
  const mine = await read("mine", "local");
  assert.deepEqual(
    [mine["status"], mine["cache_key"], mine["scope_type"]],
    ["success", `mine:${catalogId}:${id}`, "local"],
  );
  assert.equal((await read("ours", "shared"))["cache_key"], `ours:${catalogId}:shared:${id}`);
  await work.runToEnd(id);
  assert.equal((await read("mine", "local"))["status"], "not_found");
  assert.equal((await read("ours", "shared"))["status"], "not_found");
  assert.equal((await work.post(path("mine"), body({ scope_type: "local", execution_id: id }))).status, 409);
  // Its rows are deleted by themselves.
  for (;;) {
    const left = await api.database.sql`select 1 from flow.keychain where execution_id = ${id}`;
    if (left.length === 0) break;
  }
});

test("names are taken as they are, slashes and colons too", async () => {
  for (const name of ["a/b", "a:b:1", "a b", "é%2F", "catalog"]) {
    await kept(name);
    const { body: found } = await work.get(path(name));
    assert.deepEqual([found["status"], found["keychain_name"]], ["success", name]);
  }
});

test("deleting is a success, whether it was there or not", async () => {
  await kept("gone");
  for (const words of [/was deleted/, /was not there/]) {
    const { status, body: answer } = await work.send("DELETE", path("gone"));
    const { message, ...rest } = answer;
    assert.match(String(message), words);
    assert.deepEqual(
      [status, rest],
      [200, { status: "success", keychain_name: "gone", catalog_id: Number(catalogId) }],
    );
  }
  assert.equal((await work.get(path("gone"))).body["status"], "not_found");
});

test("the list has every entry of the catalog's, without data, in pages", async () => {
  await work.register("kc/listed", ONE_STEP);
  const listed = String((await work.get("/api/catalog/resource/kc/listed")).body["catalog_id"]);
  for (const name of ["a", "b", "c"]) {
    assert.equal((await work.post(`/api/keychain/${listed}/${name}`, body({ auto_renew: true }))).status, 200);
  }
  const { status, body: all } = await work.get(`/api/keychain/catalog/${listed}`);
  assert.equal(status, 200);
  const { entries, ...rest } = all as Body & { entries: Body[] };
  assert.deepEqual(rest, { status: "success", catalog_id: Number(listed), count: 3, next_cursor: null });
  const keys = "access_count auto_renew cache_key credential_type expires_at keychain_name scope_type";
  assert.equal(
    Object.keys(entries[0] ?? {})
      .sort()
      .join(" "),
    keys,
  );
  const first = (await work.get(`/api/keychain/catalog/${listed}?limit=2`)).body;
  assert.equal(first["count"], 2);
  const second = (await work.get(`/api/keychain/catalog/${listed}?limit=2&cursor=${first["next_cursor"]}`)).body;
  assert.deepEqual([second["count"], second["next_cursor"]], [1, null]);
  assert.deepEqual((await work.get("/api/keychain/catalog/77")).status, 404);
});

test("data that violate the schema are 400 with every message, and nothing is kept", async () => {
  const schema = { fields: ["user"], required: ["user", "password"], types: { user: "integer" } };
  const { status, body: answer } = await work.post(
    path("schema"),
    body({ token_data: { user: "s3cret", x: 1 }, schema }),
  );
  const { request_id, ...rest } = answer;
  assert.equal(status, 400);
  assert.ok(request_id);
  assert.ok(!JSON.stringify(rest).includes("s3cret"));
  assert.deepEqual(rest["detail"], {
    message: "Credential validation failed",
    errors: ["Missing required field: password", "Field 'user' must be integer, got string", "Unexpected fields: x"],
  });
  assert.equal((await work.get(path("schema"))).body["status"], "not_found");
});

test("what cannot be an entry is refused, and nothing is kept", async () => {
  const before = await rows();
  for (const [status, about, more] of [
    [404, "/api/keychain/77/api", {}],
    [404, "/api/keychain/x/api", {}],
    [404, "/api/keychain/0/api", {}],
    [404, path("a"), { scope_type: "local", execution_id: "4711" }],
    [404, path("a"), { scope_type: "shared", execution_id: 4711 }],
    [422, path("a"), { scope_type: "local" }],
    [422, path("a"), { scope_type: "shared", execution_id: null }],
    [422, path("a"), { scope_type: "catalog" }],
    [422, path("a"), { cache_type: "both" }],
    [422, path("a"), { token_data: "text" }],
    [422, path("a"), { token_data: [1] }],
    [422, path("a"), { token_data: undefined }],
    [422, path("a"), { credential_type: "" }],
    [422, path("a"), { credential_type: undefined }],
    [422, path("a"), { credential_type: "x\u0000" }],
    [422, path("a"), { ttl_seconds: 0 }],
    [422, path("a"), { ttl_seconds: 1.5 }],
    [422, path("a"), { ttl_seconds: "60" }],
    [422, path("a"), { ttl_seconds: 1e12 }],
    [422, path("a"), { expires_at: "tomorrow" }],
    [422, path("a"), { expires_at: "2030-02-31T99:00:00Z" }],
    [422, path("a"), { expires_at: 1_900_000_000 }],
    [422, path("a"), { auto_renew: "yes" }],
    [422, path("a"), { renew_config: "https://idp" }],
    [422, path("a"), { renew_config: [] }],
    [422, path("a"), { renew_config: {} }],
    [422, path("a"), { auto_renew: true, renew_config: { method: "POST" } }],
    ...[
      ...[{ endpoint: 5 }, { endpoint: null }, { endpoint: " " }, { method: 5 }, { method: ["POST"] }],
      ...[{ headers: "x: y" }, { headers: ["x"] }, { headers: { x: {} } }, { data: 5 }, { data: true }],
      ...[{ token_field: 5 }, { token_field: {} }, { ttl_field: false }],
    ].map((wrong): [number, string, Body] => [422, path("a"), { renew_config: { endpoint: "https://idp", ...wrong } }]),
    [422, path("a"), { schema: { types: { a: "date" } } }],
    [422, path("a"), { schema: { fields: "a" } }],
    [422, path("a"), { schema: { fields: ["\u0000"] } }],
    [422, path("a"), { schema: { types: { "\u0000": "string" } } }],
    [422, path("a"), { execution_id: "x" }],
    [422, path("\u0000"), {}],
    [422, path("x".repeat(256)), {}],
    [413, path("a"), { token_data: { text: "x".repeat(262_144) } }],
    [413, path("a"), { renew_config: { endpoint: "https://idp", data: "x".repeat(262_144) } }],
  ] as [number, string, Body][]) {
    const { status: answered, body: answer } = await work.post(about, body(more));
    assert.equal(answered, status, JSON.stringify([about, more, answer]).slice(0, 500));
  }
  for (const text of ["", "{", "[]", "null", '"x"']) {
    assert.equal((await work.send("POST", path("a"), text)).status, 422, text);
  }
  for (const query of [{ scope_type: "local" }, { scope_type: "all" }, { execution_id: "-1" }] as Record<
    string,
    string
  >[]) {
    for (const method of ["GET", "DELETE"]) assert.equal((await work.send(method, path("a", query))).status, 422);
  }
  assert.equal(await rows(), before);
});

test("no refusal and no log line holds a token", async () => {
  await work.post(path("a"), body({ token_data: { access_token: "c4nary" }, scope_type: "catalog" }));
  await work.post(path("a"), body({ token_data: { access_token: "c4nary" }, schema: { required: ["x"] } }));
  await kept("canary", { token_data: { access_token: "c4nary" } });
  await work.get(path("canary"));
  assert.ok(!api.log().includes("c4nary"));
});

test("one asks for the lease of an entry and sets it; the next one reads", async () => {
  const ask = (holder: string, more: Body = {}) =>
    work.post(`${path("leased")}/lease`, { holder, lease_ms: 60_000, wait_ms: 0, ...more });
  assert.deepEqual((await ask("a")).body, { status: "granted" });
  assert.deepEqual((await ask("b")).body, { status: "held" });
  const waiting = ask("b", { wait_ms: 20_000 });
  await kept("leased");
  assert.deepEqual((await waiting).body, { status: "set" });
  const failed = await work.post(`${path("other")}/lease`, { holder: "a", failed: "no" });
  assert.deepEqual(failed.body, { status: "held" });
  assert.deepEqual((await work.post(`${path("other")}/lease`, { holder: "a", lease_ms: 1_000 })).body, {
    status: "granted",
  });
  const told = { status: "failed", message: "the IdP said 500" };
  assert.deepEqual((await work.post(`${path("other")}/lease`, { holder: "a", failed: told.message })).body, told);
  assert.deepEqual((await work.post(`${path("other")}/lease`, { holder: "b", lease_ms: 1_000 })).body, told);
});

test("asks for a lease that cannot be are refused", async () => {
  for (const [status, more] of [
    [422, { holder: "" }],
    [422, { lease_ms: undefined }],
    [422, { lease_ms: 0 }],
    [422, { lease_ms: 1e9 }],
    [422, { wait_ms: -1 }],
    [422, { wait_ms: 1e9 }],
    [422, { failed: "no" }],
    [422, { lease_ms: undefined, failed: "x".repeat(5_000) }],
    [422, { scope_type: "local" }],
    [404, { scope_type: "local", execution_id: "4711" }],
  ] as [number, Body][]) {
    const asked = { holder: "a", lease_ms: 1_000, ...more };
    assert.equal((await work.post(`${path("bad")}/lease`, asked)).status, status, JSON.stringify(more).slice(0, 200));
  }
  assert.equal((await work.post("/api/keychain/77/bad/lease", { holder: "a", lease_ms: 1_000 })).status, 404);
});

test("a wait for a lease ends when the client disconnects", async () => {
  const left = new AbortController();
  await work.post(`${path("held")}/lease`, { holder: "a", lease_ms: 60_000 });
  const init = { ...posted({ holder: "b", lease_ms: 1_000, wait_ms: 30_000 }), signal: left.signal };
  const waiting = api.open.request(`${path("held")}/lease`, init);
  left.abort();
  assert.deepEqual(await (await waiting).json(), { status: "held" });
});

test("reads and refusals stand in the audit log with who called", async () => {
  await kept("audited");
  const headers = await claimOf(api, await work.execute("kc"));
  const response = await api.guarded.request(path("audited"), { headers });
  assert.equal(response.status, 200);
  const [row] = await api.database.sql`
    select actor_kind, rule, result, request_id::text from auth.audit_log
    where action = 'keychain.read' and resource = ${`keychain/${catalogId}/audited`}`;
  const request_id = response.headers.get("x-request-id");
  assert.deepEqual(row, { actor_kind: "worker", rule: "access:worker", result: "allow", request_id });
});
