import assert from "node:assert/strict";
import { before, test } from "node:test";
import { readEvents } from "../../support/servers/sse.ts";
import { type Body, openApi } from "../../support/service/api.ts";
import { type Claimed, endOf, ONE_STEP, TWO_STEPS, workWith } from "../../support/service/api-work.ts";

const api = await openApi({ FLOW_BATCH_EVENTS_MAX: "8", FLOW_BATCH_BYTES_MAX: "4096" });
const work = workWith(api);

before(async () => {
  await work.register("e/one", ONE_STEP);
  await work.register("e/two", TWO_STEPS);
});

/** A claimed command of a fresh execution. */
async function claimed(path = "e/one", worker = "w"): Promise<Claimed> {
  const id = await work.execute(path);
  for (;;) {
    const found = (await work.claim(worker, 100)).find(({ execution_id }) => execution_id === id);
    if (found !== undefined) return found;
  }
}

const batch = (body: Body, headers: Record<string, string> = {}) => work.post("/api/events/batch", body, headers);

/** What the log has of an execution. */
async function types(id: string): Promise<unknown[]> {
  const { body } = await work.get(`/api/executions/${id}/events`);
  return (body["events"] as Body[]).map(({ event_type }) => event_type);
}

test("a batch is accepted with 202, its ids are those in the log, and its status goes to completed", async () => {
  const command = await claimed();
  const { status, body } = await batch({ worker: "w", events: endOf(command, 1) }, { "idempotency-key": "b-1" });
  assert.equal(status, 202);
  const { request_id, event_ids, commands_generated, queue_depth, ...rest } = body;
  assert.match(String(request_id), /^\d+$/);
  assert.equal((event_ids as number[]).length, 2);
  assert.equal(commands_generated, 0);
  assert.equal(typeof queue_depth, "number");
  assert.deepEqual(rest, { status: "accepted", duplicate: false, idempotency_key: "b-1" });
  await work.get(`/api/executions/${command.execution_id}/result?wait_ms=5000`);
  const log = (await work.get(`/api/executions/${command.execution_id}/events`)).body["events"] as Body[];
  for (const id of event_ids as number[]) assert.ok(log.some(({ event_id }) => event_id === id));
  const response = await api.open.request(`/api/events/batch/${request_id}/stream`);
  const events = await readEvents(response).rest();
  assert.equal(events.at(-1)?.event, "status");
  const { body: state } = await work.get(`/api/events/batch/${request_id}/status`);
  assert.deepEqual(events.at(-1)?.data, state);
  assert.equal(state["state"], "completed");
  assert.deepEqual(state["event_ids"], event_ids);
});

test("with a claim the answer carries the next commands of the worker", async () => {
  const command = await claimed("e/two");
  const { status, body } = await batch({ worker: "w", events: endOf(command), claim: { limit: 5 } });
  assert.equal(status, 202);
  assert.equal(body["commands_generated"], 1);
  const [next] = body["commands"] as Claimed[];
  assert.deepEqual([next?.execution_id, next?.step, next?.attempt], [command.execution_id, "end", 1]);
  const { lease_expires_at, tool, spec, context, step_run_id, step_started_at } = next as unknown as Body;
  assert.ok(Date.parse(String(lease_expires_at)) > Date.now());
  assert.deepEqual([Array.isArray(tool), typeof spec, typeof context], [true, "object", "object"]);
  assert.deepEqual([typeof step_run_id, typeof step_started_at], ["string", "number"]);
});

test("events of several executions travel in one batch, all of them written or none", async () => {
  const [first, second] = [await claimed(), await claimed()];
  const events = [...endOf(first, 1), ...endOf(second, 2)];
  const stale = events.map((event, index) => (index === 3 ? { ...event, attempt: 7 } : event));
  const refused = await batch({ worker: "w", events: stale });
  assert.deepEqual([refused.status, refused.body["code"]], [409, "CONFLICT"]);
  assert.deepEqual((refused.body["detail"] as Body)["events"], [
    { index: 3, command_id: second.command_id, reason: "stale" },
  ]);
  assert.ok(!(await types(first.execution_id)).includes("task.done"));
  assert.equal((await batch({ worker: "w", events })).status, 202);
  for (const { execution_id } of [first, second]) {
    const { body } = await work.get(`/api/executions/${execution_id}/result?wait_ms=5000`);
    assert.equal(body["status"], "COMPLETED");
  }
});

test("the execution may be given once for all events, or left out: the command determines it", async () => {
  const [first, second, third] = [await claimed(), await claimed(), await claimed()];
  const without = (command: Claimed) => endOf(command).map(({ execution_id: _, ...event }) => event);
  assert.equal((await batch({ worker: "w", execution_id: first.execution_id, events: without(first) })).status, 202);
  assert.equal((await batch({ worker: "w", events: without(second) })).status, 202);
  const unknown = [{ event_type: "command.started", command_id: "4711", attempt: 1 }];
  const { status, body } = await batch({ worker: "w", events: [...without(third), ...unknown] });
  assert.equal(status, 409);
  assert.deepEqual((body["detail"] as Body)["events"], [{ index: 2, command_id: "4711", reason: "unknown" }]);
  const { command_id } = second;
  const ended = await batch({ worker: "w", events: without(second) });
  assert.deepEqual((ended.body["detail"] as Body)["events"], [
    { index: 0, command_id, reason: "unknown" },
    { index: 1, command_id, reason: "unknown" },
  ]);
});

test("a command of another execution is refused: the claim is compared with the execution that it names", async () => {
  const [first, second] = [await claimed(), await claimed()];
  const events = endOf(first).map((event) => ({ ...event, execution_id: second.execution_id }));
  const { status, body } = await batch({ worker: "w", events });
  assert.equal(status, 409);
  assert.equal(((body["detail"] as Body)["events"] as Body[])[0]?.["reason"], "unknown");
});

test("the same key with the same body is answered as a duplicate; with another body it is 422", async () => {
  const command = await claimed();
  const headers = { "idempotency-key": "b-2" };
  const first = await batch({ worker: "w", events: endOf(command, 1) }, headers);
  await work.get(`/api/executions/${command.execution_id}/result?wait_ms=5000`);
  const before = await types(command.execution_id);
  const again = await batch({ worker: "w", events: endOf(command, 1) }, headers);
  assert.equal(again.status, 202);
  assert.deepEqual(
    [again.body["duplicate"], again.body["request_id"], again.body["event_ids"]],
    [true, first.body["request_id"], first.body["event_ids"]],
  );
  const done = (list: unknown[]) => list.filter((type) => type === "task.done").length;
  assert.equal(done(await types(command.execution_id)), done(before));
  const other = await batch({ worker: "w", events: endOf(command, 2) }, headers);
  assert.deepEqual([other.status, other.body["code"]], [422, "INVALID_INPUT"]);
  // Keys are unique per caller, not over all.
  const stranger = await batch({ worker: "x", events: endOf(command, 2) }, headers);
  assert.equal(stranger.status, 409);
});

test("every problem of every event is listed at once, and nothing is written", async () => {
  const command = await claimed();
  const [done, end] = endOf(command);
  const { attempt: _attempt, ...noAttempt } = end ?? {};
  const events = [{ ...done, event_type: "playbook.completed" }, noAttempt, { ...done, result: undefined }, 5];
  const { status, body } = await batch({ worker: "w", events });
  assert.deepEqual([status, body["code"]], [422, "INVALID_INPUT"]);
  const errors = (body["detail"] as Body)["errors"] as Body[];
  assert.deepEqual(
    errors.map(({ index, path }) => [index, path]),
    [
      [0, "event_type"],
      [1, "attempt"],
      [2, "result"],
      [3, ""],
    ],
  );
  assert.ok(!(await types(command.execution_id)).includes("task.done"));
});

test("bodies that are no batch are 422", async () => {
  const command = await claimed();
  const events = endOf(command);
  for (const body of [
    null,
    [],
    {},
    { events },
    { worker: "w", events: {} },
    { worker: "w", events: [] },
    { events, worker: "" },
    { events, worker: "a\u0000" },
    { events, claim: { limit: 1 } },
    { events, worker: "w", claim: { limit: 0 } },
    { events, worker: "w", claim: { limit: 1, wait_ms: -1 } },
    { worker: "w", events, execution_id: "x" },
    { worker: "w", events: [{ ...events[0], result: { status: "ok", body: "large" } }] },
    { worker: "w", events: [{ ...events[0], result: { status: "fine" } }] },
    { worker: "w", events: [{ ...events[0], created_at: "yesterday" }] },
    { worker: "w", events: [{ ...events[0], task: "a\u0000" }] },
  ]) {
    const { status, body: answer } = await batch(body as Body);
    assert.deepEqual([status, answer["code"]], [422, "INVALID_INPUT"], JSON.stringify(body));
  }
});

test("too many events and too many bytes are 413", async () => {
  const command = await claimed();
  const started = { event_type: "command.started", command_id: command.command_id, attempt: 1 };
  assert.equal((await batch({ worker: "w", events: Array.from({ length: 9 }, () => started) })).status, 413);
  const { status, body } = await batch({ worker: "w", events: endOf(command, "x".repeat(5_000)) });
  assert.deepEqual([status, body["code"]], [413, "TOO_LARGE"]);
});

test("a body that does not say how long it is, is 413 as soon as it is too long", async () => {
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 1_024;
      controller.enqueue(new Uint8Array(1_024).fill(0x20));
    },
  });
  const init = { method: "POST", body: endless, duplex: "half" } as RequestInit;
  const response = await api.open.request("/api/events/batch", init);
  assert.equal(response.status, 413);
  assert.ok(sent < 20_000, `${sent} bytes were read`);
});

test("a command of another worker is refused, and so is an unclaimed one", async () => {
  const command = await claimed();
  const stranger = await batch({ worker: "x", events: endOf(command) });
  assert.equal(stranger.status, 409);
  assert.deepEqual((stranger.body["detail"] as Body)["events"], [
    { index: 0, command_id: command.command_id, reason: "foreign" },
    { index: 1, command_id: command.command_id, reason: "foreign" },
  ]);
  const id = await work.execute("e/one");
  const [open] = (await work.get(`/api/executions/${id}`)).body["commands"] as Body[];
  const early = { event_type: "command.started", command_id: open?.["command_id"], attempt: 1, execution_id: id };
  assert.equal((await batch({ worker: "w", events: [early] })).status, 409);
  assert.ok(!(await types(id)).includes("command.started"));
});

test("a report takes what the claim gave: who only knows the worker's name, or the attempt, ends nothing", async () => {
  const command = await claimed();
  const unnumbered = endOf(command, 1).map(({ attempt: _, ...event }) => event);
  for (const [body, status, told] of [
    [{ worker: "w", events: unnumbered }, 422, /events?\.?0?.*attempt|attempt: is required/],
    [{ events: endOf(command, 1) }, 422, /worker: is required/],
    [{ worker: "x", events: endOf(command, 1) }, 409, /another worker holds it/],
    [{ worker: "w", events: endOf({ ...command, attempt: 2 }, 1) }, 409, /not its present claim/],
  ] as const) {
    const answer = await batch(body);
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    assert.match(String(answer.body["error"]), told);
    for (const event of body.events) {
      const single = "worker" in body ? { ...event, worker: body.worker } : event;
      assert.equal((await work.post("/api/events", single)).status, status);
    }
  }
  const written = await types(command.execution_id);
  assert.ok(!written.includes("task.done") && !written.includes("command.completed"));
  assert.equal((await batch({ worker: "w", events: endOf(command, 1) })).status, 202);
});

test("a single event is answered when what follows has been issued", async () => {
  const command = await claimed("e/two");
  const answers = [];
  for (const event of endOf(command)) answers.push((await work.post("/api/events", { ...event, worker: "w" })).body);
  assert.deepEqual(
    answers.map((answer) => answer["commands_generated"]),
    [0, 1],
  );
});

test("an unknown key of the envelope is named in the error", async () => {
  const [done] = endOf(await claimed());
  const { body } = await batch({ worker: "w", events: [{ ...done, result: { status: "ok", data: 1 } }] });
  assert.match(String(body["error"]), /result\.data: is not a known key$/);
});

test("a single event is answered with its id", async () => {
  const command = await claimed();
  const [done, end] = endOf(command, 1);
  const first = await work.post("/api/events", { ...done, worker: "w" });
  assert.deepEqual([first.status, first.body["status"], first.body["commands_generated"]], [200, "ok", 0]);
  const log = (await work.get(`/api/executions/${command.execution_id}/events?event_type=task.done`)).body;
  assert.equal((log["events"] as Body[])[0]?.["event_id"], first.body["event_id"]);
  assert.equal((await work.post("/api/events", { ...end, worker: "w" })).status, 200);
  const { body } = await work.get(`/api/executions/${command.execution_id}/result?wait_ms=5000`);
  assert.equal(body["status"], "COMPLETED");
  assert.equal((await work.post("/api/events", { ...end, worker: "w" })).status, 409);
  assert.equal((await work.post("/api/events", { worker: "w" })).status, 422);
  assert.equal((await work.post("/api/events", { ...done, result: undefined })).status, 422);
});

test("the status and the stream of an unknown batch are 404", async () => {
  for (const path of ["4711/status", "4711/stream", "x/status", "0/stream"]) {
    const { status, body } = await work.get(`/api/events/batch/${path}`);
    assert.deepEqual([status, body["code"]], [404, "NOT_FOUND"]);
  }
});
