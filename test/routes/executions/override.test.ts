import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Body, buildApi, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { endOf, ONE_STEP, TWO_STEPS, workWith } from "../../support/service/api-work.ts";

/* Control, section 1 and rule 14, through the API, with a second server of the same database that hears nothing of the first. */

const api = await openApi();
const elsewhere = await buildApi(api.database);
after(() => elsewhere.service.orchestrator.close());
const work = workWith(api);
const there = workWith(elsewhere);

const LOOP = `  - step: each
    loop: { in: [1, 2, 3], iterator: x, spec: { mode: parallel, max_in_flight: 2 } }
    tool: { kind: noop }
    next: { arcs: [{ step: end }] }
  - step: end
    tool: { kind: noop }
`;

before(async () => {
  await work.register("o/one", ONE_STEP);
  await work.register("o/two", TWO_STEPS);
  await work.register("o/loop", LOOP);
  await work.register("o/sensitive", ONE_STEP.replace("tool", "spec: { result: { sensitive: true } }\n    tool"));
});

const address = (id: string, step: string) => `/api/executions/${id}/steps/${step}/override`;
const override = (id: string, step: string, body: Body, at = work) =>
  at.post(address(id, step), { action: "skip", reason: "stuck", ...body });
const detailOf = async (id: string, at = work) => (await at.get(`/api/executions/${id}`)).body;
const stepOf = async (id: string, step: string) =>
  ((await detailOf(id))["steps"] as Body[]).find(({ name }) => name === step)?.["status"];
const eventsOf = async (id: string, type: string) =>
  (await work.get(`/api/executions/${id}/events?event_type=${type}`)).body["events"] as Body[];
const claimed = async (id: string, at = work) =>
  (await at.claim("w", 100, 0)).filter(({ execution_id }) => execution_id === id);

test("a step that a worker has is skipped: the worker is told to stop, its late report is refused, and the next step begins", async () => {
  const id = await work.execute("o/two");
  await work.post("/api/worker/pool/register", { name: "w", capacity: 4 });
  const [command] = await claimed(id);
  assert.ok(command);
  const { status, body } = await override(id, "start", {});
  assert.equal(status, 202, JSON.stringify(body));
  assert.deepEqual(body, { execution_id: id, step: "start", status: "SKIPPED" });
  const beat = await work.post("/api/worker/pool/heartbeat", {
    ...{ name: "w", status: "ready" },
    running: [{ command_id: command.command_id, attempt: command.attempt }],
  });
  assert.ok((beat.body["cancel"] as string[]).includes(command.command_id), JSON.stringify(beat.body));
  const late = await work.finish("w", command, "late");
  assert.equal(late.status, 409);
  const ended = await work.runToEnd(id);
  assert.equal(ended["status"], "COMPLETED");
  assert.equal((await eventsOf(id, "command.completed")).length, 1);
});

test("a step is completed with a result, which is the execution's; or failed with a code", async () => {
  const id = await work.execute("o/one");
  await override(id, "start", { action: "complete", result: { rows: 0 } });
  const { status, result } = await detailOf(id);
  assert.deepEqual([status, result], ["COMPLETED", { rows: 0 }]);
  const other = await work.execute("o/one");
  await override(other, "start", { action: "fail", error: { code: "BY_HAND" } });
  const failed = await detailOf(other);
  assert.deepEqual([failed["status"], (failed["error"] as Body)["code"]], ["FAILED", "BY_HAND"]);
  assert.match(String((failed["error"] as Body)["message"]), /ended by a person: stuck/);
});

test("a step not begun ends so when it is reached; what waits in the queue of a command is gone from every server", async () => {
  const id = await work.execute("o/two");
  await elsewhere.service.orchestrator.recovery.poll();
  assert.equal((await override(id, "end", {})).body["status"], "PENDING");
  const byHand = async (step: string, at = work) =>
    ((await detailOf(id, at))["steps"] as Body[]).find(({ name }) => name === step)?.["overridden"] as Body;
  const { action, reason, by, at } = await byHand("end");
  assert.deepEqual([action, reason], ["skip", "stuck"]);
  assert.ok(typeof by === "string" && Date.parse(String(at)) > 0, "who, and when");
  assert.equal((await override(id, "start", {})).body["status"], "SKIPPED");
  assert.deepEqual(await claimed(id, there), []);
  assert.equal((await detailOf(id, there))["status"], "COMPLETED");
  assert.deepEqual(await byHand("end", there), { action, reason, by, at });
  assert.equal((await byHand("start"))["reason"], "stuck");
  assert.equal((await api.database.sql`select from flow.command where execution_id = ${id}`).length, 0);
});

test("one iteration is completed, the others go on; then the loop as a whole", async () => {
  const id = await work.execute("o/loop");
  const [first, second] = await claimed(id);
  assert.ok(first && second);
  assert.equal(
    (await override(id, "each", { action: "complete", result: "x", iteration: 0 })).body["status"],
    "RUNNING",
  );
  const [step] = (await detailOf(id, there))["steps"] as Body[];
  const [{ at, by, ...ended } = {}] = (step?.["overridden_iterations"] ?? []) as Body[];
  assert.deepEqual([ended, step?.["overridden"]], [{ iteration: 0, action: "complete", reason: "stuck" }, undefined]);
  assert.ok(typeof by === "string" && Date.parse(String(at)) > 0, "who, and when");
  assert.equal((await override(id, "each", { iteration: 0 })).status, 409);
  assert.equal((await override(id, "each", { iteration: 3 })).status, 404);
  assert.equal((await claimed(id)).length, 1, "its place is free for the third");
  assert.equal((await override(id, "each", {})).body["status"], "SKIPPED");
  assert.equal((await work.finish("w", second)).status, 409);
  assert.equal((await work.runToEnd(id))["status"], "COMPLETED");
  const { body } = await work.get(`/api/executions/${id}/result?step=each`);
  assert.deepEqual((body["result"] as Body)["results"], ["x", null, null]);
});

const SHARED = `  - step: each
    loop: { in: [1, 2, 3], iterator: x, spec: { policy: { exec: local } } }
    tool: { kind: noop }
`;

test("the worker of a command of several iterations is told which one was ended, at once and at each heartbeat, and goes on", async () => {
  await work.register("o/shared", SHARED);
  await work.post("/api/worker/pool/register", { name: "s", capacity: 4 });
  const id = await work.execute("o/shared");
  const command = (await work.claim("s", 100, 0)).find(({ execution_id }) => execution_id === id);
  assert.ok(command);
  const { command_id, attempt } = command;
  const beat = (waitMs = 0) =>
    work.post("/api/worker/pool/heartbeat", { name: "s", running: [{ command_id, attempt }], wait_ms: waitMs });
  assert.equal((await beat()).body["cancel_iterations"], undefined);
  const waiting = beat(30_000);
  await beat();
  assert.equal((await override(id, "each", { iteration: 1 })).status, 202);
  await api.service.cancelNotices.tell([{ commandId: command_id, worker: "s" }]);
  const stopped = [{ command_id, iterations: [1] }];
  assert.deepEqual((await waiting).body["cancel_iterations"], stopped);
  // What was told is told again, without holding back the wait for something new.
  assert.deepEqual((await beat()).body["cancel_iterations"], stopped);
  const waitingOn = beat(30_000);
  await beat();
  assert.deepEqual((await override(id, "each", { iteration: 2 }, there)).status, 202);
  await api.service.cancelNotices.tell([{ commandId: command_id, worker: "s" }]);
  const both = [{ command_id, iterations: [1, 2] }];
  assert.deepEqual((await waitingOn).body["cancel_iterations"], both);
  const { body } = await beat();
  assert.deepEqual(body["cancel_iterations"], both);
  assert.deepEqual(body["cancel"], []);
  // With the last one the command has nothing left, and is cancelled as a whole.
  assert.equal((await override(id, "each", { iteration: 0 })).status, 202);
  const last = (await beat()).body;
  assert.deepEqual([last["cancel"], last["cancel_iterations"]], [[command_id], undefined]);
  assert.equal((await detailOf(id))["status"], "COMPLETED");
});

test("two servers at once: the step ends once, whichever was faster, and the report of the other one changes nothing", async () => {
  for (let round = 0; round < 8; round += 1) {
    const id = await work.execute("o/two");
    const [command] = await claimed(id);
    assert.ok(command);
    await elsewhere.service.orchestrator.recovery.poll();
    const calls = [override(id, "start", {}), override(id, "start", { action: "complete" }, there)];
    const report = work.post("/api/events/batch", { worker: "w", events: endOf(command) });
    const statuses = (await Promise.all([...calls, report])).map(({ status }) => status);
    assert.equal(statuses.filter((status) => status === 202).length, 1, String(statuses));
    assert.equal(statuses.filter((status) => status === 409).length, 2, String(statuses));
    const ends = [...(await eventsOf(id, "step.completed")), ...(await eventsOf(id, "step.skipped"))];
    assert.equal(ends.filter(({ node_name }) => node_name === "start").length, 1);
    await api.service.orchestrator.recovery.poll();
    assert.equal((await work.runToEnd(id))["status"], "COMPLETED");
  }
});

test("while it is paused the command is cancelled, and what follows waits for the resumption", async () => {
  const id = await work.execute("o/two");
  await work.post(`/api/executions/${id}/pause`);
  assert.equal((await override(id, "start", {})).body["status"], "RUNNING");
  assert.equal((await override(id, "start", {})).status, 409);
  assert.equal(await stepOf(id, "end"), "PENDING");
  await there.post(`/api/executions/${id}/resume`);
  assert.equal(await stepOf(id, "start"), "SKIPPED");
  await api.service.orchestrator.recovery.poll();
  assert.equal((await work.runToEnd(id))["status"], "COMPLETED");
});

test("refused: unknown ones, ended ones, no reason, a result that does not fit, an iteration of no loop, a sensitive result", async () => {
  const id = await work.execute("o/two");
  const refusals: [string, Body, number][] = [
    ["nowhere", {}, 404],
    ["start", { iteration: 0 }, 422],
    ["start", { reason: " " }, 422],
    ["start", { action: "retry" }, 422],
    ["start", { result: 1 }, 422],
    ["start", { error: { code: "X" } }, 422],
    ["start", { action: "complete", result: "x".repeat(65_535) }, 422],
    ["start", { iteration: -1 }, 422],
    ["start", { more: true }, 422],
  ];
  for (const [step, body, expected] of refusals) {
    const { status, body: told } = await override(id, step, body);
    assert.equal(status, expected, `${JSON.stringify(body).slice(0, 80)}: ${JSON.stringify(told)}`);
  }
  assert.equal((await override("1", "start", {})).status, 404);
  assert.equal(await stepOf(id, "start"), "RUNNING");
  await override(id, "start", {});
  const again = await override(id, "start", {});
  assert.deepEqual([again.status, again.body["code"]], [409, "already_terminal"]);
  await work.runToEnd(id);
  assert.equal((await override(id, "end", {})).status, 409);
  const secret = await work.execute("o/sensitive");
  assert.equal((await override(secret, "start", { action: "complete", result: 1 })).status, 422);
  assert.equal((await override(secret, "start", {})).status, 202);
});

test("the log and the audit log say who did it and why; a worker may not", async () => {
  const id = await work.execute("o/two");
  const headers = { authorization: `Bearer ${TOKENS.worker}` };
  const body = { action: "skip", reason: "stuck" };
  assert.equal((await api.guarded.request(address(id, "start"), posted(body, headers))).status, 403);
  await override(id, "start", {});
  const [event] = await eventsOf(id, "step.overridden");
  assert.deepEqual(
    [event?.["node_name"], event?.["meta"]],
    ["start", { action: "skip", reason: "stuck", by: "operator" }],
  );
  const rows = await api.database.sql<{ detail: Body }[]>`
    select detail from auth.audit_log where action = 'execution.override' and resource = ${`execution/${id}`} and result = 'allow'`;
  assert.deepEqual(
    rows.map(({ detail }) => detail),
    [{ step: "start", action: "skip", reason: "stuck" }],
  );
});
