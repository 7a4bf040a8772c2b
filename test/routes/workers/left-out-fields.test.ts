import assert from "node:assert/strict";
import { before, test } from "node:test";
import { REPORTED_TYPES, type ReportedType } from "../../../src/schema/api/event-input.ts";
import { type Body, openApi } from "../../support/service/api.ts";
import { type Claimed, ONE_STEP, workWith } from "../../support/service/api-work.ts";

/* What a worker may report, with each of its fields left out, null or of another type: it is accepted or refused, and never a fault. */

const api = await openApi();
const work = workWith(api);

before(async () => {
  await work.register("e/one", ONE_STEP);
  await work.register(
    "e/each",
    `  - step: start
    loop: { in: [1, 2], iterator: n, spec: { mode: parallel, policy: { exec: local } } }
    tool: { kind: shell, command: "true" }
`,
  );
});

async function claimed(path: string): Promise<Claimed> {
  const id = await work.execute(path);
  const [command] = await work.claim("w");
  assert.equal(command?.execution_id, id);
  return command as Claimed;
}

const error = { kind: "unknown", code: "X", message: "no", retryable: false };
const value = { status: "ok", context: { value: 1 } };

/** An event of the type with all of its fields. */
function full(
  type: ReportedType,
  { command_id, execution_id, attempt, step, tool }: Claimed,
  at: { iteration?: number },
): Body {
  const task = tool[0]?.label ?? "";
  const head = { event_type: type, execution_id, command_id, attempt, step, created_at: new Date().toISOString() };
  const run = { task, task_run_id: "r-1", ...at };
  const end = { tasks: [task], set: [["ctx.a", 1]], results: [[task, { value: 1 }, 1]] };
  const bodies: Record<ReportedType, Body> = {
    "command.started": { meta: {} },
    "command.parked": {
      ...{ task, ...at },
      meta: {
        wait: { kind: "timer", due: head.created_at },
        resume: { task, run: 1, serial: 0, started_at: head.created_at },
        wake_at: head.created_at,
      },
    },
    "task.progress": { ...run, meta: { run: 1, progress: { rows: 1 }, log: { lines: ["a"], from: 0, dropped: 0 } } },
    "task.done": {
      ...run,
      duration_ms: 1,
      result: { status: "ok", context: { value: 1, run: 1, final: true, iteration_id: "a", bytes: 1 } },
    },
    "call.done": { ...run, duration_ms: 1, meta: { run: 1 } },
    "call.error": { ...run, error, meta: { run: 1, next_run_at: new Date().toISOString() } },
    "loop.iteration.completed": { iteration: 0, result: { ...value, context: { ...end } } },
    "loop.iteration.failed": { iteration: 0, error, result: { status: "error", context: { ...end } } },
    "command.completed": { result: { ...value, context: { ...end, iterations: 2, rows: [] } } },
    "command.failed": { error, result: { status: "error", context: { ...end, iterations: 2, rows: [] } } },
  };
  return { ...head, ...bodies[type] };
}

/** The event with each of its fields, also those within its objects, changed by `change`. */
function* changed(event: Body): Generator<{ what: string; event: Body }> {
  for (const key of Object.keys(event)) {
    const { [key]: old, ...rest } = event;
    yield { what: `without ${key}`, event: rest };
    for (const other of [null, 7, {}])
      yield { what: `${key}: ${JSON.stringify(other)}`, event: { ...event, [key]: other } };
    if (typeof old !== "object" || old === null || Array.isArray(old)) continue;
    for (const inner of changed(old as Body))
      yield { what: `${key}, ${inner.what}`, event: { ...event, [key]: inner.event } };
  }
}

for (const path of ["e/one", "e/each"]) {
  test(`no report about ${path} is a fault of the server, whatever it leaves out`, async () => {
    const iteration = path === "e/each" ? { iteration: 0 } : {};
    const faults: string[] = [];
    const accepted = new Set<string>();
    let command = await claimed(path);
    for (const type of REPORTED_TYPES) {
      const isEnd = type.includes(".iteration.") || /^command\.(completed|failed|parked)$/.test(type);
      for (const { what } of [...changed(full(type, command, iteration))]) {
        // The ids are those of the command that is open now.
        const event = [...changed(full(type, command, iteration))].find((one) => one.what === what)?.event;
        const done = isEnd ? [full("task.done", command, iteration)] : [];
        const { status, body } = await work.post("/api/events/batch", { worker: "w", events: [...done, event] });
        if (![202, 409, 422].includes(status)) faults.push(`${type} ${what}: ${status} ${JSON.stringify(body)}`);
        if (status === 202) accepted.add(type);
        if (status !== 202 || !isEnd) continue;
        // What was accepted is decided too: nothing waits for ever.
        await work.post(`/api/executions/${command.execution_id}/cancel`);
        command = await claimed(path);
      }
    }
    assert.deepEqual(faults, []);
    const own = REPORTED_TYPES.filter((type) => path === "e/each" || !type.includes(".iteration."));
    assert.deepEqual([...accepted].sort(), [...own].sort());
  });
}
