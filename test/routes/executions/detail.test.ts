import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi } from "../../support/service/api.ts";
import { type Claimed, endOf, workWith } from "../../support/service/api-work.ts";

// An execution's detail: the steps it went through, and what it waits for.

const api = await openApi();
const work = workWith(api);

const detail = async (id: string) => (await work.get(`/api/executions/${id}`)).body;
const commandsOf = async (id: string) => (await detail(id))["commands"] as Body[];

async function claimed(id: string, worker: string): Promise<Claimed> {
  for (;;) {
    const [command] = await work.claim(worker);
    if (command?.execution_id === id) return command;
  }
}

/** With a claim the answer comes when the events were processed; gives what it claimed, which has no kinds. */
async function report(worker: string, events: Body[]): Promise<Claimed[]> {
  const claim = { limit: 1, wait_ms: 0, kinds: [] };
  const { status, body } = await work.post("/api/events/batch", { worker, events, claim });
  assert.equal(status, 202, JSON.stringify(body));
  return body["commands"] as Claimed[];
}

/** The two events that tell of a run which failed and is followed by another one. */
function failedRun({ command_id, attempt, step }: Claimed, run: number, nextRunAt: string, more: Body = {}): Body[] {
  const ref = { command_id, attempt, step, task: step, ...more };
  const error = { kind: "timeout", code: "T", message: `run ${run} failed`, retryable: true };
  const context = { run, final: false, next_run_at: nextRunAt };
  return [
    { ...ref, event_type: "call.error", error, meta: { run, next_run_at: nextRunAt } },
    { ...ref, event_type: "task.done", error, result: { status: "error", context }, task_run_id: "1" },
  ];
}

const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();

before(async () => {
  await work.register(
    "around",
    `  - step: start
    tool: { kind: noop }
    next: { arcs: [{ step: again }, { step: other, when: "{{ false }}" }] }
  - step: again
    tool: { kind: noop }
    next:
      spec: { mode: exclusive }
      arcs:
        - { step: start, when: "{{ output.again }}" }
        - { step: end }
  - step: other
    tool: { kind: noop }
  - step: end
    tool: { kind: noop }
`,
  );
  await work.register("get", `  - step: get\n    tool: { kind: http, url: "http://x.test" }\n`);
  await work.register(
    "each",
    `  - step: each
    loop: { in: [1, 2, 3], iterator: n, spec: { mode: parallel, policy: { exec: local } } }
    tool: { kind: http, url: "http://x.test" }
`,
  );
  await work.register(
    "labelled",
    `  - step: get
    spec: { labels: { zone: eu } }
    tool: [{ a: { kind: sqldb } }, { b: { kind: noop } }, { c: { kind: http, url: "http://x.test" } }]
`,
  );
  await work.register("parent", `  - step: call\n    tool: { kind: playbook, path: get }\n`);
});

test("the taken arcs are listed with their counts, the others are not", async () => {
  const id = await work.execute("around");
  assert.deepEqual((await detail(id))["arcs"], []);
  let turns = 0;
  for (let commands = [await claimed(id, "w-around")]; commands[0] !== undefined; ) {
    const [command] = commands;
    if (command.step === "again") turns += 1;
    commands = await report("w-around", endOf(command, { again: turns < 3 }));
  }
  assert.deepEqual((await detail(id))["arcs"], [
    { from: "start", to: "again", times: 3 },
    { from: "again", to: "start", times: 2 },
    { from: "again", to: "end", times: 1 },
  ]);
});

test("a task that waits for a retry is shown with its time and cause until that run has ended", async () => {
  const id = await work.execute("get");
  assert.equal((await detail(id))["next_retry"], null);
  const command = await claimed(id, "w-retry");
  const at = inAnHour();
  await report("w-retry", failedRun(command, 1, at));
  const error = { code: "T", message: "run 1 failed" };
  assert.deepEqual((await detail(id))["next_retry"], { step: "get", task: "get", at, run: 2, error });
  await report("w-retry", endOf(command));
  const { body } = await work.get(`/api/executions/${id}/result?wait_ms=10000`);
  assert.equal(body["status"], "COMPLETED");
  assert.equal((await detail(id))["next_retry"], null);
});

test("of several waiting iterations the soonest is shown; one whose time has come no longer waits", async () => {
  const id = await work.execute("each");
  const command = await claimed(id, "w-each");
  const task = command.tool[0]?.label ?? "";
  const [soon, late] = [inAnHour(), new Date(Date.now() + 7_200_000).toISOString()];
  await report("w-each", failedRun(command, 1, late, { task, iteration: 0 }));
  await report("w-each", failedRun(command, 4, soon, { task, iteration: 2 }));
  await report("w-each", failedRun(command, 1, new Date(Date.now() - 1_000).toISOString(), { task, iteration: 1 }));
  const told = (await detail(id))["next_retry"] as Body;
  assert.deepEqual([told["iteration"], told["at"], told["run"]], [2, soon, 5]);
});

test("in an execution that is over no run is waited for", async () => {
  const id = await work.execute("get");
  const command = await claimed(id, "w-over");
  await report("w-over", failedRun(command, 1, inAnHour()));
  assert.notEqual((await detail(id))["next_retry"], null);
  await work.post(`/api/executions/${id}/cancel`);
  assert.equal((await detail(id))["next_retry"], null);
});

test("an open command shows since when it waits, and what its worker must be able to do", async () => {
  const id = await work.execute("labelled");
  const [command = {}] = await commandsOf(id);
  assert.deepEqual(command["kinds"], ["sqldb", "http"]);
  assert.deepEqual(command["labels"], { zone: "eu" });
  assert.equal(command["claimed_at"], null);
  assert.ok(Date.parse(String(command["issued_at"])) <= Date.now());
  assert.equal(Object.hasOwn(command, "children"), false);
  await work.post(`/api/executions/${id}/cancel`);
});

test("an open command shows its worker and its state: waiting, claimed, running", async () => {
  const id = await work.execute("get");
  const told = async () => {
    const [command = {}] = await commandsOf(id);
    const [row] = await api.database.sql<[{ status: string }]>`
      select status from flow.command where execution_id = ${id}`;
    assert.deepEqual([command["execution_id"], command["status"]], [id, row.status]);
    return command["status"];
  };
  assert.equal(await told(), "PENDING");
  const command = await claimed(id, "w-status");
  assert.equal(await told(), "CLAIMED");
  const { command_id, attempt, step } = command;
  await report("w-status", [{ command_id, attempt, step, event_type: "command.started" }]);
  assert.equal(await told(), "RUNNING");
  await report("w-status", endOf(command));
  assert.deepEqual((await detail(id))["commands"], []);
});

test("a command that has called an execution names it while that is open", async () => {
  const id = await work.execute("parent");
  const command = await claimed(id, "w-parent");
  assert.equal(Object.hasOwn((await commandsOf(id))[0] ?? {}, "children"), false);
  const call = { path: "get", parent_execution_id: id, parent_step: "call" };
  const key = { "idempotency-key": `${command.command_id}-0-0-1` };
  const { body } = await work.post("/api/execute", call, key);
  const child = String(body["execution_id"]);
  assert.deepEqual((await commandsOf(id))[0]?.["children"], [child]);
  assert.deepEqual((await commandsOf(id))[0]?.["kinds"], []);
  await work.post(`/api/executions/${child}/cancel`);
  assert.equal(Object.hasOwn((await commandsOf(id))[0] ?? {}, "children"), false);
});

test("what a task wrote is read from the execution's events", async () => {
  const id = await work.execute("get");
  const command = await claimed(id, "w-log");
  const { command_id, attempt, step } = command;
  const ref = { command_id, attempt, step, task: step, task_run_id: "1" };
  const log = { lines: ["hello", "\u001b[31mred\u0000"], dropped: 3 };
  const done = { ...ref, event_type: "task.done", result: { status: "ok", context: { value: 1, log } } };
  const told = { ...ref, event_type: "task.progress", meta: { log: { lines: ["hello"], from: 3 } } };
  await report("w-log", [told, done, { command_id, attempt, step, event_type: "command.completed" }]);
  await work.get(`/api/executions/${id}/result?wait_ms=10000`);
  const { body } = await work.get(`/api/executions/${id}/events`);
  const events = body["events"] as Body[];
  const { meta } = (events.find(({ event_type }) => event_type === "task.progress") ?? {}) as { meta?: Body };
  assert.deepEqual(meta?.["log"], { lines: ["hello"], from: 3 });
  const { result } = (events.find(({ event_type }) => event_type === "task.done") ?? {}) as { result?: Body };
  assert.deepEqual({ ...(result?.["context"] as Body | undefined) }["log"], log);
});

test("a task's error has its details in the events, the execution and its steps", async () => {
  await work.register("details", "  - step: sql\n    tool: { kind: noop }\n");
  const id = await work.execute("details");
  const { command_id, attempt, step } = await claimed(id, "wd");
  const error = { kind: "db_error", code: "42703", message: "no column", retryable: false, details: { line: 3 } };
  const ref = { command_id, attempt, step };
  await report("wd", [{ ...ref, event_type: "command.failed", error, task: step }]);
  const told = await detail(id);
  assert.equal(told["status"], "FAILED");
  const [failed] = told["steps"] as Body[];
  const { body } = await work.get(`/api/executions/${id}/events?limit=500`);
  const events = (body["events"] as Body[]).filter(({ error: had }) => had !== null && had !== undefined);
  const ends = events.map(({ event_type }) => event_type);
  for (const type of ["command.failed", "step.failed", "playbook.failed"]) assert.ok(ends.includes(type), type);
  for (const had of [told["error"], failed?.["error"], ...events.map(({ error: of }) => of)] as Body[]) {
    assert.deepEqual([had["details"], "detail" in had], [{ line: 3 }, false], JSON.stringify(had));
  }
});
