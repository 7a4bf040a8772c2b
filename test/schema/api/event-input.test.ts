import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { EventInput, fromInput, type ReportedEvent, toInput } from "../../../src/schema/api/event-input.ts";

const NOW = Date.UTC(2026, 0, 2);
const ref = { command_id: "5", attempt: 2, step: "a" };
const error = { kind: "timeout" as const, code: "TIMEOUT", message: "too long", retryable: true };

/** Over the wire and back, as the server reads it. */
function read(body: unknown): ReportedEvent | string {
  const parsed = v.safeParse(EventInput, JSON.parse(JSON.stringify(body)));
  return parsed.success ? fromInput(parsed.output, "w1", NOW) : (parsed.issues[0]?.message ?? "invalid");
}

const EVENTS: ReportedEvent[] = [
  { type: "command.started", at: 1, ...ref },
  {
    type: "task.done",
    at: 1,
    ...ref,
    task: "t",
    task_run_id: "5-0-0",
    iteration: 3,
    status: "error",
    run: 2,
    final: false,
    error,
    duration_ms: 1.5,
  },
  {
    type: "task.done",
    at: 1,
    ...ref,
    task: "t",
    task_run_id: "5-0-0",
    status: "ok",
    run: 1,
    final: true,
    result: { value: { type: "not a type", attempt: 99 } },
    bytes: 12,
    duration_ms: 0,
  },
  {
    type: "task.progress",
    at: 1,
    ...ref,
    task: "t",
    task_run_id: "5-3-0",
    step_run_id: "4",
    iteration: 3,
    run: 2,
    progress: { rows_read: 3, share: 0.5 },
  },
  {
    type: "task.progress",
    at: 1,
    ...ref,
    task: "t",
    task_run_id: "5-0-0",
    run: 1,
    progress: {},
    log: { lines: ["", "\u0000 and \u001b[2J"], from: 7 },
  },
  {
    type: "task.done",
    at: 1,
    ...ref,
    task: "t",
    task_run_id: "5-0-0",
    status: "error",
    run: 1,
    final: false,
    error,
    duration_ms: 0,
    next_run_at: "2026-01-02T00:00:05.000Z",
    log: { lines: ["last words"], dropped: 3 },
  },
  { type: "call.error", at: 1, ...ref, task: "t", run: 1, error },
  { type: "call.error", at: 1, ...ref, task: "t", run: 1, error, next_run_at: "2026-01-02T00:00:05.000Z" },
  { type: "call.done", at: 1, ...ref, task: "t", child_execution_id: "9" },
  { type: "loop.iteration.completed", at: 1, ...ref, iteration: 0, tasks: ["t"], pipeline: true, set: [["x", 1]] },
  { type: "loop.iteration.failed", at: 1, ...ref, iteration: 0, tasks: [], error },
  { type: "command.completed", at: 1, ...ref, iterations: 4 },
  { type: "command.completed", at: 1, ...ref, rows: [{ id: 1 }, null] },
  { type: "command.failed", at: 1, ...ref, tasks: ["t"], error },
];

for (const event of EVENTS) {
  test(`${event.type} survives the way to the server`, () => {
    assert.deepEqual(read(toInput(event, "7")), { ...event, worker: "w1" });
  });
}

test("a time in the future, and a missing one, is replaced by now", () => {
  const body = { event_type: "command.started", command_id: "5", attempt: 1 };
  const at = (more: object) => (read({ ...body, ...more }) as ReportedEvent).at;
  assert.equal(at({}), NOW);
  assert.equal(at({ created_at: "2050-01-01T00:00:00Z" }), NOW);
  assert.equal(at({ created_at: "2026-01-01T00:00:00Z" }), NOW - 86_400_000);
});

test("the context of a result does not replace the event's own fields", () => {
  const context = {
    type: "playbook.completed",
    command_id: "666",
    attempt: 9,
    step: "z",
    worker: "w9",
    at: 0,
    task: "t",
  };
  const hostile = { ...context, __proto__: { polluted: true }, constructor: 1, value: 1 };
  const text = JSON.stringify({ event_type: "task.done", ...ref, result: { status: "ok", context: hostile } });
  const event = read(JSON.parse(text.replace('"constructor"', '"__proto__":{"polluted":true},"constructor"')));
  assert.ok(typeof event !== "string", String(event));
  assert.deepEqual(
    [event.type, event.command_id, event.attempt, event.step, event.worker],
    ["task.done", "5", 2, "a", "w1"],
  );
  assert.equal(Object.getPrototypeOf(event), Object.prototype);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  assert.equal(Object.hasOwn(event, "constructor"), false);
});

test("the execution's own events cannot be sent", () => {
  for (const event_type of ["command.issued", "command.claimed", "playbook.completed", "batch.completed", "toString"]) {
    assert.equal(typeof read({ event_type, command_id: "5", attempt: 1 }), "string", event_type);
  }
});

const progress = (numbers?: unknown) => ({
  ...{ event_type: "task.progress", ...ref, task: "t" },
  ...(numbers !== undefined && { meta: { progress: numbers } }),
});

const logged = (log: unknown) => ({
  ...{ event_type: "task.done", ...ref, task: "t" },
  result: { status: "ok", context: { value: 1, log } },
});

test("progress of a task that only writes needs no numbers", () => {
  const event = read({ ...progress(), meta: { log: { lines: ["hello"] } } });
  assert.ok(typeof event !== "string" && event.type === "task.progress");
  assert.deepEqual([event.progress, event.log], [{}, { lines: ["hello"] }]);
});

const BROKEN: [name: string, body: object][] = [
  ["progress without numbers", progress()],
  ["progress of nothing", progress({})],
  ["progress in words", progress({ rows: "many" })],
  ["progress that is a list", progress([1])],
  ["progress under a name that no terminal may show", progress({ "\u001b[2J": 1 })],
  [
    "progress under a name that is none",
    JSON.parse(JSON.stringify(progress()).replace("}", ',"meta":{"progress":{"__proto__":1}}}')),
  ],
  ["progress in too many numbers", progress(Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`n${n}`, n])))],
  ["progress of no task", { ...progress({ rows: 1 }), task: undefined }],
  ["progress with a log in words", { ...progress({ rows: 1 }), meta: { progress: { rows: 1 }, log: "hello" } }],
  ["a log that is a list", logged(["hello"])],
  ["a log without lines", logged({ dropped: 1 })],
  ["a log of what is no text", logged({ lines: [1] })],
  ["a log of too many lines", logged({ lines: Array(201).fill("") })],
  ["a log of too long a line", logged({ lines: ["x".repeat(1_001)] })],
  ["a log of less than nothing", logged({ lines: [], dropped: -1 })],
  [
    "a next run at no time",
    { event_type: "call.error", ...ref, task: "t", error: { message: "m" }, meta: { next_run_at: "soon" } },
  ],
  ["no command", { event_type: "command.started", attempt: 1 }],
  ["a command that is no id", { event_type: "command.started", command_id: "__proto__", attempt: 1 }],
  ["no attempt", { event_type: "command.started", command_id: "5", step: "a" }],
  ["attempt 0", { event_type: "command.started", ...ref, attempt: 0 }],
  ["an attempt beyond the column", { event_type: "command.started", ...ref, attempt: 2 ** 31 }],
  ["a task without a result", { event_type: "task.done", ...ref, task: "t" }],
  ["a task without a name", { event_type: "task.done", ...ref, result: { status: "ok", context: { value: 1 } } }],
  ["a name that is no text", { event_type: "task.done", ...ref, result: { status: "ok", context: { task: 7 } } }],
  ["an envelope with more in it", { event_type: "command.completed", ...ref, result: { status: "ok", more: 1 } }],
  ["a negative duration", { event_type: "task.done", ...ref, task: "t", duration_ms: -1, result: { status: "ok" } }],
  ["an iteration without its number", { event_type: "loop.iteration.completed", ...ref }],
  ["an iteration that is none", { event_type: "loop.iteration.completed", ...ref, iteration: 1.5 }],
  ["a failure without an error", { event_type: "command.failed", ...ref }],
  [
    "rows that are no list",
    { event_type: "command.completed", ...ref, result: { status: "ok", context: { rows: 3 } } },
  ],
  [
    "tasks that are no texts",
    { event_type: "command.completed", ...ref, result: { status: "ok", context: { tasks: [1] } } },
  ],
  [
    "writes that are none",
    { event_type: "command.completed", ...ref, result: { status: "ok", context: { set: [["x"]] } } },
  ],
  [
    "a reference without its fields",
    { event_type: "task.done", ...ref, task: "t", result: { status: "ok", reference: { ref: "noetl://x" } } },
  ],
  [
    "a virtual field that is no result",
    { event_type: "task.done", ...ref, task: "t", result: { status: "ok", context: { value: 1, virtual: { x: 3 } } } },
  ],
];

for (const [name, body] of BROKEN) {
  test(`refused: ${name}`, () => {
    assert.equal(typeof read(body), "string");
  });
}

test("the end of an iteration that names no tasks has none: its result is null", () => {
  const told = read({ event_type: "loop.iteration.completed", ...ref, iteration: 0 });
  assert.deepEqual(typeof told === "string" ? told : (told as { tasks: unknown }).tasks, []);
});
