import assert from "node:assert/strict";
import { before, test } from "node:test";
import { countEnded } from "../../../src/services/statistics/count-executions.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";
import { openOperatedApi } from "../operated-api.ts";

/* `flow stats` against a server. */

const { api, commands } = await openOperatedApi();
const work = workWith(api);
before(() => work.register("etl/load", ONE_STEP));

test("before anything has ended it says so", async (t) => {
  const { code, stdout } = await (await commands(t))("stats");
  assert.equal(code, 0);
  assert.match(
    stdout,
    /^all playbooks {2}\d{4}-\d\d-\d\d \d\d:00 – .* UTC\n0 executions ended, 0 failed, 0 cancelled\n$/,
  );
});

test("executions are shown as bars, with their playbooks and steps; of one playbook with its steps alone", async (t) => {
  const run = await commands(t);
  for (let count = 0; count < 2; count += 1) await work.runToEnd(await work.execute("etl/load"));
  await countEnded(api.database, 100);
  const { stdout } = await run("stats", "etl/*", "--since", "2h");
  assert.match(stdout, /\n2 executions ended, 0 failed, 0 cancelled, 100 % completed\n/);
  assert.match(stdout, /\nended {3} {1,2}█ {2}each bar 1h\n/);
  assert.match(stdout, /\nPLAYBOOK +ENDED .*\netl\/load +2 +0 +100 % /);
  assert.match(stdout, /\nSTEP +PLAYBOOK .*\nstart +etl\/load +2 +0 /);
  const one = await run("stats", "etl/load");
  assert.doesNotMatch(one.stdout, /PLAYBOOK/);
  assert.match(one.stdout, /\nSTEP +RUNS .*\nstart +2 +0 /);
  const { stdout: json } = await run("stats", "etl/load", "--since", "7d", "--bucket", "1d", "--json");
  const { bucket, total, buckets } = JSON.parse(json);
  assert.deepEqual([bucket, total.counts.COMPLETED, buckets.length], ["1d", 2, 8]);
});

test("many buckets share bars, and what cannot be is refused by its name", async (t) => {
  const run = await commands(t);
  const { stdout } = await run("stats", "--since", "24h", "--bucket", "5m");
  assert.match(stdout, /each bar 5 × 5m/);
  const tooMany = await run("stats", "--since", "30d", "--bucket", "1m");
  assert.equal(tooMany.code, 2);
  assert.match(tooMany.stderr, /43201 buckets of 1m/);
  const odd = await run("stats", "--since", "soon");
  assert.equal(odd.code, 2);
  assert.match(odd.stderr, /--since takes/);
});
