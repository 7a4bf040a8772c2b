import assert from "node:assert/strict";
import { test } from "node:test";
import { openOperatedApi } from "../operated-api.ts";

const { commands } = await openOperatedApi();

test("a pool is made, listed, given another token, and revoked; the token stands alone on standard output", async (t) => {
  const run = await commands(t);
  const made = await run(
    "pools",
    "create",
    "team",
    "--paths",
    "team/**",
    "--labels",
    "zone=a",
    "--labels",
    "gpu=yes=2",
  );
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /^flowpool_[\w-]{43}\n$/);
  assert.match(
    made.stderr,
    /^The token of pool 'team', for FLOW_WORKER_TOKEN of its workers\. It is shown this once:\n$/,
  );
  const list = await run("pools");
  assert.match(list.stdout, /^NAME +PATHS +LABELS +CREATED +TOKEN\nteam +team\/\*\* +gpu=yes=2,zone=a +\S+ +first\n$/);
  assert.match(list.stderr, /^1 pool at http/);
  const rotated = await run("pools", "rotate", "team", "--json");
  const { token, name } = JSON.parse(rotated.stdout) as { token: string; name: string };
  assert.deepEqual([rotated.code, name, rotated.stderr], [0, "team", ""]);
  assert.notEqual(`${token}\n`, made.stdout);
  const revoked = await run("pools", "revoke", "team");
  assert.deepEqual([revoked.code, revoked.stdout], [0, "The token of pool 'team' is refused from now on\n"]);
  const { items } = JSON.parse((await run("pools", "list", "--json")).stdout) as { items: { revoked_at: unknown }[] };
  assert.equal(typeof items[0]?.revoked_at, "string");
});

test("what is missing, taken or unknown is refused with what to do", async (t) => {
  const run = await commands(t);
  const pathless = await run("pools", "create", "none");
  assert.deepEqual([pathless.code, /needs the paths that it runs/.test(pathless.stderr)], [2, true]);
  const label = await run("pools", "create", "none", "--paths", "a/**", "--labels", "zone");
  assert.deepEqual([label.code, /--labels takes KEY=VALUE, got 'zone'/.test(label.stderr)], [2, true]);
  assert.equal((await run("pools", "create", "twice", "--paths", "b/**")).code, 0);
  const twice = await run("pools", "create", "twice", "--paths", "b/**");
  assert.deepEqual([twice.code === 0, /Revoke it first, or rotate its token/.test(twice.stderr)], [false, true]);
  const unknown = await run("pools", "rotate", "nowhere");
  assert.deepEqual([unknown.code === 0, /There is no pool 'nowhere'/.test(unknown.stderr)], [false, true]);
});
