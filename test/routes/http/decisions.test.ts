import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi, playbook, posted, TOKENS } from "../../support/service/api.ts";
import { addUser, allow, type TestUser } from "../../support/service/users.ts";

// The audit log has one row for each decision: who, what, which execution, and how it ended.

const api = await openApi();
before(async () => {
  for (const path of ["team/a", "team/b", "other/a"]) await register(path);
});

async function call(user: TestUser | undefined, method: string, path: string, body?: unknown, headers = {}) {
  const all = {
    authorization: `Bearer ${TOKENS.operator}`,
    ...(user !== undefined && { "x-flow-session": user.tokenSha256 }),
    ...headers,
  };
  const init = body === undefined ? { method, headers: all } : { ...posted(body, all), method };
  const response = await api.guarded.request(path, init);
  return {
    status: response.status,
    requestId: response.headers.get("x-request-id"),
    body: (await response.json()) as Body,
  };
}

async function register(path: string, more: Record<string, unknown> = {}) {
  return await call(undefined, "POST", "/api/catalog/register", { content: playbook(path), ...more });
}

/** The rows of a call, in order. */
async function rowsOf({ requestId }: { requestId: string | null }): Promise<Body[]> {
  await api.service.audit.close();
  const rows = await api.database.sql<Body[]>`
    select actor_kind, action, resource, result, execution_id, issuer, subject, rule, detail from auth.audit_log
    where request_id = ${requestId} order by audit_id`;
  return rows.map((row) => ({ ...row }));
}

const told = (rows: Body[]) =>
  rows.map(({ actor_kind, action, resource, result }) => [actor_kind, action, resource, result].join(" "));

async function member(...can: ("execute" | "view" | "modify")[]): Promise<TestUser> {
  const user = await addUser(api.database);
  await api.database.sql`
    update auth.users set issuer = 'https://idp.example/', subject = ${`subject-${user.userId}`} where user_id = ${user.userId}`;
  await allow(api.database, user, [{ allow: "team/**", can }]);
  return user;
}

test("a user's start is one row, with the execution and whom the provider vouched for; the execution says so too", async () => {
  const user = await member("execute");
  const started = await call(user, "POST", "/api/execute", { path: "team/a" });
  const [row, ...more] = await rowsOf(started);
  const id = String(started.body["execution_id"]);
  const identity = { issuer: "https://idp.example/", subject: `subject-${user.userId}` };
  const { actor_kind, action, resource, result, execution_id, issuer, subject } = row ?? {};
  assert.deepEqual(
    { actor_kind, action, resource, result, execution_id, issuer, subject },
    {
      actor_kind: "user",
      action: "playbook.execute",
      resource: "playbook/team/a",
      result: "allow",
      execution_id: id,
      ...identity,
    },
  );
  assert.deepEqual(more, []);
  const [execution] = await api.database.sql`
    select started_by::float8 as user_id, started_issuer as issuer, started_subject as subject from flow.execution
    where execution_id = ${id}`;
  assert.deepEqual({ ...execution }, { user_id: user.userId, ...identity });
});

test("a refusal stands alone: what was allowed before it in the same call is no row", async () => {
  // Waiting for the result takes the right to view, which is asked after the right to execute.
  const user = await member("execute");
  const refused = await call(user, "POST", "/api/execute", { path: "team/a", wait_ms: 1 });
  assert.equal(refused.status, 403);
  assert.deepEqual(told(await rowsOf(refused)), ["user playbook.view playbook/team/a deny"]);
  const both = await member("execute", "view");
  const allowed = await call(both, "POST", "/api/execute", { path: "team/a", wait_ms: 1 });
  assert.deepEqual(told(await rowsOf(allowed)).sort(), [
    "user playbook.execute playbook/team/a allow",
    "user playbook.view playbook/team/a allow",
  ]);
});

test("what is only looked up for a message is in no row: the calls of a playbook that is registered or started", async () => {
  const user = await member("execute", "modify");
  const content = playbook("team/caller").replace("kind: noop", "kind: playbook, path: other/a");
  const registered = await call(user, "POST", "/api/catalog/register", { content });
  assert.equal(registered.status, 200, JSON.stringify(registered.body));
  assert.deepEqual(told(await rowsOf(registered)), ["user playbook.modify playbook/team/caller allow"]);
  const started = await call(user, "POST", "/api/execute", { path: "team/caller" });
  assert.deepEqual(told(await rowsOf(started)), ["user playbook.execute playbook/team/caller allow"]);
});

test("what was allowed and did not come about is an error with its code", async () => {
  const user = await member("execute", "modify");
  const missing = await call(user, "POST", "/api/execute", { path: "team/none" });
  assert.equal(missing.status, 404);
  const [row] = await rowsOf(missing);
  assert.deepEqual([row?.["result"], row?.["detail"]], ["error", { code: "NOT_FOUND" }]);
});

test("a call with the same idempotency key is a row with the execution of the first", async () => {
  const user = await member("execute");
  const headers = { "idempotency-key": "one" };
  const first = await call(user, "POST", "/api/execute", { path: "team/a" }, headers);
  const again = await call(user, "POST", "/api/execute", { path: "team/a" }, headers);
  assert.equal(again.body["duplicate"], true);
  for (const one of [first, again]) {
    const rows = await rowsOf(one);
    assert.deepEqual(
      rows.map((row) => row["execution_id"]),
      [String(first.body["execution_id"])],
    );
  }
});

test("starts and registrations of operators are rows, with the execution", async () => {
  const started = await call(undefined, "POST", "/api/execute", { path: "team/a" });
  const rows = await rowsOf(started);
  assert.deepEqual(told(rows), ["operator playbook.execute playbook/team/a allow"]);
  assert.equal(rows[0]?.["execution_id"], started.body["execution_id"]);
  assert.deepEqual(told(await rowsOf(await register("team/b"))), ["operator playbook.modify playbook/team/b allow"]);
});

test("a change of an administrator that goes beyond their rights is a refusal in the log", async () => {
  const manager = await addUser(api.database);
  const { sql } = api.database;
  await sql`insert into auth.roles (name) values ('manager')`;
  await sql`
    insert into auth.role_permissions (role_id, permission_id)
    select role_id, permission_id from auth.roles r, auth.permissions p where r.name = 'manager' and p.name = 'manage_users'`;
  await sql`
    insert into auth.user_roles (user_id, role_id) select ${manager.userId}, role_id from auth.roles where name = 'manager'`;
  const refused = await call(manager, "PUT", `/api/auth/users/${manager.userId}/roles/admin`);
  assert.equal(refused.status, 403);
  const rows = await rowsOf(refused);
  assert.deepEqual(told(rows), [`user user.grant user/${manager.userId} deny`]);
  assert.match(String(rows[0]?.["rule"]), /To give the role 'admin' was refused/);
});

test("a worker that calls a route of operators is a row", async () => {
  const refused = await call(undefined, "GET", "/api/auth/users", undefined, {
    authorization: `Bearer ${TOKENS.worker}`,
  });
  assert.equal(refused.status, 403);
  assert.deepEqual(told(await rowsOf(refused)), ["worker route.call /api/auth/users deny"]);
});

test("calls without a token, with a wrong one, or with a session that is over are one row per address, with their number", async () => {
  await api.service.audit.close();
  const { sql } = api.database;
  await sql`create table before as select max(audit_id) as id from auth.audit_log`;
  for (let index = 0; index < 7; index += 1) {
    const headers = index % 2 === 0 ? {} : { authorization: "Bearer wrong" };
    assert.equal((await api.guarded.request("/api/catalog", { headers })).status, 401);
  }
  for (const address of ["203.0.113.7", "203.0.113.8", "203.0.113.7"]) {
    const headers = {
      authorization: `Bearer ${TOKENS.operator}`,
      "x-flow-session": "0".repeat(64),
      "x-flow-address": address,
    };
    assert.equal((await api.guarded.request("/api/executions", { headers })).status, 401);
  }
  await api.service.audit.close();
  const rows = await sql`
    select actor_kind, action, address, result, (detail->>'count')::int as count from auth.audit_log, before
    where audit_id > id order by address nulls first`;
  const row = { actor_kind: "anonymous", action: "authenticate", result: "deny" };
  assert.deepEqual(
    rows.map((one) => ({ ...one })),
    [
      { ...row, address: null, count: 7 },
      { ...row, address: "203.0.113.7", count: 2 },
      { ...row, address: "203.0.113.8", count: 1 },
    ],
  );
});

test("a login that a gateway has refused is a row, and only a gateway can write one", async () => {
  const body = { idp_domain: "idp.example\u0000", code: "UNAUTHENTICATED", reason: "its time is over" };
  const from = { "x-flow-address": "203.0.113.9" };
  const noted = await call(undefined, "POST", "/api/auth/sessions/refused", body, from);
  const rows = await rowsOf(noted);
  assert.deepEqual(told(rows), ["anonymous session.open session deny"]);
  assert.deepEqual(
    [rows[0]?.["rule"], rows[0]?.["detail"]],
    ["login:UNAUTHENTICATED", { idp_domain: "idp.example\ufffd", reason: "its time is over" }],
  );
  assert.equal((await call(await member("view"), "POST", "/api/auth/sessions/refused", body)).status, 403);
});
