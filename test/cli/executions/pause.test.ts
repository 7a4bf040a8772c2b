import assert from "node:assert/strict";
import { before, test } from "node:test";
import { TWO_STEPS, workWith } from "../../support/service/api-work.ts";
import { openOperatedApi } from "../operated-api.ts";

/* `flow pause` and `flow resume` against a server, and what `flow status` says meanwhile. */

const { api, commands } = await openOperatedApi();
const work = workWith(api);
before(() => work.register("etl/load", TWO_STEPS));

test("pause says what goes on and what comes next; status says since when, by whom, why; resume ends it", async (t) => {
  const run = await commands(t);
  const id = await work.execute("etl/load");
  const paused = await run("pause", id, "--reason", "quota");
  assert.deepEqual(
    [paused.code, paused.stdout],
    [0, `Execution ${id} is PAUSED\nTasks that workers hold run to their end. Next: flow resume ${id}\n`],
  );
  const { stdout } = await run("status", id);
  assert.match(stdout, /PAUSED for .*\n.*\npaused \S+ ago by operator: quota\n {2}next {2}flow resume \d+\n/);
  assert.match(stdout, /start {2}waits for the resumption/);
  assert.match((await run("executions", "--status", "PAUSED")).stdout, new RegExp(id));
  const resumed = await run("resume", id);
  assert.deepEqual([resumed.code, resumed.stdout], [0, `Execution ${id} is RUNNING\n`]);
  assert.doesNotMatch((await run("status", id)).stdout, /paused/);
});

test("a dry run says what would happen and does nothing", async (t) => {
  const run = await commands(t);
  const id = await work.execute("etl/load");
  const command = (await work.claim("w", 100)).find(({ execution_id }) => execution_id === id);
  assert.ok(command);
  await work.execute("etl/load", { parent_execution_id: id, parent_step: "start" });
  const { stdout } = await run("pause", id, "--dry-run");
  assert.equal(
    stdout,
    `Execution ${id} is RUNNING: it would be paused, and 1 sub-playbook with it
  1 command of workers would go on
  0 waiting commands would not be claimed
`,
  );
  const alone = await run("pause", id, "--dry-run", "--no-cascade", "--json");
  const plan = { execution_id: id, status: "RUNNING", action: "pause", held: 1, waiting: 0, children: 0 };
  assert.deepEqual(JSON.parse(alone.stdout), plan);
  assert.match((await run("resume", id, "--dry-run")).stdout, /is RUNNING: nothing would change/);
  assert.equal((await work.get(`/api/executions/${id}`)).body["status"], "RUNNING");
});

test("children are counted, with --no-cascade they go on", async (t) => {
  const run = await commands(t);
  const id = await work.execute("etl/load");
  const child = await work.execute("etl/load", { parent_execution_id: id, parent_step: "start" });
  assert.match((await run("pause", id)).stdout, /is PAUSED, and 1 sub-playbook with it/);
  assert.match((await run("resume", id, "--no-cascade")).stdout, /is RUNNING\n/);
  assert.equal((await work.get(`/api/executions/${child}`)).body["status"], "PAUSED");
  assert.equal(JSON.parse((await run("resume", id, "--json")).stdout).children, 1);
});

test("one that has ended is an error that says so; one that is unknown too", async (t) => {
  const run = await commands(t);
  const id = await work.execute("etl/load");
  await work.runToEnd(id);
  const ended = await run("pause", id);
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, new RegExp(`Execution ${id} was not paused: it has ended \\(COMPLETED\\)`));
  const unknown = await run("resume", "1");
  assert.notEqual(unknown.code, 0);
});
