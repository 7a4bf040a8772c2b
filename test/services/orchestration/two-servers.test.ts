import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertCaused } from "../../support/engine/event-causes.ts";
import { readEvents } from "../../support/servers/sse.ts";
import { type Body, buildApi, openApi } from "../../support/service/api.ts";
import { TWO_STEPS, workWith } from "../../support/service/api-work.ts";

/* Two servers of one database that hear nothing of each other: what one did, the other finds in the database. */

const first = await openApi();
const second = await buildApi(first.database);
after(() => second.service.orchestrator.close());
const here = workWith(first);
const there = workWith(second);

before(() => here.register("t", TWO_STEPS));

/** Starts here, so that its state is in memory here, and lets the other server do all the rest. */
async function doneElsewhere(): Promise<string> {
  const id = await here.execute("t");
  assert.equal((await here.get(`/api/executions/${id}`)).body["status"], "RUNNING");
  await second.service.orchestrator.recovery.poll();
  assert.equal((await there.runToEnd(id))["status"], "COMPLETED");
  return id;
}

test("the detail comes from the database, not from this server's memory", async () => {
  const id = await doneElsewhere();
  const { body } = await here.get(`/api/executions/${id}`);
  assert.equal(body["status"], "COMPLETED");
  assert.deepEqual(
    (body["steps"] as Body[]).map(({ status }) => status),
    ["COMPLETED", "COMPLETED"],
  );
});

test("events decided there about work that began here name their cause too", async () => {
  const id = await doneElsewhere();
  assertCaused((await there.get(`/api/executions/${id}/events`)).body["events"] as Body[]);
});

test("an older state in this server's memory does not delay the result, with or without waiting", async () => {
  const id = await doneElsewhere();
  const { body } = await here.get(`/api/executions/${id}/result`);
  assert.deepEqual([body["status"], body["result"]], ["COMPLETED", { step: "end" }]);
});

test("a caller that waits here sees an end that was written there", async () => {
  const id = await here.execute("t");
  const waiting = here.get(`/api/executions/${id}/result?wait_ms=30000`);
  const stream = readEvents(await first.open.request(`/api/executions/${id}/stream`)).rest();
  await second.service.orchestrator.recovery.poll();
  await there.runToEnd(id);
  assert.equal((await waiting).body["status"], "COMPLETED");
  assert.equal((await stream).at(-1)?.event, "end");
});

test("an execution that runs there can be cancelled here", async () => {
  const id = await here.execute("t");
  await second.service.orchestrator.recovery.poll();
  const [command] = await there.claim("w");
  assert.equal(command?.execution_id, id);
  const { body } = await here.post(`/api/executions/${id}/cancel`);
  assert.equal(body["status"], "CANCELLED");
  assert.ok(command !== undefined);
  assert.equal((await there.finish("w", command)).status, 409);
});
