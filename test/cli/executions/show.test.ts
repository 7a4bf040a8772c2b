import assert from "node:assert/strict";
import { before, test } from "node:test";
import { TWO_STEPS, workWith } from "../../support/service/api-work.ts";
import { openOperatedApi } from "../operated-api.ts";

/* `flow show` against a server. */

const { api, commands } = await openOperatedApi();
const work = workWith(api);
before(() => work.register("etl/load", TWO_STEPS));

test("an execution is shown as it was after an event, and as it is without one", async (t) => {
  const run = await commands(t);
  const id = await work.execute("etl/load");
  const { body } = await work.get(`/api/executions/${id}`);
  await work.runToEnd(id);
  const at = String(body["last_event_id"]);
  const { code, stdout } = await run("show", id, "--at", at);
  assert.equal(code, 0);
  assert.match(stdout, /^etl\/load version 1 {2}RUNNING \S+ after its start, 0%\n/);
  assert.match(stdout, new RegExp(`execution ${id} after event ${at}, \\d{4}-`));
  assert.match(stdout, /now\n {2}start {2}waits for a worker/);
  const json = JSON.parse((await run("show", id, "--at", at, "--json")).stdout);
  assert.deepEqual([json.event_id, json.status, json.commands.length], [Number(at), "RUNNING", 1]);
  assert.match((await run("show", id)).stdout, /COMPLETED .* after its start, 100%/);
});

test("an event that it does not have is an error that says where they are", async (t) => {
  const run = await commands(t);
  const id = await work.execute("etl/load");
  const { code, stderr } = await run("show", id, "--at", "1");
  assert.equal(code, 2);
  assert.match(stderr, new RegExp(`Event 1 is not in the log of execution ${id}`));
  assert.equal((await run("show", id, "--at", "x")).code, 2);
});
