import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi, playbook, posted, TOKENS } from "../../support/service/api.ts";
import { claimOf } from "../../support/service/api-work.ts";
import { addUser, allow, type TestUser } from "../../support/service/users.ts";

const api = await openApi();
before(async () => {
  for (const path of ["team/a", "team/b", "other/a", "api_integration/idp/login"]) await register(path);
});

/** A call of a gateway for a user; of the operator without one. */
async function call(user: TestUser | undefined, method: string, path: string, body?: unknown, headers = {}) {
  const all = {
    authorization: `Bearer ${TOKENS.operator}`,
    ...(user !== undefined && { "x-flow-session": user.tokenSha256 }),
    ...headers,
  };
  const init = body === undefined ? { method, headers: all } : { ...posted(body, all), method };
  const response = await api.guarded.request(path, init);
  const text = await response.text();
  return { status: response.status, body: (text.startsWith("{") ? JSON.parse(text) : { text }) as Body };
}

async function register(path: string, metadata = "") {
  return await call(undefined, "POST", "/api/catalog/register", { content: playbook(path, "a", metadata) });
}

/** An execution of an operator. */
async function start(path: string, more = {}): Promise<string> {
  const { status, body } = await call(undefined, "POST", "/api/execute", { path, ...more });
  assert.equal(status, 200, JSON.stringify(body));
  return String(body["execution_id"]);
}

/** A user who may do these with what is below `team/`. */
async function member(...can: ("execute" | "view" | "modify")[]): Promise<TestUser> {
  const user = await addUser(api.database);
  await allow(api.database, user, [{ allow: "team/**", can }]);
  return user;
}

test("a session is its user: who they are, and what their roles give", async () => {
  const user = await addUser(api.database, { email: "Ann@Example.com", roles: ["developer", "viewer"] });
  const { status, body } = await call(user, "GET", "/api/auth/me");
  assert.equal(status, 200);
  const { expires_at, ...rest } = body;
  assert.ok(Date.parse(String(expires_at)) > Date.now());
  assert.deepEqual(rest, {
    kind: "user",
    user_id: user.userId,
    email: "Ann@Example.com",
    display_name: "Ann@Example.com",
    roles: ["developer", "viewer"],
    permissions: ["view_operations"],
    actions: ["execute", "view", "modify"],
  });
  const { body: viewer } = await call(await addUser(api.database, { roles: ["viewer"] }), "GET", "/api/auth/me");
  assert.deepEqual(viewer["actions"], ["view"]);
  assert.deepEqual((await call(undefined, "GET", "/api/auth/me")).body, { kind: "operator" });
});

for (const [what, options] of [
  ["revoked", { revoked: "now()" }],
  ["past its end", { end: "now() - interval '1 second'" }],
  ["past its idle end", { idleEnd: "now() - interval '1 second'" }],
] as const) {
  test(`a session that is ${what} has no user`, async () => {
    const user = await addUser(api.database, { ...options, roles: ["admin"] });
    const { status, body } = await call(user, "GET", "/api/executions");
    assert.deepEqual([status, body["code"]], [401, "UNAUTHENTICATED"]);
  });
}

test("an unknown token and an invalid one have no user", async () => {
  for (const tokenSha256 of ["0".repeat(64), "", "x", "' or 1=1 --", "A".repeat(64)]) {
    const nobody = { userId: 0, email: "", token: "", tokenSha256 };
    assert.equal((await call(nobody, "GET", "/api/executions")).status, 401, tokenSha256);
  }
});

test("a session is believed with the operator's token alone: a worker with one is refused, not a worker", async () => {
  const user = await addUser(api.database, { roles: ["admin"] });
  const headers = { "x-flow-session": user.tokenSha256 };
  const ask = (authorization?: string) =>
    api.guarded.request("/api/executions", {
      headers: { ...headers, ...(authorization !== undefined && { authorization }) },
    });
  assert.equal((await ask(`Bearer ${TOKENS.worker}`)).status, 403);
  assert.equal((await ask("Bearer wrong")).status, 401);
  assert.equal((await ask()).status, 401);
});

test("what is taken away counts with the next call: the role, the permission, the session, the user", async () => {
  const { sql } = api.database;
  const user = await member("view");
  const look = async () => (await call(user, "GET", "/api/catalog/resource/team/a")).status;
  assert.equal(await look(), 200);
  await sql`update auth.user_roles set is_active = false where user_id = ${user.userId}`;
  assert.equal(await look(), 403);
  await sql`update auth.user_roles set is_active = true where user_id = ${user.userId}`;
  assert.equal(await look(), 200);
  await sql`update auth.users set is_active = false where user_id = ${user.userId}`;
  assert.equal(await look(), 401);
  await sql`update auth.users set is_active = true where user_id = ${user.userId}`;
  await sql`update auth.sessions set revoked_at = now() where user_id = ${user.userId}`;
  assert.equal(await look(), 401);
});

test("what is about a path takes a role that allows the action on it", async () => {
  const user = await member("view");
  for (const [method, path, body, status] of [
    ["GET", "/api/catalog/resource/team/a", undefined, 200],
    ["GET", "/api/catalog/resource/team%2Fa", undefined, 200],
    ["GET", "/api/catalog/resource/other/a", undefined, 403],
    ["GET", "/api/catalog/resource/no/such", undefined, 403],
    ["GET", "/api/catalog/resource/team/none", undefined, 404],
    ["GET", "/api/catalog/resource/team/../other/a", undefined, 403],
    ["GET", "/api/catalog/versions/team/a", undefined, 200],
    ["GET", "/api/catalog/versions/other/a", undefined, 403],
    ["POST", "/api/execute", { path: "team/a" }, 403],
    ["POST", "/api/execute", { path: "no/such" }, 403],
    ["POST", "/api/catalog/register", { content: playbook("team/new") }, 403],
  ] as const) {
    assert.equal((await call(user, method, path, body)).status, status, `${method} ${path}`);
  }
});

test("a version is about its path, wherever its id stands", async () => {
  const user = await member("view", "execute");
  const idOf = async (path: string) =>
    String((await call(undefined, "GET", `/api/catalog/resource/${path}`)).body["catalog_id"]);
  const [ours, others] = [await idOf("team/a"), await idOf("other/a")];
  assert.equal((await call(user, "GET", `/api/catalog/entries/${ours}`)).status, 200);
  assert.equal((await call(user, "GET", `/api/catalog/entries/${others}`)).status, 403);
  assert.equal((await call(user, "GET", "/api/catalog/entries/1")).status, 404);
  assert.equal((await call(user, "POST", "/api/execute", { catalog_id: ours })).status, 200);
  assert.equal((await call(user, "POST", "/api/execute", { catalog_id: others })).status, 403);
  // An allowed path beside the id of another one is neither.
  assert.notEqual((await call(user, "POST", "/api/execute", { path: "team/a", catalog_id: others })).status, 200);
});

test("an execution is about its path: seeing, cancelling and deleting it each take their own", async () => {
  const [ours, others] = [await start("team/a"), await start("other/a")];
  const [viewer, runner, owner] = [await member("view"), await member("execute"), await member("modify")];
  for (const path of ["", "/events", "/result", "/stream"]) {
    assert.equal((await call(viewer, "GET", `/api/executions/${others}${path}`)).status, 403, path);
    assert.equal((await call(runner, "GET", `/api/executions/${ours}${path}`)).status, 403, path);
    assert.equal((await call(viewer, "GET", `/api/executions/1${path}`)).status, 404, path);
  }
  for (const path of ["", "/events", "/result"]) {
    assert.equal((await call(viewer, "GET", `/api/executions/${ours}${path}`)).status, 200, path);
  }
  assert.equal((await call(viewer, "POST", `/api/executions/${ours}/cancel`, {})).status, 403);
  assert.equal((await call(owner, "POST", `/api/executions/${ours}/cancel`, {})).status, 403);
  assert.equal((await call(runner, "POST", `/api/executions/${others}/cancel`, {})).status, 403);
  assert.equal((await call(runner, "POST", `/api/executions/${ours}/cancel`, {})).status, 200);
  assert.equal((await call(runner, "DELETE", `/api/executions/${ours}`)).status, 403);
  assert.equal((await call(owner, "DELETE", `/api/executions/${others}`)).status, 403);
  assert.equal((await call(owner, "DELETE", `/api/executions/${ours}`)).status, 200);
});

test("who is refused an execution learns nothing of it but that it is there", async () => {
  const id = await start("other/a");
  const { body } = await call(await member("view"), "GET", `/api/executions/${id}`);
  assert.match(String(body["error"]), new RegExp(`may not view execution ${id}`));
  assert.doesNotMatch(JSON.stringify(body), /other/);
});

test("a reference is about the execution whose it is", async () => {
  const user = await member("view");
  const ref = (id: string) => encodeURIComponent(`noetl://execution/${id}/step/a/task/b/run/1`);
  for (const base of ["/results/resolve", "/api/results/resolve"]) {
    assert.equal((await call(user, "GET", `${base}?ref=${ref(await start("other/a"))}`)).status, 403);
    const { status, body } = await call(user, "GET", `${base}?ref=${ref(await start("team/a"))}`);
    assert.deepEqual([status, body["code"]], [404, "REFERENCE_NOT_AVAILABLE"]);
    assert.equal((await call(user, "GET", `${base}?ref=nonsense`)).status, 404);
  }
});

test("a user who waits for the result of an execution must be allowed to see it", async () => {
  const runner = await member("execute");
  assert.equal((await call(runner, "POST", "/api/execute", { path: "team/a", wait_ms: 1 })).status, 403);
  assert.equal((await call(runner, "POST", "/api/execute", { path: "team/a" })).status, 200);
});

test("users start top-level executions only: a parent is refused", async () => {
  const parent = { parent_execution_id: await start("team/b"), parent_step: "start" };
  const user = await member("execute", "view");
  assert.equal((await call(user, "POST", "/api/execute", { path: "team/a", ...parent })).status, 403);
});

test("an idempotency key is its user's: the operator's execution is not given to another caller", async () => {
  const [one, other] = [await member("execute"), await member("execute")];
  const key = { "idempotency-key": "the-same" };
  const ids = [];
  for (const user of [undefined, one, one, other]) {
    const { status, body } = await call(user, "POST", "/api/execute", { path: "team/a" }, key);
    assert.equal(status, 200);
    ids.push(body["execution_id"]);
  }
  assert.equal(new Set(ids).size, 3);
  assert.equal(ids[1], ids[2]);
});

test("what an execution calls takes what its user may, also where a worker starts it", async () => {
  const user = await member("execute", "view");
  const { body } = await call(user, "POST", "/api/execute", { path: "team/a" });
  const child = async (path: string, parent: string) =>
    call(
      undefined,
      "POST",
      "/api/execute",
      { path, parent_execution_id: parent, parent_step: "start" },
      await claimOf(api, parent),
    );
  const id = String(body["execution_id"]);
  const allowed = await child("team/b", id);
  assert.equal(allowed.status, 200);
  const refused = await child("other/a", id);
  assert.equal(refused.status, 403);
  assert.match(
    String(refused.body["error"]),
    new RegExp(`runs in the name of ${user.email}, who may not execute other/a`),
  );
  // Grandchildren are the same user's.
  assert.equal((await child("other/a", String(allowed.body["execution_id"]))).status, 403);
  // An execution that no user started may call anything.
  assert.equal((await child("other/a", await start("team/a"))).status, 200);
  await api.database.sql`update auth.users set is_active = false where user_id = ${user.userId}`;
  assert.equal((await child("team/b", id)).status, 403);
});

test("a registration is about the path in the document, and writes nothing where it is refused", async () => {
  const user = await member("modify");
  const of = (path: string) => call(user, "POST", "/api/catalog/register", { content: playbook(path) });
  assert.equal((await of("team/mine")).status, 200);
  assert.equal((await of("other/mine")).status, 403);
  assert.equal((await call(undefined, "GET", "/api/catalog/resource/other/mine")).status, 404);
});

test("credentials take their permission, and no user is shown what is in one", async () => {
  const content = { name: "api", type: "bearer", data: { token: "a-secret-token" } };
  const admin = await addUser(api.database, { roles: ["admin"] });
  assert.equal((await call(await member("view", "modify"), "POST", "/api/credentials", content)).status, 403);
  assert.equal((await call(admin, "POST", "/api/credentials", content)).status, 201);
  assert.equal((await call(admin, "GET", "/api/credentials/api")).status, 200);
  const shown = await call(admin, "GET", "/api/credentials/api?include_data=true");
  assert.equal(shown.status, 403);
  assert.doesNotMatch(JSON.stringify(shown.body), /a-secret-token/);
});

test("what is allowed and what is not stands in the audit log: who, what, by which rule, from where", async () => {
  const user = await member("view", "execute");
  const from = { "x-flow-address": "203.0.113.7" };
  await call(user, "GET", "/api/catalog/resource/team/a", undefined, from);
  await call(user, "GET", "/api/catalog/resource/other/a", undefined, from);
  await call(user, "POST", "/api/execute", { path: "team/a" }, from);
  await call(user, "POST", "/api/sqldb/execute", {}, from);
  await api.service.audit.close();
  const rows = await api.database.sql`
    select actor_kind, actor, user_id::float8 as user_id, action, resource, result, address, rule from auth.audit_log
    where user_id = ${user.userId} order by action, resource`;
  const told = { actor_kind: "user", actor: user.email, user_id: user.userId, address: "203.0.113.7" };
  const role = /^role role-\d+, permission \d+$/;
  assert.deepEqual(
    rows.map(({ rule, ...row }) => ({ ...row, rule: role.test(rule) ? "role" : rule })),
    [
      { ...told, action: "playbook.execute", resource: "playbook/team/a", result: "allow", rule: "role" },
      {
        ...told,
        action: "playbook.view",
        resource: "playbook/other/a",
        result: "deny",
        rule: "no role: nothing allows other/a",
      },
      { ...told, action: "playbook.view", resource: "playbook/team/a", result: "allow", rule: "role" },
      { ...told, action: "route.call", resource: "/api/sqldb/execute", result: "deny", rule: "no user may" },
    ],
  );
});

test("the use of a session moves its idle end, no further than its end", async () => {
  const { sql } = api.database;
  const user = await addUser(api.database, {
    end: "now() + interval '10 minutes'",
    idleEnd: "now() + interval '5 minutes'",
  });
  await sql`
    update auth.sessions set last_seen_at = now() - interval '20 minutes', idle_expires_at = now() + interval '1 minute'
    where user_id = ${user.userId}`;
  await call(user, "GET", "/api/auth/me");
  for (;;) {
    const [row] = await sql`
      select idle_expires_at = expires_at as at_end, last_seen_at > now() - interval '10 minutes' as seen from auth.sessions
      where user_id = ${user.userId}`;
    if (row?.["seen"] !== true) continue;
    assert.equal(row["at_end"], true);
    return;
  }
});

test("can: the answer names the rule; asking about others needs manage_users, and an operator may ask about anyone", async () => {
  const user = await member("view");
  const admin = await addUser(api.database, { roles: ["admin"] });
  const can = (who: TestUser | undefined, body: object) => call(who, "POST", "/api/auth/can", body);
  const asked = { action: "view", path: "team/x" };
  const { body } = await can(user, asked);
  assert.deepEqual([body["allowed"], body["email"]], [true, user.email]);
  assert.equal((await can(user, { action: "execute", path: "team/x" })).body["allowed"], false);
  assert.equal((await can(user, { ...asked, email: user.email.toUpperCase() })).status, 200);
  assert.equal((await can(user, { ...asked, email: admin.email })).status, 403);
  assert.equal((await can(admin, { ...asked, email: user.email })).body["allowed"], true);
  assert.equal((await can(undefined, { ...asked, email: user.email })).body["allowed"], true);
  assert.equal((await can(undefined, { ...asked, email: "nobody@example.com" })).status, 404);
  assert.equal((await can(undefined, asked)).body["rule"], "the operator's token");
});

test("a stream ends for a user who may no longer see it, as soon as the change arrives", async () => {
  const user = await member("view");
  const id = await start("team/a");
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const response = await api.guarded.request(`/api/executions/${id}/stream`, { headers });
  assert.equal(response.status, 200);
  await api.database.sql`delete from auth.user_roles where user_id = ${user.userId}`;
  api.service.sessionChanges.changed({ tokenSha256: user.tokenSha256 });
  // To its end: what it still gives is the refusal.
  const text = await response.text();
  assert.match(text, /event: error\ndata: .*"code":"FORBIDDEN"/);
  assert.doesNotMatch(text, /playbook\.initialized/);
});
