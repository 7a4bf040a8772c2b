import assert from "node:assert/strict";
import { before, test } from "node:test";
import { TWO_STEPS, workWith } from "../../support/service/api-work.ts";
import { openOperatedApi } from "../operated-api.ts";

/* `flow skip` against a server. */

const { api, commands } = await openOperatedApi();
const work = workWith(api);
const LOOP = TWO_STEPS.replace("tool:", "loop: { in: [1, 2], iterator: x, spec: { mode: parallel } }\n    tool:");
before(async () => {
  await work.register("etl/load", TWO_STEPS);
  await work.register("etl/each", LOOP);
});

const WHY = ["--reason", "stuck"];

test("a step is skipped, completed or failed, and the command says what became of it", async (t) => {
  const run = await commands(t);
  const id = await work.execute("etl/load");
  const later = await run("skip", id, "end", ...WHY);
  assert.deepEqual(
    [later.code, later.stdout],
    [0, `Step 'end' of execution ${id} was skipped: it ends so when it is reached\n`],
  );
  const { stdout } = await run("skip", id, "start", "--complete", '{"rows": 0}', ...WHY);
  assert.equal(stdout, `Step 'start' of execution ${id} was completed\n`);
  const { body } = await work.get(`/api/executions/${id}`);
  assert.deepEqual([body["status"], body["result"]], ["COMPLETED", { rows: 0 }]);
  const ended = await run("skip", id, "start", ...WHY);
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /Step 'start' of execution \d+ was not changed: the execution has ended \(COMPLETED\)/);
});

test("a step of a paused execution is said to end with the resumption, not to run on", async (t) => {
  const run = await commands(t);
  const id = await work.execute("etl/load");
  await run("pause", id);
  const { stdout } = await run("skip", id, "start", ...WHY);
  assert.equal(stdout, `Step 'start' of execution ${id} was skipped: it ends so when the execution is resumed\n`);
  await run("cancel", id);
});

test("an iteration, as JSON; one that the loop does not have", async (t) => {
  const run = await commands(t);
  const id = await work.execute("etl/each");
  const { stdout } = await run("skip", id, "start", "--iteration", "1", "--fail", "BAD_ROW", "--json", ...WHY);
  assert.deepEqual(JSON.parse(stdout), { execution_id: id, step: "start", status: "RUNNING" });
  const missing = await run("skip", id, "start", "--iteration", "2", ...WHY);
  assert.match(missing.stderr, /the loop has 2 iterations/);
  assert.match(
    (await run("skip", id, "start", "--iteration", "0", ...WHY)).stdout,
    /^Iteration 0 of step 'start' of execution \d+ was skipped\n$/,
  );
});

test("a dry run says what would happen and does nothing", async (t) => {
  const run = await commands(t);
  const id = await work.execute("etl/load");
  const dry = await run("skip", id, "start", "--dry-run", ...WHY);
  assert.equal(dry.stdout, "Step 'start' (RUNNING): it would be skipped\n  1 command would be stopped\n");
  assert.match((await run("skip", id, "end", "--dry-run", ...WHY)).stdout, /when it is reached/);
  assert.match((await run("skip", id, "nowhere", "--dry-run", ...WHY)).stderr, /has no step 'nowhere'/);
  assert.equal((await work.get(`/api/executions/${id}`)).body["status"], "RUNNING");
});

test("without a reason, with two ends, with what is no JSON or no number: an error that says what is missing", async (t) => {
  const run = await commands(t);
  const cases: [string[], RegExp][] = [
    [[], /--reason/],
    [["--complete", "1", "--fail", "X", ...WHY], /exclude each other/],
    [["--complete", "{", ...WHY], /--complete takes JSON/],
    [["--iteration", "-1", ...WHY], /--iteration/],
  ];
  for (const [words, expected] of cases) {
    const { code, stderr } = await run("skip", "7211", "start", ...words);
    assert.equal(code, 2, stderr);
    assert.match(stderr, expected);
  }
});
