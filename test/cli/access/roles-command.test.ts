import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { addUser } from "../../support/service/users.ts";
import { openOperatedApi } from "../operated-api.ts";

const { api, commands } = await openOperatedApi();

async function setup(t: TestContext) {
  const run = await commands(t);
  /** Fails the test where the command fails. */
  const ok = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  return { run, ok };
}

test("the roles of an installation are listed, and shown with what they allow", async (t) => {
  const { ok } = await setup(t);
  const names = (await ok("roles")).split("\n").map((line) => line.split(" ")[0]);
  for (const name of ["NAME", "admin", "analyst", "developer", "viewer"]) assert.ok(names.includes(name), name);
  const shown = await ok("roles", "show", "developer");
  assert.match(shown, /^role: +developer$/m);
  assert.match(shown, /^ID +MAY +PATHS +EXCEPT\n\d+ +execute,view,modify +\*\* +api_integration\/\*\*/m);
  assert.match(await ok("roles", "permissions"), /^manage_users +\S/m);
});

test("a role is made, allows paths, is narrowed, and each change counts for its users", async (t) => {
  const { run, ok } = await setup(t);
  const { email } = await addUser(api.database);
  assert.match(
    await ok("roles", "create", "team-etl", "--description", "runs the loads"),
    /'team-etl' has no permissions yet/,
  );
  await ok("users", "grant", email, "team-etl");
  const can = async (action: string, path: string) => (await run("can", action, path, "--user", email)).code === 0;
  assert.equal(await can("execute", "etl/load"), false);

  const allowed = await ok(
    "roles",
    "allow",
    "team-etl",
    "etl/**",
    "lib/*",
    "--execute",
    "--view",
    "--except",
    "etl/old/**",
  );
  assert.match(
    allowed,
    /^The role 'team-etl' may execute, view etl\/\*\*, lib\/\*, but not etl\/old\/\*\* \(permission \d+\)$/m,
  );
  assert.deepEqual(
    [await can("execute", "etl/load"), await can("view", "lib/a"), await can("view", "lib/a/b")],
    [true, true, false],
  );
  assert.deepEqual([await can("modify", "etl/load"), await can("execute", "etl/old/x")], [false, false]);

  await ok("roles", "allow", "team-etl", "etl/pay", "--modify");
  const denied = await ok("roles", "deny", "team-etl", "etl/pay", "etl/hr/*");
  assert.equal(denied, "The role 'team-etl' no longer allows etl/pay, etl/hr/* (2 permissions narrowed)\n");
  for (const [action, path] of [
    ["execute", "etl/pay"],
    ["modify", "etl/pay"],
    ["view", "etl/hr/a"],
    ["view", "etl/old/a"],
  ] as const)
    assert.equal(await can(action, path), false, `${action} ${path}`);
  assert.equal(await can("execute", "etl/load"), true);
  const again = await ok("roles", "deny", "team-etl", "etl/pay");
  assert.equal(again, "The role 'team-etl' already denies this\n");

  const { playbooks } = JSON.parse(await ok("roles", "show", "team-etl", "--json")) as {
    playbooks: { permission_id: string; deny_pattern: string }[];
  };
  assert.deepEqual(playbooks.map(({ deny_pattern }) => deny_pattern).sort(), [
    "etl/old/**\netl/pay\netl/hr/*",
    "etl/pay\netl/hr/*",
  ]);
  const ids = playbooks.map(({ permission_id }) => permission_id);
  assert.equal(await ok("roles", "disallow", "team-etl", ...ids), "2 permissions removed from the role 'team-etl'\n");
  assert.equal(await can("execute", "etl/load"), false);
  assert.match(await ok("roles", "delete", "team-etl"), /was deleted and taken from its users/);
  assert.equal((await run("roles", "show", "team-etl")).code, 2);
});

test("a denial leaves permissions on single other paths alone", async (t) => {
  const { ok } = await setup(t);
  await ok("roles", "create", "single");
  await ok("roles", "allow", "single", "etl/a", "--view");
  assert.match(await ok("roles", "deny", "single", "etl/b"), /already denies this/);
  assert.match(await ok("roles", "deny", "single", "etl/*"), /1 permission narrowed/);
});

test("a role that is deactivated grants nothing until it is activated again", async (t) => {
  const { run, ok } = await setup(t);
  const { email } = await addUser(api.database);
  await ok("roles", "create", "night");
  await ok("roles", "allow", "night", "**", "--view");
  await ok("users", "grant", email, "night");
  const can = async () => (await run("can", "view", "a", "--user", email)).code;
  assert.equal(await can(), 0);
  assert.match(await ok("roles", "deactivate", "night"), /grants nothing until it is activated again/);
  assert.equal(await can(), 1);
  assert.match(await ok("roles", "activate", "night"), /is active again/);
  assert.equal(await can(), 0);
});

test("global permissions are granted and revoked, and the others stay", async (t) => {
  const { run, ok } = await setup(t);
  await ok("roles", "create", "clerk");
  assert.match(
    await ok("roles", "give", "clerk", "view_audit", "manage_users"),
    /'clerk' has manage_users, view_audit$|'clerk' has view_audit, manage_users$/m,
  );
  await ok("roles", "give", "clerk", "manage_users", "manage_roles");
  assert.equal(await ok("roles", "take", "clerk", "manage_users", "manage_roles"), "The role 'clerk' has view_audit\n");
  const never = await run("roles", "take", "clerk", "manage_users");
  assert.deepEqual([never.code, never.stderr], [2, "flow: The role 'clerk' does not have 'manage_users'\n"]);
  assert.equal(await ok("roles", "take", "clerk", "view_audit"), "The role 'clerk' has no global permissions\n");
  const unknown = await run("roles", "give", "clerk", "manage_everything");
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /There is no permission 'manage_everything'; there are .*manage_users/);
});

test("the role admin cannot be changed", async (t) => {
  const { run } = await setup(t);
  const { code, stderr } = await run("roles", "deny", "admin", "etl/**");
  assert.equal(code, 1);
  assert.match(stderr, /The role 'admin' stays as it is/);
});

for (const [args, said] of [
  [["roles", "show"], /'flow roles show' needs <role>: name of the role/],
  [["roles", "list", "a"], /'flow roles list' does not take 'a'/],
  [["roles", "show", "a", "b"], /'flow roles show' does not take 'b'/],
  [["roles", "allow", "viewer"], /'flow roles allow' needs <pattern>…/],
  [["roles", "allow", "viewer", "etl/**"], /needs at least one of --execute, --view and --modify/],
  [["roles", "give", "viewer"], /'flow roles give' needs <permission>…/],
  [
    ["roles", "deny", "viewer", "a", "--view"],
    /'flow roles deny' does not take --view; it goes with 'flow roles allow'/,
  ],
  [["roles", "show", "viewer", "--description", "x"], /does not take --description; it goes with 'flow roles create'/],
  [["roles", "show", "nobody"], /There is no role 'nobody'/],
  [["roles", "create", "No Role"], /must be of small letters, digits/],
  [["roles", "disallow", "viewer", "999999999"], /has no permission 999999999/],
] as const) {
  test(`flow ${args.join(" ")} is refused with a helpful message`, async (t) => {
    const { run } = await setup(t);
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, said);
  });
}
