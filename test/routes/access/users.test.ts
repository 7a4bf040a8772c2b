import assert from "node:assert/strict";
import { test } from "node:test";
import { type Body, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { addUser, allow, type TestUser } from "../../support/service/users.ts";

const api = await openApi();

/** A call of a gateway for a user; of the operator without one. */
async function call(user: TestUser | undefined, method: string, path: string, body?: unknown) {
  const headers = {
    authorization: `Bearer ${TOKENS.operator}`,
    ...(user !== undefined && { "x-flow-session": user.tokenSha256 }),
  };
  const init = body === undefined ? { method, headers } : { ...posted(body, headers), method };
  const response = await api.guarded.request(`/api/auth${path}`, init);
  return { status: response.status, body: (await response.json()) as Body };
}

/** A user who has these permissions, by a role of their own; and the name of the role. */
async function manager(...permissions: string[]): Promise<{ user: TestUser; role: string }> {
  const user = await addUser(api.database);
  const role = await allow(api.database, user, []);
  assert.equal((await call(undefined, "PUT", `/roles/${role}`, { permissions })).status, 200);
  return { user, role };
}

const rolesOf = (body: Body) => (body["roles"] as Body[]).map(({ role, granted_by }) => [role, granted_by]);

for (const [what, settings, logins, expected] of [
  ["no provider is known", {}, [], [201, null]],
  ["one is in the settings", { FLOW_IDP_DOMAINS: "a.example" }, ["https://old.example"], [201, "https://a.example"]],
  ["one is in the settings twice", { FLOW_IDP_DOMAINS: "a.example,A.example" }, [], [201, "https://a.example"]],
  ["several are in the settings", { FLOW_IDP_DOMAINS: "a.example,b.example" }, [], [422, undefined]],
  ["one is known from logins", {}, ["https://c.example/"], [201, "https://c.example/"]],
  ["several are known from logins", {}, ["https://c.example/", "https://d.example/"], [422, undefined]],
] as const) {
  test(`a user who is added without an issuer, where ${what}`, async () => {
    const { database, guarded } = await openApi(settings);
    for (const issuer of logins) {
      await database.sql`insert into auth.users (email, display_name, issuer, subject) values (${`${new URL(issuer).host}@x.example`}, 'x', ${issuer}, 's')`;
    }
    const headers = { authorization: `Bearer ${TOKENS.operator}` };
    const add = async (body: object) => {
      const response = await guarded.request("/api/auth/users", posted({ email: "new@example.com", ...body }, headers));
      return { status: response.status, body: (await response.json()) as Body };
    };
    const { status, body } = await add({});
    assert.deepEqual([status, body["issuer"]], expected, JSON.stringify(body));
    if (status === 201) return;
    assert.match(
      String(body["error"]),
      /Which identity provider may vouch for new@example\.com\? It is one of https:\S+, https:/,
    );
    assert.equal((await add({ any_issuer: true, issuer: "https://a.example" })).status, 422);
    assert.deepEqual((await add({ any_issuer: true })).body["issuer"], null);
    assert.equal(
      (await add({ email: "other@example.com", issuer: "https://d.example/" })).body["issuer"],
      "https://d.example/",
    );
  });
}

test("a user is added, changed, given and taken roles, and deleted; all of it stands in the audit log", async () => {
  const admin = await addUser(api.database, { roles: ["admin"] });
  const added = await call(admin, "POST", "/users", { email: "Bob@Example.com", roles: ["viewer"] });
  assert.equal(added.status, 201);
  assert.deepEqual([added.body["display_name"], added.body["is_active"]], ["Bob@Example.com", true]);
  assert.deepEqual(rolesOf(added.body), [["viewer", admin.email]]);
  const id = String(added.body["user_id"]);
  assert.equal(
    (await call(admin, "PUT", "/users/bob@example.com", { display_name: "Bob" })).body["display_name"],
    "Bob",
  );
  const granted = await call(undefined, "PUT", `/users/${id}/roles/analyst`);
  assert.deepEqual(rolesOf(granted.body), [
    ["analyst", null],
    ["viewer", admin.email],
  ]);
  assert.deepEqual(rolesOf((await call(admin, "DELETE", `/users/${id}/roles/viewer`)).body), [["analyst", null]]);
  assert.deepEqual(rolesOf((await call(admin, "DELETE", `/users/${id}/roles/viewer`)).body), [["analyst", null]]);
  assert.equal((await call(admin, "DELETE", `/users/${id}`)).status, 200);
  assert.equal((await call(admin, "GET", `/users/${id}`)).status, 404);
  const { body } = await call(admin, "GET", "/audit?resource=user/Bob@Example.com");
  assert.deepEqual(
    (body["entries"] as Body[]).map(({ action, actor }) => [action, actor]),
    [
      ["user.delete", admin.email],
      ["user.revoke", admin.email],
      ["user.revoke", admin.email],
      ["user.grant", null],
      ["user.update", admin.email],
      ["user.create", admin.email],
    ],
  );
});

test("an unknown user is 404, an address in use 409, nonsense 422", async () => {
  const user = await addUser(api.database);
  for (const [method, path, body, status] of [
    ["GET", "/users/999999", undefined, 404],
    ["GET", "/users/nobody@example.com", undefined, 404],
    ["GET", "/users/nonsense", undefined, 404],
    ["PUT", `/users/${user.userId}/roles/no-such-role`, undefined, 404],
    ["PUT", `/users/${user.userId}/roles/No%20Role`, undefined, 422],
    ["POST", "/users", { email: user.email.toUpperCase() }, 409],
    ["POST", "/users", { email: "x@example.com", roles: ["no-such-role"] }, 404],
    ["POST", "/users", { email: "no address" }, 422],
    ["POST", "/users", { email: "a@b", display_name: "\u0000" }, 422],
    ["GET", "/users?cursor=nonsense", undefined, 422],
    ["GET", "/users?limit=501", undefined, 422],
  ] as const) {
    assert.equal((await call(undefined, method, path, body)).status, status, `${method} ${path}`);
  }
  const other = await addUser(api.database);
  assert.equal((await call(undefined, "PUT", `/users/${other.userId}`, { email: user.email })).status, 409);
  assert.equal((await call(undefined, "GET", "/users/x@example.com")).status, 404);
});

test("who is deactivated loses their sessions for good", async () => {
  const user = await addUser(api.database, { roles: ["viewer"] });
  assert.equal((await call(user, "GET", "/me")).status, 200);
  await call(undefined, "PUT", `/users/${user.userId}`, { is_active: false });
  assert.equal((await call(user, "GET", "/me")).status, 401);
  await call(undefined, "PUT", `/users/${user.userId}`, { is_active: true });
  assert.equal((await call(user, "GET", "/me")).status, 401);
});

test("users are listed in pages, and found by a part of their name, by role and by state", async () => {
  const some = [];
  for (let index = 0; index < 3; index += 1) some.push(await addUser(api.database, { email: `paged-${index}@x.org` }));
  await call(undefined, "PUT", `/users/${some[1]?.userId}/roles/viewer`);
  await call(undefined, "PUT", `/users/${some[2]?.userId}`, { is_active: false });
  const found = async (query: string) => {
    const emails: unknown[] = [];
    for (let cursor: unknown = ""; cursor !== null; ) {
      const more = cursor === "" ? "" : `&cursor=${cursor}`;
      const { body } = await call(undefined, "GET", `/users?limit=2&${query}${more}`);
      emails.push(...(body["users"] as Body[]).map(({ email }) => email));
      cursor = body["next_cursor"];
    }
    return emails;
  };
  assert.deepEqual(
    await found("q=PAGED-"),
    some.map(({ email }) => email),
  );
  assert.deepEqual(await found("q=paged-&role=viewer"), ["paged-1@x.org"]);
  assert.deepEqual(await found("q=paged-&is_active=false"), ["paged-2@x.org"]);
  assert.deepEqual(await found("q=%25"), []);
});

test("a user cannot give a permission they lack: to others, to themselves, or by changing who has it", async () => {
  const { user: boss, role } = await manager("manage_users", "manage_roles");
  const admin = await addUser(api.database, { roles: ["admin"] });
  const user = await addUser(api.database);
  for (const [method, path, body] of [
    ["PUT", `/users/${boss.userId}/roles/admin`, undefined],
    ["PUT", `/users/${user.userId}/roles/admin`, undefined],
    ["POST", "/users", { email: "mine@example.com", roles: ["admin"] }],
    ["PUT", `/users/${admin.userId}`, { email: "mine@example.com" }],
    ["DELETE", `/users/${admin.userId}`, undefined],
    ["DELETE", `/users/${admin.userId}/roles/admin`, undefined],
    ["PUT", `/roles/${role}`, { permissions: ["manage_users", "manage_roles", "view_audit"] }],
    ["POST", "/roles", { name: "mine", permissions: ["manage_credentials"] }],
  ] as const) {
    assert.equal((await call(boss, method, path, body)).status, 403, `${method} ${path}`);
  }
  assert.equal((await call(boss, "POST", "/roles", { name: "lesser", permissions: ["manage_users"] })).status, 201);
  assert.equal((await call(boss, "PUT", `/users/${user.userId}/roles/lesser`)).status, 200);
});

test("a user cannot give access to paths that their own rows do not cover: by a row, a role, an address or a reactivation", async () => {
  const { user: boss, role } = await manager("manage_users", "manage_roles");
  await allow(api.database, boss, [{ allow: "team/**", deny: "team/secret/**", can: ["view", "execute"] }]);
  const other = await addUser(api.database);
  const [inTeam, elsewhere] = [await addUser(api.database), await addUser(api.database)];
  const teamRole = await allow(api.database, inTeam, [{ allow: "team/a/**", can: ["view"] }]);
  const otherRole = await allow(api.database, elsewhere, [{ allow: "other/**", can: ["view"] }]);
  await call(undefined, "PUT", `/roles/${otherRole}`, { is_active: false });
  const row = (allow_pattern: string, more: object = { can_view: true }) => ({ allow_pattern, ...more });
  for (const [method, path, body] of [
    // The ways in which one became an administrator, or a member of another team.
    ["POST", `/roles/${role}/playbooks`, row("**")],
    ["POST", `/roles/${role}/playbooks`, row("**", { can_modify: true })],
    ["POST", "/roles", { name: "mine", playbooks: [row("team/a"), row("**")] }],
    ["PUT", `/users/${boss.userId}/roles/viewer`, undefined],
    ["PUT", `/users/${other.userId}/roles/analyst`, undefined],
    ["POST", "/users", { email: "mine-too@example.com", roles: ["analyst"] }],
    // What one row gives with an exception, no row gives without it, nor another action.
    ["POST", `/roles/${role}/playbooks`, row("team/**")],
    ["POST", `/roles/${role}/playbooks`, row("team/secret/x")],
    ["POST", `/roles/${role}/playbooks`, { playbook_path: "team/a", can_modify: true }],
    ["POST", `/roles/${teamRole}/playbooks`, row("team/**", { deny_pattern: "team/secret/x", can_view: true })],
    // Roles that are switched off, and what gives them again.
    ["PUT", `/users/${other.userId}/roles/${otherRole}`, undefined],
    ["PUT", `/roles/${otherRole}`, { is_active: true }],
    ["PUT", `/users/${elsewhere.userId}`, { email: "mine-as-well@example.com" }],
    ["PUT", `/users/${elsewhere.userId}`, { is_active: true }],
  ] as const) {
    const answer = await call(boss, method, path, body);
    assert.equal(answer.status, 403, `${method} ${path} ${JSON.stringify(body)}`);
    assert.match(String(answer.body["error"]), /it would allow to (view|execute|modify) '.*', which .* may not/);
  }
  for (const [method, path, body, status] of [
    ["POST", `/roles/${role}/playbooks`, row("team/*/x", { deny_pattern: "team/secret/*", can_execute: true }), 201],
    ["POST", `/roles/${role}/playbooks`, { playbook_path: "team/a", can_view: true, can_execute: true }, 201],
    ["POST", "/roles", { name: "team-viewer", playbooks: [row("team/b")] }, 201],
    ["PUT", `/users/${other.userId}/roles/team-viewer`, undefined, 200],
    ["PUT", `/users/${other.userId}/roles/${teamRole}`, undefined, 200],
    ["PUT", `/users/${inTeam.userId}`, { email: "in-team@example.com" }, 200],
    // Taking a role away gives no one a permission.
    ["PUT", `/users/${elsewhere.userId}`, { display_name: "Else" }, 200],
    ["PUT", `/users/${elsewhere.userId}`, { is_active: false }, 200],
    ["DELETE", `/users/${elsewhere.userId}/roles/${otherRole}`, undefined, 200],
    ["DELETE", `/roles/${otherRole}`, undefined, 200],
  ] as const) {
    const answer = await call(boss, method, path, body);
    assert.equal(answer.status, status, `${method} ${path} ${JSON.stringify([body, answer.body])}`);
  }
  const can = async (user: TestUser, action: string, path: string) =>
    (await call(user, "POST", "/can", { action, path })).body["allowed"];
  assert.deepEqual(
    [await can(boss, "view", "other/a"), await can(boss, "modify", "team/a"), await can(other, "view", "team/b")],
    [false, false, true],
  );
});

test("a role is added, changed and deleted; what it allows counts from the next call on", async () => {
  const admin = await addUser(api.database, { roles: ["admin"] });
  const user = await addUser(api.database);
  const body = {
    name: "reporting",
    description: "Reports",
    playbooks: [{ allow_pattern: "reports/**", can_view: true }],
  };
  assert.equal((await call(admin, "POST", "/roles", body)).status, 201);
  assert.equal((await call(admin, "POST", "/roles", body)).status, 409);
  await call(admin, "PUT", `/users/${user.userId}/roles/reporting`);
  const may = async (action: string, path: string) =>
    (await call(user, "POST", "/can", { action, path })).body["allowed"] as boolean;
  assert.deepEqual([await may("view", "reports/a"), await may("execute", "reports/a")], [true, false]);
  const rule = { playbook_path: "reports/a", can_execute: true };
  const { body: allowed } = await call(admin, "POST", "/roles/reporting/playbooks", rule);
  assert.deepEqual([await may("execute", "reports/a"), await may("execute", "reports/b")], [true, false]);
  const permission = `/roles/reporting/playbooks/${allowed["permission_id"]}`;
  assert.equal((await call(admin, "DELETE", permission)).status, 200);
  assert.equal((await call(admin, "DELETE", permission)).status, 404);
  assert.equal(await may("execute", "reports/a"), false);
  await call(admin, "PUT", "/roles/reporting", { is_active: false });
  assert.equal(await may("view", "reports/a"), false);
  const changed = await call(admin, "PUT", "/roles/reporting", { is_active: true, permissions: ["view_audit"] });
  assert.deepEqual(changed.body["permissions"], ["view_audit"]);
  assert.equal(changed.body["description"], "Reports");
  assert.equal((await call(user, "GET", "/audit?limit=1")).status, 200);
  assert.equal((await call(admin, "DELETE", "/roles/reporting")).status, 200);
  assert.equal((await call(user, "GET", "/audit?limit=1")).status, 403);
  assert.equal((await call(admin, "GET", "/roles/reporting")).status, 404);
});

test("a permission on playbooks names paths and gives something; an unknown permission is refused", async () => {
  const rules = "/roles/viewer/playbooks";
  for (const [path, body, status] of [
    [rules, { can_view: true }, 422],
    [rules, { allow_pattern: "a/**" }, 422],
    [rules, { allow_pattern: "", can_view: true }, 422],
    [rules, { allow_pattern: "a\tb", can_view: true }, 422],
    [rules, { allow_pattern: "a".repeat(1_025), can_view: true }, 422],
    ["/roles/none/playbooks", { allow_pattern: "a", can_view: true }, 404],
    ["/roles", { name: "x", permissions: ["fly"] }, 404],
    ["/roles", { name: "X" }, 422],
  ] as const) {
    assert.equal((await call(undefined, "POST", path, body)).status, status, JSON.stringify(body).slice(0, 80));
  }
});

test("the role admin stays what it is", async () => {
  for (const [method, path, body] of [
    ["PUT", "/roles/admin", { is_active: false }],
    ["DELETE", "/roles/admin", undefined],
    ["POST", "/roles/admin/playbooks", { allow_pattern: "a", can_view: true }],
  ] as const) {
    assert.equal((await call(undefined, method, path, body)).status, 409, method);
  }
});

test("roles are listed in pages by name", async () => {
  const names: unknown[] = [];
  for (let cursor: unknown = ""; cursor !== null; ) {
    const { body } = await call(undefined, "GET", `/roles?limit=3${cursor === "" ? "" : `&cursor=${cursor}`}`);
    names.push(...(body["roles"] as Body[]).map(({ name }) => name));
    cursor = body["next_cursor"];
  }
  assert.deepEqual(names, names.toSorted());
  for (const name of ["admin", "analyst", "developer", "viewer"]) assert.ok(names.includes(name), name);
});

test("permissions are listed in pages by name, with what they mean", async () => {
  const { body: all } = await call(undefined, "GET", "/permissions");
  const named = (body: Body) => (body["permissions"] as Body[]).map(({ name }) => String(name));
  const names = named(all);
  assert.ok(names.includes("manage_users"));
  assert.deepEqual(names, names.toSorted());
  for (const { description } of all["permissions"] as Body[]) assert.equal(typeof description, "string");
  assert.equal(all["next_cursor"], null);
  for (const limit of [1, names.length - 1, names.length]) {
    const pages: string[][] = [];
    for (let cursor: unknown = ""; cursor !== null; ) {
      const { body } = await call(
        undefined,
        "GET",
        `/permissions?limit=${limit}${cursor === "" ? "" : `&cursor=${cursor}`}`,
      );
      pages.push(named(body));
      cursor = body["next_cursor"];
    }
    assert.deepEqual(pages.flat(), names, `pages of ${limit}`);
    assert.equal(pages.length, Math.ceil(names.length / limit), `pages of ${limit}`);
  }
});

test("an invalid page of permissions is refused", async () => {
  for (const query of ["limit=0", "limit=501", "limit=x", "cursor=x", "cursor=MQ"]) {
    assert.equal((await call(undefined, "GET", `/permissions?${query}`)).status, 422, query);
  }
});

test("a session is ended by its id, by its token, or with all of its user's; others' only with the permission", async () => {
  const { user: boss } = await manager("manage_users");
  const [user, other] = [await addUser(api.database), await addUser(api.database)];
  const { body } = await call(boss, "GET", `/sessions?user=${other.userId}&is_live=true`);
  const [session] = body["sessions"] as Body[];
  assert.doesNotMatch(JSON.stringify(body), new RegExp(other.tokenSha256));
  assert.equal((await call(user, "GET", "/sessions")).status, 403);
  const logout = (who: TestUser | undefined, of: TestUser) =>
    call(who, "POST", "/sessions/revoke", { token_sha256: of.tokenSha256 });
  assert.equal((await call(user, "DELETE", `/sessions/${session?.["session_id"]}`)).body["revoked"], 0);
  assert.equal((await logout(user, other)).body["revoked"], 0);
  assert.equal((await call(other, "GET", "/me")).status, 200);
  assert.equal((await logout(user, user)).body["revoked"], 1);
  assert.equal((await call(user, "GET", "/me")).status, 401);
  assert.equal((await call(boss, "DELETE", `/sessions/${session?.["session_id"]}`)).body["revoked"], 1);
  assert.equal((await logout(undefined, other)).body["revoked"], 0);
  const third = await addUser(api.database);
  assert.equal((await call(boss, "DELETE", `/users/${third.email}/sessions`)).body["revoked"], 1);
  assert.equal((await call(third, "GET", "/me")).status, 401);
});

test("the audit log is read in pages, newest first, by who, what, result and time", async () => {
  const { user: auditor } = await manager("view_audit");
  const { audit } = api.service;
  const entry = { actorKind: "user", actor: "Eve@example.com", rule: "none", result: "deny" } as const;
  for (const action of ["one", "two", "three"])
    await audit.record({ ...entry, action: `paged.${action}`, resource: "r" });
  const read = async (query: string) => {
    const actions: unknown[] = [];
    for (let cursor: unknown = ""; cursor !== null; ) {
      const { status, body } = await call(
        auditor,
        "GET",
        `/audit?limit=2&${query}${cursor === "" ? "" : `&cursor=${cursor}`}`,
      );
      assert.equal(status, 200, JSON.stringify(body));
      actions.push(...(body["entries"] as Body[]).map(({ action }) => action));
      cursor = body["next_cursor"];
    }
    return actions;
  };
  const all = ["paged.three", "paged.two", "paged.one"];
  assert.deepEqual(await read("actor=eve@example.com"), all);
  assert.deepEqual(await read("resource=r&result=deny&since=2020-01-01T00:00:00Z"), all);
  assert.deepEqual(await read("action=paged.two"), ["paged.two"]);
  assert.deepEqual(await read("resource=r&until=2020-01-01T00:00:00Z"), []);
  assert.deepEqual(await read("resource=r&since=2999-01-01T00:00:00Z"), []);
  assert.equal((await call(auditor, "GET", "/audit?since=yesterday")).status, 422);
  assert.equal((await call(auditor, "GET", "/users")).status, 403);
});

test("of two administrators who take each other's rights at the same moment one succeeds", async () => {
  for (let round = 0; round < 10; round += 1) {
    const [one, other] = [await manager("manage_users"), await manager("manage_users")];
    const answers = await Promise.all([
      call(one.user, "DELETE", `/users/${other.user.userId}/roles/${other.role}`),
      call(other.user, "DELETE", `/users/${one.user.userId}/roles/${one.role}`),
    ]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 403]);
    const refused = answers.find(({ status }) => status === 403);
    assert.match(JSON.stringify(refused?.body), /no longer has the permission manage_users|may not/);
  }
});

test("the last user who may manage users cannot be removed", async () => {
  const { userId, email } = await addUser(api.database, { roles: ["admin"] });
  await api.database.sql`update auth.users set is_active = false where user_id <> ${userId}`;
  for (const [method, path, body] of [
    ["DELETE", `/users/${userId}`, undefined],
    ["PUT", `/users/${email}`, { is_active: false }],
    ["DELETE", `/users/${email}/roles/admin`, undefined],
  ] as const) {
    assert.equal((await call(undefined, method, path, body)).status, 409, method);
  }
  await addUser(api.database, { roles: ["admin"] });
  assert.equal((await call(undefined, "DELETE", `/users/${userId}`)).status, 200);
});
