import assert from "node:assert/strict";
import { before, test } from "node:test";
import { assertCaused } from "../../support/engine/event-causes.ts";
import { type Body, openApi } from "../../support/service/api.ts";
import { ONE_STEP, TWO_STEPS, workWith } from "../../support/service/api-work.ts";

const api = await openApi();
const work = workWith(api);

before(async () => {
  await work.register("two", TWO_STEPS);
  await work.register("one", ONE_STEP);
  await work.register("listed", ONE_STEP);
});

const idsOf = (answer: Body) => (answer["executions"] as Body[]).map(({ execution_id }) => execution_id);

test("an execution is started, worked on over HTTP, and shown with its steps, inputs and result", async () => {
  const { body: started } = await work.post("/api/execute", { path: "two", workload: { who: "Ada" } });
  const { execution_id, catalog_id, ...rest } = started;
  assert.match(String(execution_id), /^\d+$/);
  assert.match(String(catalog_id), /^\d+$/);
  assert.deepEqual(rest, { status: "RUNNING", path: "two", version: 1 });
  const { body: running } = await work.get(`/api/executions/${execution_id}`);
  assert.deepEqual(
    (running["steps"] as Body[]).map(({ name, status }) => [name, status]),
    [
      ["start", "RUNNING"],
      ["end", "PENDING"],
    ],
  );
  assert.deepEqual([running["status"], running["ended_at"], running["duration_ms"]], ["RUNNING", null, null]);
  const ended = await work.runToEnd(String(execution_id));
  assert.equal(ended["status"], "COMPLETED");
  assert.equal(ended["progress"], 100);
  assert.deepEqual(ended["workload"], { who: "Ada" });
  assert.deepEqual(ended["result"], { step: "end" });
  assert.equal(ended["error"], null);
  assert.equal(typeof ended["duration_ms"], "number");
  assert.deepEqual(
    (ended["steps"] as Body[]).map(({ name, status, attempts, runs }) => [name, status, attempts, runs]),
    [
      ["start", "COMPLETED", 1, 1],
      ["end", "COMPLETED", 1, 1],
    ],
  );
});

test("a failed step is shown with its error, and so is the execution", async () => {
  const id = await work.execute("two");
  const [command] = await work.claim("w");
  assert.ok(command !== undefined);
  const { command_id, attempt, step: name } = command;
  const error = { kind: "server_error", code: "HTTP_500", message: "it broke", retryable: true };
  const failed = { command_id, attempt, step: name, event_type: "command.failed", error };
  assert.equal((await work.post("/api/events/batch", { worker: "w", events: [failed] })).status, 202);
  const { body: answer } = await work.get(`/api/executions/${id}/result?wait_ms=5000`);
  assert.deepEqual([answer["status"], answer["result"]], ["FAILED", null]);
  const { body } = await work.get(`/api/executions/${id}`);
  assert.equal((body["error"] as Body)["message"], "it broke");
  const [step = {}, unreached = {}] = body["steps"] as Body[];
  assert.equal((step["error"] as Body)["code"], "HTTP_500");
  assert.deepEqual([unreached["name"], unreached["status"], unreached["started_at"]], ["end", "SKIPPED", null]);
  assert.equal(body["progress"], 50, "how far it came");
});

test("executions are listed by the first digits of their ids", async () => {
  const [first, second] = [await work.execute("two"), await work.execute("two")];
  const listed = async (prefix: string) => idsOf((await work.get(`/api/executions?id_prefix=${prefix}`)).body);
  assert.deepEqual(await listed(first), [first]);
  assert.deepEqual(await listed(second), [second]);
  const both = await listed(first.slice(0, 5));
  assert.ok(both.includes(first) && both.includes(second));
  assert.deepEqual(await listed("1"), [], "ids of today begin with another digit");
  assert.equal((await work.get("/api/executions?id_prefix=0x1")).status, 422);
});

test("a request for changed steps gets the steps that a failed run did not reach, once", async () => {
  const id = await work.execute("two");
  const { body: before } = await work.get(`/api/executions/${id}`);
  await work.post(`/api/executions/${id}/cancel`);
  const { body: after } = await work.get(`/api/executions/${id}?steps_after=${before["last_event_id"]}`);
  const told = (body: Body) => (body["steps"] as Body[]).map(({ name, status }) => [name, status]);
  assert.deepEqual(told(after), [
    ["start", "SKIPPED"],
    ["end", "SKIPPED"],
  ]);
  const { body: later } = await work.get(`/api/executions/${id}?steps_after=${after["last_event_id"]}`);
  assert.deepEqual(told(later), []);
});

test("a list may be of several states at once, over all its pages", async () => {
  await work.register("states", ONE_STEP);
  const done = await work.execute("states");
  await work.runToEnd(done);
  const open = await work.execute("states");
  const stopped = await work.execute("states");
  await work.post(`/api/executions/${stopped}/cancel`);
  const listed = async (query: string) => idsOf((await work.get(`/api/executions?path=states&${query}`)).body);
  assert.deepEqual(await listed("status=running,completed"), [open, done]);
  assert.deepEqual(await listed("status=CANCELLED,RUNNING,CANCELLED"), [stopped, open]);
  assert.deepEqual(await listed("status=COMPLETED"), [done]);
  const first = (await work.get("/api/executions?path=states&status=COMPLETED,RUNNING,CANCELLED&limit=2")).body;
  assert.deepEqual(idsOf(first), [stopped, open]);
  assert.deepEqual(await listed(`status=COMPLETED,RUNNING,CANCELLED&limit=2&cursor=${first["next_cursor"]}`), [done]);
  for (const status of ["", "RUNNING,", "running,gone"]) {
    assert.equal((await work.get(`/api/executions?status=${status}`)).status, 422, status);
  }
  await work.post(`/api/executions/${open}/cancel`);
});

test("lists are newest first, in pages that neither repeat nor leave out, by path, status and time", async () => {
  const before = new Date().toISOString();
  const ids: string[] = [];
  for (let at = 0; at < 5; at += 1) ids.push(await work.execute("listed"));
  const [ended = ""] = ids;
  for (const command of await work.claim("lister", 5)) {
    if (command.execution_id === ended) await work.finish("lister", command);
  }
  await work.get(`/api/executions/${ended}/result?wait_ms=5000`);
  const seen: unknown[] = [];
  let path = "/api/executions?path=listed&limit=2";
  for (;;) {
    const { status, body } = await work.get(path);
    assert.equal(status, 200);
    seen.push(...idsOf(body));
    if (body["next_cursor"] === null) break;
    path = `/api/executions?path=listed&limit=2&cursor=${body["next_cursor"]}`;
  }
  assert.deepEqual(seen, ids.toReversed());
  assert.deepEqual(idsOf((await work.get("/api/executions?path=listed&status=completed")).body), [ended]);
  assert.equal(idsOf((await work.get("/api/executions?path=listed&status=RUNNING")).body).length, 4);
  assert.equal(idsOf((await work.get(`/api/executions?path=listed&since=${before}`)).body).length, 5);
  assert.deepEqual(idsOf((await work.get(`/api/executions?path=listed&until=${before}`)).body), []);
  assert.deepEqual(idsOf((await work.get("/api/executions?path=none")).body), []);
  assert.deepEqual(idsOf((await work.get("/api/executions?path_contains=ISTE")).body), ids.toReversed());
  assert.deepEqual(idsOf((await work.get("/api/executions?path_contains=iste&status=COMPLETED")).body), [ended]);
  assert.deepEqual(idsOf((await work.get("/api/executions?path_contains=none")).body), []);
  assert.equal((await work.get("/api/executions?path_contains=")).status, 422);
});

test("a list carries short results and leaves long ones to the execution itself", async () => {
  const id = await work.execute("one", { workload: { kind: "long" } });
  for (const command of await work.claim("w", 100)) await work.finish("w", command, "x".repeat(5_000));
  await work.get(`/api/executions/${id}/result?wait_ms=5000`);
  const { body } = await work.get("/api/executions?path=one&limit=1");
  const [item] = body["executions"] as Body[];
  assert.equal(item?.["execution_id"], id);
  assert.ok(!("result" in (item ?? {})));
  assert.equal(String((await work.get(`/api/executions/${id}`)).body["result"]).length, 5_000);
});

/** The log of an execution that has ended: the mark of its last batch is written after the end. */
async function wholeLog(id: string): Promise<Body[]> {
  for (;;) {
    const events = (await work.get(`/api/executions/${id}/events`)).body["events"] as Body[];
    const marked = (type: string) => events.filter(({ event_type }) => event_type === type).length;
    if (marked("batch.accepted") === marked("batch.completed")) return events;
  }
}

test("events are listed in order, in pages, of one type, and after a given one", async () => {
  const id = await work.execute("two");
  await work.runToEnd(id);
  const events = await wholeLog(id);
  const types = events.map(({ event_type }) => event_type);
  assert.equal(types[0], "playbook.initialized");
  for (const type of ["command.issued", "task.done", "step.completed", "workflow.completed", "playbook.completed"]) {
    assert.ok(types.includes(type), type);
  }
  const ids = events.map(({ event_id }) => Number(event_id));
  assert.deepEqual(
    ids,
    ids.toSorted((left, right) => left - right),
  );
  const paged: unknown[] = [];
  let cursor: unknown = "0";
  while (cursor !== null) {
    const page = (await work.get(`/api/executions/${id}/events?limit=3&cursor=${cursor}`)).body;
    paged.push(...(page["events"] as Body[]).map(({ event_id }) => event_id));
    cursor = page["next_cursor"];
  }
  assert.deepEqual(paged, ids);
  const after = await work.get(`/api/executions/${id}/events?after=${ids[2]}&limit=1`);
  assert.equal((after.body["events"] as Body[])[0]?.["event_id"], ids[3]);
  const done = (await work.get(`/api/executions/${id}/events?event_type=task.done`)).body["events"] as Body[];
  assert.deepEqual(
    done.map(({ event_type, node_id }) => [event_type, node_id]),
    [
      ["task.done", "start"],
      ["task.done", "end"],
    ],
  );
  const one = (await work.get(`/api/executions/${id}/events?event_type=task.done&limit=1`)).body;
  assert.equal((one["events"] as Body[]).length, 1);
  const two = (await work.get(`/api/executions/${id}/events?event_type=task.done&limit=1&cursor=${one["next_cursor"]}`))
    .body;
  assert.deepEqual([(two["events"] as Body[])[0]?.["node_id"], two["next_cursor"]], ["end", null]);
});

test("every event says which one it followed from", async () => {
  const id = await work.execute("two");
  await work.runToEnd(id);
  const { body } = await work.get(`/api/executions/${id}/events`);
  const events = body["events"] as Body[];
  assertCaused(events);
  const causeOf = (type: string) => {
    const event = events.findLast(({ event_type }) => event_type === type);
    return events.find(({ event_id }) => event_id === event?.["parent_event_id"])?.["event_type"];
  };
  assert.equal(causeOf("workflow.initialized"), "playbook.initialized");
  assert.equal(causeOf("step.completed"), "command.completed");
  assert.equal(causeOf("playbook.completed"), "workflow.completed");
});

test("the result waits for the end, and says how far it is when the time is over", async () => {
  const id = await work.execute("two");
  const { body: early } = await work.get(`/api/executions/${id}/result`);
  assert.deepEqual(early, { execution_id: id, path: "two", status: "RUNNING", result: null, error: null });
  const waiting = work.get(`/api/executions/${id}/result?wait_ms=30000`);
  await work.runToEnd(id);
  const { status, body } = await waiting;
  assert.deepEqual([status, body["status"], body["result"]], [200, "COMPLETED", { step: "end" }]);
  const { body: ofStep } = await work.get(`/api/executions/${id}/result?step=start`);
  assert.deepEqual(ofStep["result"], { step: "start" });
  // Who runs a playbook reads through references: it is given what is stored.
  const { body: stored } = await work.get(`/api/executions/${id}/result?step=start&sealed=true`);
  assert.deepEqual(stored["result"], { value: { step: "start" } });
  const missing = await work.get(`/api/executions/${id}/result?step=none`);
  assert.deepEqual([missing.status, missing.body["code"]], [404, "NOT_FOUND"]);
  assert.match(String(missing.body["error"]), /has no step 'none'; it has: start, end/);
});

test("an unknown execution is 404 on every route, and so is an impossible id", async () => {
  for (const id of ["4711", "abc", "0", "-1", "99999999999999999999", "1e3", "%00"]) {
    for (const [method, rest] of [
      ["GET", ""],
      ["GET", "/events"],
      ["GET", "/events?event_type=task.done"],
      ["GET", "/stream"],
      ["GET", "/result"],
      ["POST", "/cancel"],
      ["DELETE", ""],
    ] as const) {
      const { status, body } = await work.send(method, `/api/executions/${id}${rest}`);
      assert.deepEqual([status, body["code"]], [404, "NOT_FOUND"], `${method} ${id}${rest}`);
    }
  }
});

test("queries that make no sense are 422 and say what is wrong", async () => {
  const id = await work.execute("one");
  for (const path of [
    "/api/executions?status=SLEEPING",
    "/api/executions?limit=0",
    "/api/executions?limit=501",
    "/api/executions?cursor=nonsense",
    "/api/executions?since=yesterday",
    // Years that JavaScript knows and PostgreSQL does not, or writes in another way.
    "/api/executions?since=0000-01-01",
    "/api/executions?until=9999-12-31T23:59:59-14:00",
    "/api/executions?parent_execution_id=x",
    `/api/executions/${id}/events?after=x`,
    `/api/executions/${id}/events?limit=1000`,
    `/api/executions/${id}/events?event_type=DROP%20TABLE`,
    `/api/executions/${id}/result?wait_ms=30001`,
    `/api/executions/${id}/stream?after=-1`,
  ]) {
    const { status, body } = await work.get(path);
    assert.deepEqual([status, body["code"]], [422, "INVALID_INPUT"], path);
  }
});

test("an execution is deleted with everything of it once it has ended, and not before", async () => {
  const id = await work.execute("two");
  const open = await work.send("DELETE", `/api/executions/${id}`);
  assert.deepEqual([open.status, open.body["code"]], [409, "CONFLICT"]);
  await work.runToEnd(id);
  const deleted = await work.send("DELETE", `/api/executions/${id}`);
  assert.deepEqual([deleted.status, deleted.body], [200, { status: "success", execution_id: id }]);
  const { sql } = api.database;
  for (const table of ["execution", "event", "command", "execution_snapshot", "past_snapshot", "result"]) {
    const rows = await sql`select 1 from ${sql(`flow.${table}`)} where execution_id = ${id}`;
    assert.equal(rows.length, 0, table);
  }
  assert.equal((await work.get(`/api/executions/${id}`)).status, 404);
  assert.equal((await work.send("DELETE", `/api/executions/${id}`)).status, 404);
});
