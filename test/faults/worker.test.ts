import assert from "node:assert/strict";
import { test } from "node:test";
import { PARENT_DONE, WORK_DONE } from "./support/playbooks.ts";
import { LONG, openStand, ownedByFile } from "./support/stand.ts";
import { until } from "./support/until.ts";

const call = (name: string) => `{kind: http, method: POST, url: "{{ workload.effects }}/{{ execution_id }}/${name}"}`;
const TWO_TASKS = `apiVersion: flow/v2
kind: Playbook
metadata: {name: two, path: two}
workload: {effects: ""}
workflow:
  - step: start
    tool: [{one: ${call("one")}}, {two: ${call("two")}}]
`;

/* What happens to workers (the fault matrix in the design): killed, frozen, told to stop. */

const shared = await openStand(ownedByFile());
/** Of the tests whose leases are short. */
const server = await shared.server();

test("a worker is killed in a task: another gets its commands when the leases end, each with a higher attempt", async (t) => {
  const stand = shared.during(t);
  const client = await stand.client(server);
  const first = await stand.worker(server, "first");
  const held = stand.effects.hold("first");
  const ids = await stand.start(client, "work", 3);
  await until("each runs", () => ids.every((id) => stand.effects.counts.has(`${id}/first`)));
  await first.end("SIGKILL");
  await stand.worker(server, "second");
  for (const id of ids) {
    await until("the step says that a worker was lost", async () => {
      const { body } = await client.call("GET", `/api/executions/${id}`);
      return body.commands[0]?.["worker"] === "second" && (body.steps[0]?.attempts ?? 0) > 1;
    });
  }
  held.release();
  await stand.finish(client, ids, WORK_DONE);
});

test("a worker that is killed while it waits for a sub-playbook: the next one waits for the same execution", async (t) => {
  const stand = shared.during(t);
  const client = await stand.client(server);
  const first = await stand.worker(server, "first");
  const held = stand.effects.hold("last");
  const [id = ""] = await stand.start(client, "parent", 1);
  await held.arrived();
  const ended = first.end("SIGKILL");
  await stand.worker(server, "second");
  await held.arrived(2);
  held.release();
  await ended;
  await stand.finish(client, [id], PARENT_DONE);
  const { body } = await client.call("GET", `/api/executions?parent_execution_id=${id}`);
  const children = body.executions.map(({ execution_id }) => execution_id);
  assert.equal(children.length, 1);
  await stand.finish(client, children, WORK_DONE);
});

test("a worker that is frozen for longer than its lease: its late report is refused, and the work is neither lost nor duplicated in the log", async (t) => {
  const stand = shared.during(t);
  const client = await stand.client(server);
  const frozen = await stand.worker(server, "frozen");
  const held = stand.effects.hold("first");
  const ids = await stand.start(client, "work", 2);
  await until("each runs", () => ids.every((id) => stand.effects.counts.has(`${id}/first`)));
  frozen.signal("SIGSTOP");
  await stand.worker(server, "awake");
  for (const id of ids) {
    await until("another worker has it", async () => {
      const { body } = await client.call("GET", `/api/executions/${id}`);
      return body.commands[0]?.["worker"] === "awake";
    });
  }
  // What it would report now: its claims are not its own any more.
  for (const id of ids) {
    const { body } = await client.call("GET", `/api/executions/${id}`);
    const command_id = body.commands[0]?.command_id;
    const report = { execution_id: id, command_id, attempt: 1, event_type: "command.completed" };
    const refused = await until("the report is answered", async () => {
      const answer = await client.report("frozen", [report]);
      // A server that is too busy says so, and takes nothing.
      return answer.status !== 503 && answer;
    });
    assert.deepEqual([refused.status, refused.body.detail.events[0]?.reason], [409, "stale"]);
  }
  // The frozen worker's tasks are answered too: it has something to report when it is awake again.
  held.release();
  await Promise.all(ids.map((id) => client.watch(id)));
  frozen.signal("SIGCONT");
  await frozen.untilLog("a command is given up");
  await until("the thawed worker holds nothing", async () => (await running(client, "frozen")) === 0);
  await stand.finish(client, ids, WORK_DONE);
  // It is a worker like any other again.
  await stand.finish(client, await stand.start(client, "work", 2), WORK_DONE);
});

test("a worker that is frozen for longer than its lease starts nothing before its next heartbeat: another runs the next task", async (t) => {
  const stand = shared.during(t);
  const client = await stand.client(server);
  await client.register(TWO_TASKS);
  const frozen = await stand.worker(server, "frozen");
  const held = stand.effects.hold("one");
  const [id = ""] = await stand.start(client, "two", 1);
  await held.arrived();
  frozen.signal("SIGSTOP");
  await stand.worker(server, "awake");
  await held.arrived(2);
  // Both have their answers: one goes on, the other finds its answer when it wakes.
  held.release();
  const run = await client.watch(id);
  assert.equal(stand.effects.counts.get(`${id}/two`), 1);
  frozen.signal("SIGCONT");
  await frozen.untilLog("a command is given up");
  assert.deepEqual(
    ["one", "two"].map((name) => stand.effects.counts.get(`${id}/${name}`)),
    [2, 1],
  );
  assert.equal(run.executionId, id);
});

test("SIGTERM of a worker under load: it drains; no step fails or is repeated, and no effect is duplicated", async (t) => {
  const stand = await openStand(t, LONG);
  const server = await stand.server();
  const client = await stand.client(server);
  const first = await stand.worker(server, "first");
  const held = stand.effects.hold("fan");
  const ids = await stand.start(client, "work", 12);
  await held.arrived(8);
  const ended = first.end("SIGTERM");
  await first.untilLog('"stopping"');
  await stand.worker(server, "second");
  held.release();
  assert.equal((await ended).code, 0);
  assert.match(first.log(), /the worker has drained/);
  await stand.finish(client, ids, { ...WORK_DONE, once: true });
});

async function running(client: Awaited<ReturnType<Awaited<ReturnType<typeof openStand>>["client"]>>, name: string) {
  const { body } = await client.call("GET", "/api/worker/pools");
  return body.items.find((item) => item.name === name)?.running;
}
