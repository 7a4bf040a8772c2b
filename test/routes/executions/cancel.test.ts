import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";

const api = await openApi();
const work = workWith(api);

before(() => work.register("c", ONE_STEP));

async function statusOf(id: string): Promise<unknown> {
  return (await work.get(`/api/executions/${id}`)).body["status"];
}

const child = (parent: string) => work.execute("c", { parent_execution_id: parent, parent_step: "start" });

test("cancelling ends the execution and its commands, and says why", async () => {
  const id = await work.execute("c");
  const { status, body } = await work.post(`/api/executions/${id}/cancel`, { reason: "not needed" });
  assert.equal(status, 200);
  assert.deepEqual(body, { execution_id: id, status: "CANCELLED", children_cancelled: 0 });
  const detail = (await work.get(`/api/executions/${id}`)).body;
  assert.equal(detail["status"], "CANCELLED");
  const rows = await api.database.sql`select from flow.command where execution_id = ${id}`;
  assert.equal(rows.length, 0, "no worker has it");
  const { body: events } = await work.get(`/api/executions/${id}/events?event_type=execution.cancelled`);
  assert.match(JSON.stringify(events), /not needed/);
});

test("a worker's report after the cancellation is refused, and changes nothing", async () => {
  const id = await work.execute("c");
  const command = (await work.claim("w", 10)).find(({ execution_id }) => execution_id === id);
  assert.ok(command !== undefined);
  await work.post(`/api/executions/${id}/cancel`);
  const rows = await api.database.sql`select status from flow.command where execution_id = ${id}`;
  assert.deepEqual([...rows], [{ status: "CANCELLED" }], "its worker is to be told");
  const { status, body } = await work.finish("w", command);
  assert.equal(status, 409);
  assert.equal(((body["detail"] as Body)["events"] as Body[])[0]?.["reason"], "late");
  assert.equal(await statusOf(id), "CANCELLED");
});

test("children follow, and theirs, also below one that has ended", async () => {
  const root = await work.execute("c");
  const first = await child(root);
  const second = await child(root);
  const below = await child(first);
  const ended = (await work.claim("w", 10)).find(({ execution_id }) => execution_id === first);
  assert.ok(ended !== undefined);
  await work.finish("w", ended);
  assert.equal((await work.get(`/api/executions/${first}/result?wait_ms=5000`)).body["status"], "COMPLETED");
  const { body } = await work.post(`/api/executions/${root}/cancel`);
  assert.equal(body["children_cancelled"], 2);
  assert.deepEqual(await Promise.all([root, first, second, below].map(statusOf)), [
    "CANCELLED",
    "COMPLETED",
    "CANCELLED",
    "CANCELLED",
  ]);
});

test("without cascade the children go on", async () => {
  const root = await work.execute("c");
  const below = await child(root);
  await work.post(`/api/executions/${root}/cancel`, { cascade: false });
  assert.deepEqual([await statusOf(root), await statusOf(below)], ["CANCELLED", "RUNNING"]);
  // Once more, with all of them: what the first call left is found.
  const { body } = await work.post(`/api/executions/${root}/cancel`);
  assert.deepEqual([body["status"], body["children_cancelled"]], ["CANCELLED", 1]);
  assert.equal(await statusOf(below), "CANCELLED");
});

test("more children than are looked up at a time are all found", async () => {
  const root = await work.execute("c");
  const children = await Promise.all(Array.from({ length: 230 }, () => child(root)));
  const { body } = await work.post(`/api/executions/${root}/cancel`);
  assert.equal(body["children_cancelled"], children.length);
});

test("one that has ended keeps its status: the answer says which", async () => {
  const id = await work.execute("c");
  await work.runToEnd(id);
  const { status, body } = await work.post(`/api/executions/${id}/cancel`);
  assert.deepEqual([status, body["status"]], [200, "COMPLETED"]);
  const events = (await work.get(`/api/executions/${id}/events?event_type=execution.cancelled`)).body["events"];
  assert.deepEqual(events, []);
});

test("cancelling twice, at the same time too, is one cancellation", async () => {
  const id = await work.execute("c");
  const answers = await Promise.all([1, 2, 3].map(() => work.post(`/api/executions/${id}/cancel`)));
  for (const { body } of answers) assert.equal(body["status"], "CANCELLED");
  const { body } = await work.get(`/api/executions/${id}/events?event_type=execution.cancelled`);
  assert.equal((body["events"] as unknown[]).length, 1);
});

test("a reason that is too long is 422 and cancels nothing", async () => {
  const id = await work.execute("c");
  assert.equal((await work.post(`/api/executions/${id}/cancel`, { reason: "x".repeat(1_025) })).status, 422);
  assert.equal((await work.post(`/api/executions/${id}/cancel`, { cascade: "yes" })).status, 422);
  assert.equal(await statusOf(id), "RUNNING");
});

test("a child that starts at the moment in which its parent is cancelled is cancelled too", async () => {
  const root = await work.execute("c");
  const { orchestrator } = api.service;
  const { start } = orchestrator;
  // Between the look at the parent and the start: the cancellation finds no child.
  orchestrator.start = async (input) => {
    orchestrator.start = start;
    assert.equal((await work.post(`/api/executions/${root}/cancel`)).body["children_cancelled"], 0);
    return await start(input);
  };
  assert.equal(await statusOf(await child(root)), "CANCELLED");
});

test("the log and the API of a cancelled run agree: a step is skipped before it began, failed afterwards", async () => {
  await work.register(
    "told-alike",
    `  - step: start
    tool: { kind: noop }
    next: { arcs: [{ step: ran }, { step: queued }, { step: each }] }
  - { step: ran, tool: { kind: noop } }
  - { step: queued, tool: { kind: noop } }
  - { step: each, loop: { in: [1, 2], iterator: one }, tool: { kind: noop } }
`,
  );
  const id = await work.execute("told-alike");
  // Other tests leave commands behind.
  const claimOwn = async () => {
    for (;;) {
      const [command] = await work.claim("wt");
      if (command?.execution_id === id) return command;
    }
  };
  await work.finish("wt", await claimOwn());
  await claimOwn();
  await work.post(`/api/executions/${id}/cancel`);
  const { body } = await work.get(`/api/executions/${id}`);
  const told = Object.fromEntries((body["steps"] as Body[]).map(({ name, status }) => [name, status]));
  const { body: log } = await work.get(`/api/executions/${id}/events?limit=500`);
  const words: Record<string, string> = {
    "step.completed": "COMPLETED",
    "step.failed": "FAILED",
    "step.skipped": "SKIPPED",
  };
  const ends = (log["events"] as Body[]).flatMap(({ event_type, node_name }) => {
    const word = words[String(event_type)];
    return word === undefined ? [] : [[String(node_name), word]];
  });
  assert.deepEqual(Object.fromEntries(ends), told);
  assert.deepEqual(Object.values(told).toSorted(), ["COMPLETED", "FAILED", "SKIPPED", "SKIPPED"]);
  const errors = (body["steps"] as Body[]).filter(({ error }) => error !== undefined && error !== null);
  assert.deepEqual(
    errors.map(({ status }) => status),
    ["FAILED"],
  );
});
