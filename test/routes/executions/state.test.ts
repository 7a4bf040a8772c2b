import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi } from "../../support/service/api.ts";
import { TWO_STEPS, workWith } from "../../support/service/api-work.ts";

/* What an execution was after one of its events. */

const api = await openApi();
const work = workWith(api);
const SETS = `  - step: start
    tool: { kind: noop }
    set: { ctx.found: "{{ workload.who }}" }
    next: { arcs: [{ step: last }] }
  - { step: last, tool: { kind: noop } }
`;
before(async () => {
  await work.register("team/two", TWO_STEPS);
});

const stateOf = (id: string, at?: number | string) =>
  work.get(`/api/executions/${id}/state${at === undefined ? "" : `?at=${at}`}`);
const eventsOf = async (id: string) => (await work.get(`/api/executions/${id}/events`)).body["events"] as Body[];
const statuses = (body: Body) => (body["steps"] as Body[]).map(({ name, status }) => `${name} ${status}`);

test("after each event it is what its detail was then", async () => {
  const id = await work.execute("team/two");
  const seen = new Map<number, Body>();
  const look = async () => {
    const { body } = await work.get(`/api/executions/${id}`);
    seen.set(body["last_event_id"] as number, body);
    return body;
  };
  for (let body = await look(); body["ended_at"] === null; body = await look()) {
    for (const command of await work.claim("w", 1)) {
      await look();
      await work.finish("w", command);
    }
  }
  assert.ok(seen.size >= 5);
  for (const [eventId, then] of seen) {
    const { status, body } = await stateOf(id, eventId);
    assert.equal(status, 200);
    assert.equal(body["event_id"], eventId);
    for (const key of ["status", "progress", "steps", "arcs", "workload", "commands", "error", "next_retry"] as const) {
      assert.deepEqual(body[key], then[key], `${key} after ${eventId}`);
    }
    assert.equal(body["ended_at"] === null, then["ended_at"] === null);
  }
});

test("after the first event no step has run; without an event it is the newest state", async () => {
  const id = await work.execute("team/two");
  await work.runToEnd(id);
  const events = await eventsOf(id);
  const first = (await stateOf(id, events[0]?.["event_id"] as number)).body;
  assert.deepEqual([first["status"], first["execution_id"], first["at"]], ["RUNNING", id, events[0]?.["created_at"]]);
  assert.ok(statuses(first).every((one) => one.endsWith("PENDING")));
  const newest = (await stateOf(id)).body;
  assert.equal(newest["event_id"], events.at(-1)?.["event_id"]);
  assert.deepEqual([newest["status"], newest["commands"], newest["waiting_for"]], ["COMPLETED", [], []]);
});

test("variables are those that were set by then", async () => {
  await work.register("team/sets", SETS);
  const id = await work.execute("team/sets", { workload: { who: "me" } });
  await work.runToEnd(id);
  const events = await eventsOf(id);
  const ended = events.find(({ event_type, node_id }) => event_type === "step.completed" && node_id === "start");
  const before = (await stateOf(id, events[1]?.["event_id"] as number)).body;
  const after = (await stateOf(id, ended?.["event_id"] as number)).body;
  assert.deepEqual([before["variables"], after["variables"]], [{}, { found: "me" }]);
});

test("an event of another execution, one that never was and an unknown execution are not found; a wrong id is refused", async () => {
  const [id, other] = [await work.execute("team/two"), await work.execute("team/two")];
  const [foreign] = await eventsOf(other);
  for (const at of [foreign?.["event_id"] as number, Number(id), Number.MAX_SAFE_INTEGER, 1]) {
    const { status, body } = await stateOf(id, at);
    assert.deepEqual([status, body["code"]], [404, "NOT_FOUND"], String(at));
    assert.match(JSON.stringify(body), new RegExp(`"Event ${at} is not in the log of execution ${id}`));
  }
  assert.equal((await stateOf("7", 1)).status, 404);
  for (const at of ["x", "-1", "1.5", ""]) assert.equal((await stateOf(id, at)).status, 422, at);
});
