import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { connect } from "nats";
import postgres from "postgres";
import { decodeEnvelope } from "../../src/platform/nats/envelope.ts";
import { startTestNats, type TestNats } from "../support/servers/nats-server.ts";
import { type LoginService, startLoginService } from "../support/service/login-service.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

const emailsOf = (users: unknown) => (users as { email: string }[]).map(({ email }) => email);
const namesOf = (roles: unknown) => (roles as { name: string }[]).map(({ name }) => name);

const IDP = "api_integration/idp";

const ada = { sub: "ada", email: "ada@example.com", name: "Ada Lovelace" };
const root = { sub: "root", email: "root@example.com", name: "Root" };

const closers: (() => unknown)[] = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});

let nats: TestNats;
let service: LoginService;
before(async () => {
  nats = await startTestNats();
  const context = { after: (close: () => unknown) => void closers.push(close) };
  service = await startLoginService(context, { BROKER_URL: nats.url, FLOW_ADMIN_EMAILS: "Root@Example.com" });
});

test("an ID token becomes a session, in the database and in the broker's bucket", async () => {
  const { login, provider } = service;
  const { sql } = service.database;
  const { status, body } = await login(ada);
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(body.status, "authenticated");
  const { user_id: userId, ...user } = body.user;
  assert.deepEqual(user, { email: "ada@example.com", display_name: "Ada Lovelace", roles: [] });
  assert.match(body.expires_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}$/);
  const token = sha256(body.session_token);
  const [row] = await sql`
    select user_id::float8 as user_id, issuer, subject, last_login_at is not null as seen
    from auth.sessions join auth.users using (user_id) where token_sha256 = ${token}`;
  assert.deepEqual({ ...row }, { user_id: userId, issuer: provider.issuer, subject: "ada", seen: true });
  const connection = await connect({ servers: nats.url });
  const kept = await (await connection.jetstream().views.kv("sessions")).get(token);
  const text = new TextDecoder().decode(decodeEnvelope(kept?.value ?? new Uint8Array()).value);
  assert.equal((JSON.parse(text) as { user: { email: string } }).user.email, "ada@example.com");
  await connection.close();
});

test("no token stands in an event, an execution, a session or the audit log", async () => {
  const { loginWith, provider } = service;
  const { sql } = service.database;
  const idToken = await provider.idToken(ada);
  const { body } = await loginWith(idToken);
  const [{ text } = { text: "" }] = await sql<{ text: string }[]>`
    select concat(
      (select string_agg(e::text, '') from flow.event e), (select string_agg(x::text, '') from flow.execution x),
      (select string_agg(c::text, '') from flow.command c), (select string_agg(s::text, '') from auth.sessions s),
      (select string_agg(a::text, '') from auth.audit_log a)
    ) as text`;
  assert.ok(text.includes(sha256(body.session_token)), "the log of the login is in it");
  for (const secret of [body.session_token, idToken, idToken.split(".")[2] ?? ""]) {
    assert.ok(!text.includes(secret), `${secret.slice(0, 8)}… stands in the database`);
    assert.ok(!service.log().includes(secret), `${secret.slice(0, 8)}… stands in the log`);
  }
});

test("who logs in again is the same user, with what the provider says now; an ID token logs in once", async () => {
  const { login, loginWith, provider } = service;
  const [first, idToken] = [await login(ada), await provider.idToken({ ...ada, email: "ada@new.example" })];
  const again = await loginWith(idToken);
  assert.equal(again.body.user.user_id, first.body.user.user_id);
  assert.equal(again.body.user.email, "ada@new.example");
  assert.notEqual(again.body.session_token, first.body.session_token);
  assert.equal((await loginWith(idToken)).status, 401);
  assert.equal((await login(ada)).body.user.email, "ada@example.com");
});

test("the first administrator is who FLOW_ADMIN_EMAILS names, once the provider vouches for the address", async () => {
  const { login } = service;
  assert.deepEqual((await login(root)).body.user.roles, ["admin"]);
  const unproven = await login({ sub: "thief", email: "root@example.com", verified: false });
  assert.equal(unproven.status, 401);
  // Another account of the same provider with the same address: the address is taken.
  const other = await login({ sub: "other", email: "ROOT@example.com" });
  assert.deepEqual([other.status, other.body.code], [403, "FORBIDDEN"]);
  assert.match(other.body.error ?? "", /^This address belongs to another account/);
});

test("a user who was entered for another provider is not taken over; one entered for this provider logs in with their roles", async () => {
  const { login, operator } = service;
  const [{ issuer } = { issuer: "" }] = await service.database.sql<{ issuer: string }[]>`
    select issuer from auth.users where issuer is not null limit 1`;
  const add = (email: string, from: string) =>
    operator("POST", "/api/auth/users", { email, roles: ["viewer"], issuer: from });
  await add("bound@example.com", "https://other-provider.example/");
  const refused = await login({ sub: "bound", email: "bound@example.com" });
  assert.deepEqual([refused.status, refused.body.code], [403, "FORBIDDEN"]);
  const slash = issuer.endsWith("/") ? issuer.slice(0, -1) : `${issuer}/`;
  await add("expected@example.com", slash);
  const { body } = await login({ sub: "expected", email: "expected@example.com" });
  assert.deepEqual(body.user.roles, ["viewer"]);
});

test("a user is entered for the only provider of the settings, and another that vouches for the address does not get them", async () => {
  const { login, operator } = service;
  const { sql } = service.database;
  const add = (body: object) =>
    operator<{ issuer: string | null }>("POST", "/api/auth/users", { roles: ["viewer"], ...body });
  assert.equal((await add({ email: "first@example.com" })).issuer, service.provider.issuer);
  assert.deepEqual((await login({ sub: "first", email: "first@example.com" })).body.user.roles, ["viewer"]);
  const [admin] = await sql<{ issuer: string }[]>`select issuer from auth.users where email = 'root@example.com'`;
  assert.equal(admin?.issuer, service.provider.issuer);
  // The same, as if the settings had named another provider by then.
  await add({ email: "second@example.com" });
  await sql`update auth.users set issuer = 'https://other-provider.example' where email = 'second@example.com'`;
  assert.equal((await login({ sub: "second", email: "second@example.com" })).status, 403);
  const open = await add({ email: "third@example.com", any_issuer: true });
  assert.equal(open.issuer, null);
  assert.deepEqual((await login({ sub: "third", email: "third@example.com" })).body.user.roles, ["viewer"]);
});

test("who is switched off gets no session, and the refusal is in the audit log", async () => {
  const { login } = service;
  const { sql } = service.database;
  const { body } = await login({ sub: "eve", email: "eve@example.com" });
  await sql`update auth.users set is_active = false where user_id = ${body.user.user_id}`;
  const { status, body: refused } = await login({ sub: "eve", email: "eve@example.com" });
  assert.deepEqual([status, refused.code], [403, "FORBIDDEN"]);
  assert.match(refused.error ?? "", /^This account is switched off/);
  const rows = await sql<{ rule: string; result: string }[]>`
    select rule, result from auth.audit_log
    where action = 'session.open' and actor = 'eve@example.com' order by audit_id`;
  assert.deepEqual(
    rows.map(({ rule, result }) => `${rule} ${result}`),
    ["login allow", "login:USER_INACTIVE deny"],
  );
});

test("a session is validated by its playbook, and not once it is revoked", async () => {
  const { login, run } = service;
  const { sql } = service.database;
  const { body } = await login(ada);
  const token_sha256 = sha256(body.session_token);
  const valid = await run(`${IDP}/validate_session`, { token_sha256 });
  assert.equal(valid.result?.["valid"], true, JSON.stringify(valid));
  assert.deepEqual(valid.result?.["user"], {
    user_id: body.user.user_id,
    email: "ada@example.com",
    display_name: "Ada Lovelace",
    roles: [],
    permissions: [],
  });
  await sql`update auth.sessions set revoked_at = now() where token_sha256 = ${token_sha256}`;
  const over = await run(`${IDP}/validate_session`, { token_sha256 });
  assert.deepEqual([over.status, over.result?.["valid"]], ["COMPLETED", false]);
  assert.equal(over.result?.["user"], null);
});

test("an administrator gives a role, and it counts with the user's next call", async () => {
  const { as, login, run } = service;
  const { sql } = service.database;
  const [admin, user] = [await login(root), await login(ada)];
  const token_sha256 = sha256(admin.body.session_token);
  const path = "team/report";
  const check = { token_sha256: sha256(user.body.session_token), action: "view", path };
  const before = await run(`${IDP}/check_playbook_access`, check);
  assert.deepEqual([before.result?.["allowed"], before.result?.["message"]], [false, "the user has no active role"]);
  const asked = { action: "view", path };
  assert.deepEqual((await as(user.body.session_token, "POST", "/api/auth/access", asked)).body, { allowed: false });
  const given = await run(`${IDP}/user_management`, {
    action: "update_role",
    token_sha256,
    email: "ada@example.com",
    role: "viewer",
  });
  const update = given.result?.["update"];
  const { user_id } = user.body.user;
  assert.deepEqual(update, { user_id, email: "ada@example.com", role: "viewer", granted: true, changed: true });
  const [row] = await sql<{ granted_by: number }[]>`
    select granted_by::float8 as granted_by from auth.user_roles where user_id = ${user_id}`;
  assert.equal(row?.granted_by, admin.body.user.user_id);
  assert.deepEqual((await as(user.body.session_token, "POST", "/api/auth/access", asked)).body, { allowed: true });
  const after = await run(`${IDP}/check_playbook_access`, check);
  assert.equal(after.result?.["allowed"], true, JSON.stringify(after));
  assert.match(String(after.result?.["message"]), /^role viewer, permission \d+$/);
  for (const other of [{ action: "execute" }, { path: `${IDP}/login` }, { action: "fly" }, { path: null }]) {
    const refused = await run(`${IDP}/check_playbook_access`, { ...check, ...other });
    assert.equal(refused.result?.["allowed"], false, JSON.stringify(other));
  }
  await run(`${IDP}/user_management`, {
    action: "update_role",
    token_sha256,
    user_id,
    role: "viewer",
    granted: false,
  });
  assert.deepEqual((await as(user.body.session_token, "POST", "/api/auth/access", asked)).body, { allowed: false });
});

test("user management lists users and roles only for those who may manage users", async () => {
  const { login, run } = service;
  const [admin, user] = [await login(root), await login(ada)];
  const manage = (session: string, workload: object) =>
    run(`${IDP}/user_management`, { token_sha256: sha256(session), ...workload });
  const listed = await manage(admin.body.session_token, { action: "list_users", limit: 1 });
  assert.deepEqual(emailsOf(listed.result?.["users"]), ["ada@example.com"]);
  const seen = (listed.result?.["users"] ?? []) as { last_login_at: string }[];
  for (const { last_login_at } of seen) {
    assert.match(last_login_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.ok(Math.abs(Date.now() - Date.parse(last_login_at)) < 600_000, `${last_login_at} is of the last minutes`);
  }
  const rest = await manage(admin.body.session_token, { after: "ada@example.com" });
  const people = rest.result?.["users"] as { email: string; roles: string[] }[];
  assert.deepEqual(people.find(({ email }) => email === "root@example.com")?.roles, ["admin"]);
  const roles = (await manage(admin.body.session_token, { action: "list_roles" })).result?.["roles"];
  assert.deepEqual(namesOf(roles), ["admin", "analyst", "developer", "viewer"]);
  for (const action of ["list_users", "list_roles", "update_role"]) {
    const refused = await manage(user.body.session_token, { action, email: "ada@example.com", role: "admin" });
    assert.deepEqual([refused.result?.["status"], refused.result?.["code"]], ["refused", "FORBIDDEN"], action);
  }
  const unknown = await manage(admin.body.session_token, { action: "update_role", email: "no@body", role: "admin" });
  assert.equal(unknown.result?.["error"], "There is no user of that name");
  const wrong = await manage(admin.body.session_token, { action: "delete_everything" });
  assert.equal(wrong.result?.["code"], "INVALID_INPUT");
});

test("without the column granted_by a role update fails, and provision_auth_schema says how to add it", async () => {
  const { run } = service;
  const { sql } = service.database;
  await sql`alter table auth.user_roles rename column granted_by to granted_by_whom`;
  const failed = await run(`${IDP}/user_management`, {
    action: "update_role",
    email: "ada@example.com",
    role: "viewer",
  });
  assert.deepEqual([failed.status, failed.error?.code], ["FAILED", "42703"]);
  assert.match(failed.error?.message ?? "", /granted_by/);
  const told = (await run(`${IDP}/provision_auth_schema`)).result;
  assert.equal(told?.["code"], "INCOMPLETE");
  const [missing] = (told?.["missing"] ?? []) as { column: string; statement: string }[];
  assert.equal(missing?.column, "user_roles.granted_by");
  await sql.unsafe(missing?.statement ?? "");
  const restored = (await run(`${IDP}/provision_auth_schema`)).result;
  assert.deepEqual(restored?.["restored"], { roles: [], permissions: [] });
  const done = await run(`${IDP}/user_management`, {
    action: "update_role",
    email: "ada@example.com",
    role: "viewer",
  });
  assert.equal(done.status, "COMPLETED");
});

test("default roles that were deleted are put back; an operator makes an administrator", async () => {
  const { as, login, run } = service;
  const { sql } = service.database;
  await sql`delete from auth.roles where name in ('admin', 'viewer')`;
  const restored = (await run(`${IDP}/provision_auth_schema`)).result;
  assert.deepEqual(restored?.["restored"], { roles: ["admin", "viewer"], permissions: [] });
  const given = await sql`select from auth.role_permissions join auth.roles using (role_id) where name = 'admin'`;
  assert.equal(given.length, 5);
  const setup = await run(`${IDP}/setup_admin_permissions`, { email: "Grace@Example.com" });
  const administrator = setup.result?.["administrator"] as { email: string; changed: boolean };
  assert.deepEqual([administrator.email, administrator.changed], ["grace@example.com", true]);
  const { body } = await login({ sub: "grace", email: "grace@example.com" });
  assert.deepEqual(body.user.roles, ["admin"]);
  const allowed = { action: "modify", path: `${IDP}/login` };
  assert.deepEqual((await as(body.session_token, "POST", "/api/auth/access", allowed)).body, { allowed: true });
});

test("the account of pg_auth touches schema auth and nothing else", async () => {
  const { operator } = service;
  const { data } = await operator<{ data: Record<string, string> }>(
    "GET",
    "/api/credentials/pg_auth?include_data=true",
  );
  const { host, port, user, password, database: name } = data;
  const account = postgres({
    host: host ?? "",
    port: Number(port),
    user: user ?? "",
    password: password ?? "",
    database: name ?? "",
    max: 1,
  });
  const refused = (statement: string) =>
    assert.rejects(account.unsafe(statement), { code: "42501" }, `${statement} was not refused`);
  try {
    assert.ok((await account`select from auth.users`).length > 0);
    await refused("select from flow.credential");
    await refused("select from flow.execution");
    await refused("update auth.audit_log set result = 'allow'");
    await refused("delete from auth.audit_log");
    await refused("create table auth.mine (x int)");
    await refused("create table public.mine (x int)");
    await refused("create role mine");
    await refused("alter table auth.users disable trigger all");
    await refused("select pg_read_file('/etc/passwd')");
  } finally {
    await account.end();
  }
});

test("other users' playbooks do not get the service's own credentials", async () => {
  const { operator, provider, run } = service;
  for (const [name, kind] of [
    ["pg_auth", "{kind: sqldb, auth: pg_auth, command: select 1}"],
    ["gateway_callback", `{kind: http, auth: gateway_callback, url: "${provider.issuer}"}`],
  ]) {
    const path = `team/${name}`;
    const content = `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: theft, path: ${path}}\nworkflow:\n- step: take\n  tool: ${kind}\n`;
    await operator("POST", "/api/catalog/register", { content });
    const taken = await run(path);
    assert.equal(taken.status, "FAILED");
    assert.match(taken.error?.message ?? "", new RegExp(`'${name}' is for the playbooks api_integration/\\*\\*`));
  }
});

test("a callback whose user has no email is answered with Invalid email", async () => {
  const { login, operator } = service;
  const entry = await operator<{ content: string }>("GET", `/api/catalog/resource/${IDP}/login`);
  const content = entry.content.replaceAll(`user: "{{ open.rows[0].user }}"`, "user: { user_id: 1 }");
  assert.notEqual(content, entry.content);
  await operator("POST", "/api/catalog/register", { content });
  const { status, body } = await login(ada);
  assert.deepEqual([status, body.error], [500, "Invalid email"]);
  await operator("POST", "/api/catalog/register", { content: entry.content });
  assert.equal((await login(ada)).status, 200);
});

test("a failure of the database is reported at once and without its message; without the broker logins work", async () => {
  const { login } = service;
  const { sql } = service.database;
  await nats.stop();
  assert.equal((await login(ada)).status, 200);
  await sql`alter table auth.sessions rename to hidden`;
  try {
    const { status, body } = await login(ada);
    assert.equal(status, 500);
    assert.match(body.error ?? "", /^It did not succeed; execution \d+ says why$/);
  } finally {
    await sql`alter table auth.hidden rename to sessions`;
  }
});
