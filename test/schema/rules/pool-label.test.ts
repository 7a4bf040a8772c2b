import assert from "node:assert/strict";
import { test } from "node:test";
import { isOfOtherPool, poolWork, SERVER_POOL, servesPath } from "../../../src/schema/rules/pool-label.ts";

test("a pool has the system playbooks whose folder it names, and no others", () => {
  for (const [pattern, path, expected] of [
    ["team/**", "team/one", true],
    ["**", "team/one", true],
    ["**", "system/one", false],
    ["**", "api_integration/idp/login", false],
    ["*/one", "system/one", false],
    ["s*/**", "system/one", false],
    ["system/**", "system/one", true],
    ["system/**", "system", false],
    ["api_integration/idp/*", "api_integration/idp/login", true],
    ["api_integration/**", "system/one", false],
    ["**", "systems/one", true],
  ] as const) {
    assert.equal(servesPath([pattern], path), expected, `${pattern} ${path}`);
  }
});

test("who takes which commands: the shared token, a pool, the servers themselves; with tokens and without", () => {
  const has = (name: string) => name === "team";
  const own = { name: SERVER_POOL, paths: ["api_integration/**", "system/**"] };
  const team = { name: "team", paths: ["team/**"] };
  const labels = [undefined, "team", "gone", SERVER_POOL];
  const paths = ["other/one", "team/one", "system/one", "api_integration/idp/login"];
  const taken = (pool: typeof own | undefined, hasOwn: boolean) => {
    const { isOfPool, runsPath } = poolWork(pool, { has, hasOwn });
    return [labels.map(isOfPool), paths.map(runsPath)];
  };
  const [yes, no] = [true, false];
  assert.deepEqual(taken(undefined, true), [
    [yes, no, yes, no],
    [yes, yes, no, no],
  ]);
  assert.deepEqual(taken(undefined, false), [
    [yes, no, yes, yes],
    [yes, yes, yes, yes],
  ]);
  assert.deepEqual(taken(team, true), [
    [no, yes, no, no],
    [no, yes, no, no],
  ]);
  assert.deepEqual(taken(own, true), [
    [no, no, yes, yes],
    [no, no, yes, yes],
  ]);
});

test("a worker of a pool takes no command of another one, nor of none", () => {
  assert.equal(isOfOtherPool({ "flow.pool": "a" }, { "flow.pool": "a" }), false);
  assert.equal(isOfOtherPool({ "flow.pool": "a" }, { "flow.pool": "b" }), true);
  assert.equal(isOfOtherPool({ "flow.pool": "a" }, null), true);
  assert.equal(isOfOtherPool({ zone: "a" }, { "flow.pool": "a" }), false, "its labels say that");
});
