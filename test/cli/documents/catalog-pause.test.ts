import assert from "node:assert/strict";
import { before, test } from "node:test";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";
import { openOperatedApi } from "../operated-api.ts";

/* `flow catalog pause` and `flow catalog resume`. */

const { api, commands } = await openOperatedApi();
const work = workWith(api);
before(() => work.register("etl/load", ONE_STEP));

test("a paused path says so, its starts say why, and it is started again after resume", async (t) => {
  const run = await commands(t);
  const paused = await run("catalog", "pause", "etl/load", "--reason", "the warehouse is down");
  assert.equal(paused.code, 0, paused.stderr);
  assert.match(
    paused.stdout,
    /^etl\/load is paused since \S+: the warehouse is down\nRunning executions continue\. Next: flow catalog resume etl\/load\n$/,
  );
  assert.match((await run("catalog", "list", "--prefix", "etl/")).stdout, /PAUSED\netl\/load .* since \S+\n/);
  const refused = await run("run", "etl/load");
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /'etl\/load' was not started: operator paused it at .*: the warehouse is down/);
  const resumed = await run("catalog", "resume", "etl/load");
  assert.deepEqual([resumed.code, resumed.stdout], [0, "etl/load is started again\n"]);
  assert.doesNotMatch((await run("catalog")).stdout, /PAUSED/);
  const { stdout } = await run("catalog", "pause", "etl/load", "--json");
  assert.equal(JSON.parse(stdout).paused.by, "operator");
  await run("catalog", "resume", "etl/load");
  assert.notEqual((await run("catalog", "pause", "no/such")).code, 0);
});
