import assert from "node:assert/strict";
import { test } from "node:test";
import { addUser } from "../../support/service/users.ts";
import { openOperatedApi } from "../operated-api.ts";

/* The commands as the operator's, against the API itself. */

const { api, url, commands } = await openOperatedApi();

function cells(stdout: string): string[][] {
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/));
}

test("a user is added with roles, given others, deactivated, let in again and deleted", async (t) => {
  const run = await commands(t);
  const added = await run("users", "add", "Ada@Example.com", "viewer", "--name", "Ada Lovelace");
  assert.equal(added.code, 0, added.stderr);
  assert.match(
    added.stdout,
    /^Ada@Example\.com is user \d+ and has the role viewer; logs in by the first identity provider that vouches for the address$/m,
  );
  // Addresses are compared whatever the letters' case.
  const granted = await run("users", "grant", "ada@example.com", "analyst", "developer");
  assert.equal(granted.stdout, "Ada@Example.com now has the roles analyst, developer, viewer\n");
  const revoked = await run("users", "revoke", "ada@example.com", "viewer", "developer");
  assert.equal(revoked.stdout, "Ada@Example.com now has the role analyst\n");
  const off = await run("users", "deactivate", "ada@example.com");
  assert.equal(off.stdout, "Ada@Example.com is logged out and may not log in\n");
  const listed = await run("users", "list", "--status", "inactive");
  assert.deepEqual(cells(listed.stdout).at(-1)?.slice(1), [
    "Ada@Example.com",
    "Ada Lovelace",
    "inactive",
    "analyst",
    "any provider",
  ]);
  assert.equal(listed.stderr, `1 user at ${url}\n`);
  assert.equal((await run("users", "activate", "ada@example.com")).stdout, "Ada@Example.com may log in\n");
  const gone = await run("users", "delete", "ada@example.com");
  assert.equal(gone.stdout, "ada@example.com was deleted, with sessions and roles\n");
  const none = await run("users", "show", "ada@example.com");
  assert.deepEqual([none.code, none.stdout, none.stderr], [2, "", "flow: There is no user ada@example.com\n"]);
});

test("a user is shown with roles and who granted them, by address or id, and as the API's answer with --json", async (t) => {
  const run = await commands(t);
  const { userId, email } = await addUser(api.database, { roles: ["analyst"] });
  for (const word of [email, String(userId)]) {
    const { code, stdout, stderr } = await run("users", "show", word);
    assert.equal(code, 0, stderr);
    assert.match(stdout, new RegExp(`^user: +${userId}$`, "m"));
    assert.match(stdout, /^status: +active$/m);
    assert.match(stdout, /^identity from: +the first provider that vouches for the address$/m);
    assert.match(stdout, /^last login: +never$/m);
    assert.match(stdout, /^role: +analyst, by the operator, \d{4}-/m);
  }
  const user = JSON.parse((await run("users", "show", email, "--json")).stdout) as Record<string, unknown>;
  assert.deepEqual([user["user_id"], user["email"], user["is_active"]], [userId, email, true]);
});

test("a list has every page, and only the users that its options select", async (t) => {
  const run = await commands(t);
  const { sql } = api.database;
  await sql`
    insert into auth.users (email, display_name)
    select 'many-' || i || '@pages.example', 'Many ' || i from generate_series(1, 501) i`;
  const { stdout } = await run("users", "list", "--search", "@pages.example", "--json");
  const { users } = JSON.parse(stdout) as { users: { email: string }[] };
  assert.equal(new Set(users.map(({ email }) => email)).size, 501);
  const { email } = await addUser(api.database, { roles: ["developer"] });
  const developers = cells((await run("users", "list", "--role", "developer")).stdout).slice(1);
  assert.deepEqual(
    developers.map((row) => row[1]),
    [email],
  );
});

test("a logout ends the sessions of a user, who may log in again", async (t) => {
  const run = await commands(t);
  const { email, tokenSha256 } = await addUser(api.database);
  assert.ok(await api.service.access.session(tokenSha256));
  assert.equal((await run("users", "logout", email)).stdout, `1 session of ${email} ended\n`);
  assert.equal(await api.service.access.session(tokenSha256), undefined);
  assert.equal((await run("users", "logout", email)).stdout, `0 sessions of ${email} ended\n`);
});

test("can prints yes or no for a user with the rule, and the exit code says it to scripts", async (t) => {
  const run = await commands(t);
  const { email } = await addUser(api.database, { roles: ["analyst"] });
  const yes = await run("can", "execute", "etl/load", "--user", email);
  assert.equal(yes.code, 0, yes.stderr);
  assert.match(yes.stdout, /^yes: role analyst, permission \d+$/m);
  const no = await run("can", "modify", "etl/load", "--user", email);
  assert.deepEqual([no.code, no.stdout], [1, "no: what allows etl/load does not allow to modify it\n"]);
  const json = await run("can", "modify", "etl/load", "--user", email, "--json");
  assert.equal(json.code, 1);
  const { allowed, action, path, email: whose } = JSON.parse(json.stdout) as Record<string, unknown>;
  assert.deepEqual([allowed, action, path, whose], [false, "modify", "etl/load", email]);
  const operator = await run("can", "modify", "etl/load");
  assert.deepEqual([operator.code, operator.stdout], [0, "yes: the operator's token\n"]);
  assert.equal((await run("can", "execute", "etl/load", "--user", "nobody@example.com")).code, 2);
});

test("whoami at a server is the operator", async (t) => {
  const run = await commands(t);
  const { code, stdout } = await run("whoami");
  assert.deepEqual([code, stdout], [0, `The operator at ${url} (FLOW_SERVER_URL)\n`]);
  assert.deepEqual(JSON.parse((await run("whoami", "--json")).stdout), { server: url, kind: "operator" });
});

for (const [args, said] of [
  [["users", "list", "ada"], /'flow users list' does not take 'ada'; did you mean --search ada\?/],
  [["users", "show"], /'flow users show' needs <user>: email address or id/],
  [["users", "show", "a@b", "c"], /'flow users show' does not take 'c'/],
  [["users", "grant", "a@b"], /'flow users grant' needs <role>…: roles to add; see 'flow roles'/],
  [["users", "show", "a@b", "--role", "viewer"], /does not take --role; it goes with 'flow users list'/],
  [["users", "grnat", "a@b"], /Did you mean 'flow users grant'\?/],
  [["users", "grant", "ada@example.com", "nothing"], /There is no (user|role)/],
  [["can", "delete", "etl/load"], /action must be one of execute, view, modify/],
  [["can", "execute"], /'flow can' needs <path>/],
] as const) {
  test(`flow ${args.join(" ")} is refused with a helpful message`, async (t) => {
    const run = await commands(t);
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, said);
  });
}
