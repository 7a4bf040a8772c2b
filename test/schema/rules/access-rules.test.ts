import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  decideAccess,
  decideUserAccess,
  matchesPattern,
  type PlaybookPermission,
  patternRegex,
} from "../../../src/schema/rules/access-rules.ts";

function row(more: Partial<PlaybookPermission>): PlaybookPermission {
  return {
    permissionId: "1",
    role: "developer",
    playbookPath: null,
    allowPattern: null,
    denyPattern: null,
    canExecute: true,
    canView: true,
    canModify: false,
    ...more,
  };
}

for (const [pattern, fits, fails] of [
  ["team/report", ["team/report"], ["team/report/", "team/reports", "TEAM/report", "x/team/report", ""]],
  ["team/*", ["team/a", "team/", "team/a.b"], ["team", "team/a/b", "steam/a"]],
  ["team/**", ["team/a", "team/a/b", "team/"], ["team", "other/team/a"]],
  ["team/%", ["team/a", "team/a/b"], ["team"]],
  ["*", ["a", ""], ["a/b"]],
  ["**", ["a", "a/b/c", ""], []],
  ["a/*/c", ["a/b/c", "a//c"], ["a/b/d", "a/b/x/c"]],
  ["a/**/c", ["a/b/c", "a/b/x/c"], ["a/c"]],
  ["a.b", ["a.b"], ["aXb"]],
  ["a[0-9]+", ["a[0-9]+"], ["a1"]],
  ["", [""], ["a"]],
] as const) {
  test(`the pattern '${pattern}' fits whole paths`, () => {
    for (const path of fits) assert.ok(matchesPattern(pattern, path), path);
    for (const path of fails) assert.ok(!matchesPattern(pattern, path), path);
  });
}

test("a pattern of many wildcards is answered at once, whatever the path", () => {
  const began = performance.now();
  assert.equal(matchesPattern("**a".repeat(100), `${"a".repeat(500)}b`), false);
  assert.ok(performance.now() - began < 5_000);
});

test("lists are filtered by the same rule: the regular expression and the match agree", () => {
  const text = fc.stringMatching(/^[ab/.*%\\+é]{0,8}$/);
  fc.assert(
    fc.property(text, text, (pattern, path) => {
      assert.equal(new RegExp(patternRegex(pattern), "s").test(path), matchesPattern(pattern, path));
    }),
  );
});

test("a row allows by its exact path or its pattern, and only what its flags give", () => {
  const rows = [row({ playbookPath: "a/b" }), row({ allowPattern: "c/**", canExecute: false, canModify: true })];
  assert.equal(decideAccess(rows, "execute", "a/b").allowed, true);
  assert.equal(decideAccess(rows, "modify", "a/b").allowed, false);
  assert.equal(decideAccess(rows, "execute", "c/d").allowed, false);
  assert.equal(decideAccess(rows, "modify", "c/d").allowed, true);
  assert.equal(decideAccess(rows, "view", "c").allowed, false);
});

test("a deny takes paths out of its own row, and out of no other", () => {
  const denying = row({ allowPattern: "**", denyPattern: "secret/**" });
  assert.deepEqual(decideAccess([denying], "view", "secret/x"), {
    allowed: false,
    rule: "no role: secret/x is among the paths that deny_pattern takes out",
  });
  const other = row({ permissionId: "2", role: "admin", allowPattern: "secret/*" });
  assert.deepEqual(decideAccess([denying, other], "view", "secret/x"), {
    allowed: true,
    rule: "role admin, permission 2",
  });
});

test("a deny binds the exact path of its row too", () => {
  assert.equal(decideAccess([row({ playbookPath: "a/b", denyPattern: "a/*" })], "view", "a/b").allowed, false);
});

test("nothing is allowed by default, and the reason is given", () => {
  assert.deepEqual(decideAccess([], "view", "a"), { allowed: false, rule: "no role: nothing allows a" });
  assert.equal(
    decideAccess([row({ playbookPath: "a", canModify: false })], "modify", "a").rule,
    "no role: what allows a does not allow to modify it",
  );
});

for (const [path, permissions, execute, view] of [
  ["api_integration/idp/setup_admin_permissions", [], false, true],
  ["api_integration/idp/setup_admin_permissions", ["view_audit", "view_operations"], false, true],
  ["api_integration/idp/setup_admin_permissions", ["manage_users"], true, true],
  ["system/purge", [], false, true],
  ["api_integration/idp/setup_admin_permissions", ["manage_credentials"], false, true],
  ["system/purge", ["manage_credentials", "view_audit"], false, true],
  ["system/purge", ["manage_roles"], true, true],
  ["systems/purge", [], true, true],
  ["api_integrations/x", [], true, true],
] as const) {
  test(`'${path}' with ${permissions.join(", ") || "no permission"}, and rows on everything`, () => {
    const user = { playbooks: [row({ allowPattern: "**", canModify: true })], permissions };
    assert.equal(decideUserAccess(user, "execute", path).allowed, execute);
    assert.equal(decideUserAccess(user, "modify", path).allowed, execute);
    assert.equal(decideUserAccess(user, "view", path).allowed, view);
    assert.equal(decideUserAccess({ ...user, playbooks: [] }, "execute", path).allowed, false);
  });
}
