import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createElsewhere } from "../../../src/services/executions/follow-other-servers.ts";
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

/** The look of last resort of this server, with its number of statements. */
function lastLook() {
  let statements = 0;
  const database = {
    ...first.database,
    sql: new Proxy(first.database.sql, {
      apply(target, self, parameters) {
        statements += 1;
        return Reflect.apply(target, self, parameters);
      },
    }),
  };
  const { orchestrator } = first.service;
  const elsewhere = createElsewhere({ database, orchestrator, server: "here", isTold: () => true, now: Date.now });
  return { look: elsewhere.lookAtAll, statements: () => statements };
}

test("callers that wait here see an end that was written there without a notice: one statement looks for all of them", async () => {
  const { look, statements } = lastLook();
  const ids = await Promise.all(Array.from({ length: 5 }, () => here.execute("t")));
  const waiting = ids.map((id) => here.get(`/api/executions/${id}/result?wait_ms=30000`));
  const opened = await Promise.all(ids.map(async (id) => await first.open.request(`/api/executions/${id}/stream`)));
  const streams = opened.map((response) => readEvents(response).rest());
  await second.service.orchestrator.recovery.poll();
  for (const id of ids) await there.runToEnd(id);
  assert.deepEqual(new Set(first.service.orchestrator.watched()), new Set(ids));
  await look();
  assert.equal(statements(), 1);
  for (const { body } of await Promise.all(waiting)) assert.equal(body["status"], "COMPLETED");
  for (const events of await Promise.all(streams)) assert.equal(events.at(-1)?.event, "end");
  await look();
  assert.equal(statements(), 1, "Without watchers there is no statement");
});

test("a caller whose execution is deleted while it waits is told so", async () => {
  const { look } = lastLook();
  const id = await here.execute("t");
  const waiting = here.get(`/api/executions/${id}/result?wait_ms=30000`);
  while (first.service.orchestrator.watched().length === 0) await new Promise((resolve) => setImmediate(resolve));
  await second.service.orchestrator.recovery.poll();
  await there.runToEnd(id);
  assert.equal((await there.send("DELETE", `/api/executions/${id}`)).status, 200);
  await look();
  assert.equal((await waiting).status, 404);
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
