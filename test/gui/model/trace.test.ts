import assert from "node:assert/strict";
import { test } from "node:test";
import { rowsOf } from "../../../gui/src/execution/trace/rows.ts";
import { clippedTo } from "../../../gui/src/execution/traced/clipped.ts";
import { commandPieces, iterationPieces, lasted } from "../../../gui/src/execution/traced/pieces.ts";
import { stepTracesOf } from "../../../gui/src/execution/traced/step-traces.ts";
import { type TraceEvent, traceEventOf } from "../../../gui/src/execution/traced/trace-event.ts";
import type { TracedExecution, TraceRow } from "../../../gui/src/execution/traced/trace-row.ts";
import type { ExecutionAnswer as Execution, StepAnswer as Step } from "../../../src/schema/api/executions.ts";

/* The rows of a trace and what their bars show, from steps and events. */

const BEGAN = Date.parse("2026-11-20T06:00:00.000Z");
const moment = (ms: number) => new Date(BEGAN + ms).toISOString();

let nextId = 1;
/** An event of a command, as the API gives it. */
function event(type: string, ms: number, fields: Record<string, unknown> = {}): TraceEvent {
  nextId += 1;
  const record = { event_id: nextId, event_type: type, created_at: moment(ms), node_id: "work", node_name: "work" };
  const made = traceEventOf({ command_id: "1", status: "COMPLETED", ...record, ...fields } as never);
  assert.ok(made !== undefined, type);
  return made;
}

const issued = (ms: number, fields: Record<string, unknown> = {}) =>
  event("command.issued", ms, { step_run_id: "9", ...fields });
const claimed = (ms: number, attempt = 1, fields: Record<string, unknown> = {}) =>
  event("command.claimed", ms, { attempt, worker: "worker-1", ...fields });
const ran = (ms: number, took: number, fields: Record<string, unknown> = {}, run = 1) =>
  event("task.done", ms, { duration_ms: took, result: { context: { run } }, ...fields });
const failedRun = (ms: number, took: number, run: number, fields: Record<string, unknown> = {}) =>
  event("task.done", ms, {
    duration_ms: took,
    status: "FAILED",
    error: { code: "ECONNREFUSED", message: "Nothing listens there" },
    meta: { run },
    ...fields,
  });
const ended = (ms: number, type = "command.completed", fields: Record<string, unknown> = {}) => event(type, ms, fields);

function onlyCommand(events: readonly TraceEvent[]) {
  const [run] = stepTracesOf(events).get("work") ?? [];
  const [command] = run?.commands ?? [];
  assert.ok(command !== undefined);
  return command;
}

/** `queued 0–10, ran good 10–50`: milliseconds since the beginning. */
function text(pieces: ReturnType<typeof commandPieces>): string {
  return pieces
    .map(({ kind, tone, from, to }) => `${kind} ${kind === "ran" ? `${tone} ` : ""}${from - BEGAN}–${to - BEGAN}`)
    .join(", ");
}

function step(name: string, more: Partial<Step> = {}): Step {
  const times = { started_at: moment(0), ended_at: moment(1_000), duration_ms: 1_000 };
  return { name, status: "COMPLETED", attempts: 1, runs: 1, order: 1, ...times, ...more };
}

function execution(steps: readonly Step[], more: Partial<Execution> = {}): Execution {
  const of = { execution_id: "100", catalog_id: "1", path: "test/run", version: 1, status: "COMPLETED", progress: 100 };
  const times = { started_at: moment(0), ended_at: moment(10_000), duration_ms: 10_000 };
  return {
    ...of,
    ...times,
    parent_execution_id: null,
    result: null,
    error: null,
    workload: {},
    steps,
    ...more,
  } as Execution;
}

function traced(of: Execution, events: readonly TraceEvent[] = [], isRead = true): TracedExecution {
  return { execution: of, traces: stepTracesOf(events), isRead, kinds: new Map() };
}

function rows(root: TracedExecution, open: readonly string[] = [], more: Partial<Parameters<typeof rowsOf>[0]> = {}) {
  const input = { called: new Map<string, TracedExecution>(), end: BEGAN + 10_000, isFailedOnly: false, filter: "" };
  return rowsOf({ root, open: new Set(open), ...input, ...more });
}

const line = ({ depth, name, note, state }: TraceRow) => `${" ".repeat(depth)}${name} [${state}] ${note}`.trimEnd();

test("a bar tells waiting for a worker from running, and a retry's wait from both", () => {
  const command = onlyCommand([
    issued(0),
    claimed(100),
    failedRun(200, 90, 1),
    failedRun(900, 100, 2),
    ran(2_000, 150, {}, 3),
    ended(2_010),
  ]);
  assert.equal(
    text(commandPieces(command, BEGAN + 10_000)),
    "queued 0–100, ran bad 110–200, retry 200–800, ran bad 800–900, retry 900–1850, ran good 1850–2000, ran bad 100–110, ran good 2000–2010",
  );
  assert.equal(lasted(commandPieces(command, BEGAN + 10_000), "retry"), 1_550);
});

test("a command that waits for its next attempt shows that as a retry's wait up to now", () => {
  const command = onlyCommand([issued(0), claimed(100), failedRun(200, 100, 1)]);
  assert.equal(text(commandPieces(command, BEGAN + 5_000)), "queued 0–100, ran bad 100–200, retry 200–5000");
});

test("a claim after a lost worker is told apart from one after a wait", () => {
  const lost = onlyCommand([issued(0), claimed(10), claimed(500, 2), ran(600, 100), ended(600)]);
  assert.equal(text(commandPieces(lost, BEGAN + 600)), "queued 0–10, ran bad 10–500, ran good 500–600");
  const woken = onlyCommand([issued(0), claimed(10), event("command.parked", 20), claimed(500), ended(510)]);
  assert.equal(text(commandPieces(woken, BEGAN + 600)), "queued 0–10, ran good 10–20, parked 20–500, ran good 500–510");
});

test("what is parked is parked up to now; a command that no worker took waited to its end", () => {
  const parked = onlyCommand([issued(0), claimed(10), event("command.parked", 20)]);
  assert.equal(text(commandPieces(parked, BEGAN + 900)), "queued 0–10, ran good 10–20, parked 20–900");
  assert.equal(text(commandPieces(onlyCommand([issued(0)]), BEGAN + 900)), "queued 0–900");
  const cancelled = onlyCommand([issued(0), ended(70, "command.cancelled")]);
  assert.equal(text(commandPieces(cancelled, BEGAN + 900)), "queued 0–70");
});

test("a retry that is parked, as those far away are, is a retry and no wait of its own", () => {
  const command = onlyCommand([issued(0), claimed(10), failedRun(30, 20, 1), event("command.parked", 31)]);
  assert.equal(text(commandPieces(command, BEGAN + 900)), "queued 0–10, ran bad 10–30, ran good 30–31, retry 31–900");
});

test("pages of the log may be read in any order, and events after the chosen one did not happen", () => {
  const events = [issued(0), claimed(10), ran(50, 30), ended(60)];
  const inOrder = stepTracesOf(events);
  assert.deepEqual(stepTracesOf(events.toReversed()), inOrder);
  const until = events[1]?.id ?? 0;
  const [run] = stepTracesOf(events, until).get("work") ?? [];
  assert.equal(run?.commands[0]?.endedAt, undefined);
  assert.equal(run?.commands[0]?.claims.length, 1);
});

test("iterations of one command have the time of their own tasks", () => {
  const command = onlyCommand([
    issued(0, { meta: { iterations: { from: 0, to: 2 } } }),
    claimed(10),
    ran(30, 15, { iteration: 0 }),
    event("loop.iteration.completed", 31, { iteration: 0 }),
    failedRun(60, 20, 1, { iteration: 1 }),
    event("loop.iteration.failed", 61, { iteration: 1, status: "FAILED" }),
    ended(62),
  ]);
  const first = iterationPieces(command, { index: 0, endedAt: BEGAN + 31, isFailed: false }, BEGAN + 100);
  assert.equal(text(first), "ran good 15–30, ran good 30–31");
  const second = iterationPieces(command, { index: 1, endedAt: BEGAN + 61, isFailed: true }, BEGAN + 100);
  assert.equal(text(second), "ran bad 40–60, ran bad 60–61");
});

test("steps stand in the server's order; those that were not reached, skipped or reused say so", () => {
  const steps = [
    step("a"),
    step("b", { status: "FAILED" }),
    step("c", { reused_from: { execution_id: "77", event_id: 5 } as never }),
    step("d", { status: "SKIPPED", started_at: null, ended_at: null, runs: 0 }),
    step("e", { status: "PENDING", started_at: null, ended_at: null, runs: 0 }),
  ];
  assert.deepEqual(rows(traced(execution(steps))).map(line), [
    "a [COMPLETED]",
    "b [FAILED]",
    "c [REUSED] reused from 77",
    "d [SKIPPED] skipped",
    "e [UNREACHED] not reached",
  ]);
  assert.deepEqual(
    rows(traced(execution(steps)), [], { filter: "failed" }).map(({ name }) => name),
    ["b"],
  );
});

test("a step of an open execution is queued, retrying or waiting where it is", () => {
  const open = (name: string, more: Partial<Step> = {}) => step(name, { status: "RUNNING", ended_at: null, ...more });
  const of = execution([open("train"), open("fetch"), open("paid", { status: "WAITING" }), open("crunch")], {
    status: "RUNNING",
    ended_at: null,
    commands: [
      { command_id: "1", step: "train", attempt: 0, worker: null, claimed_at: null, status: "PENDING" },
      { command_id: "2", step: "crunch", attempt: 1, worker: "worker-1", claimed_at: moment(5), status: "RUNNING" },
    ],
    next_retry: { step: "fetch", task: "fetch", at: moment(20_000), run: 2, error: null },
    waiting_for: [{ step: "paid", kind: "signal", name: "paid" }],
  } as never);
  assert.deepEqual(rows(traced(of)).map(line), [
    "train [QUEUED] waits for a worker",
    "fetch [RETRYING] waits to retry",
    "paid [WAITING] waits for signal paid",
    "crunch [RUNNING]",
  ]);
  const [train] = rows(traced({ ...of, status: "PAUSED" })).map(line);
  assert.equal(train, "train [QUEUED] paused", "no worker may take it");
});

/** A loop whose items came out as the letters say: `g` well, `b` badly, `r` runs; of others nothing is known. */
function loop(letters: string, isOver = true, isRead = true): TracedExecution {
  const events: TraceEvent[] = [];
  for (const [index, letter] of [...letters].entries()) {
    const own = { command_id: `c${index}` };
    if (letter === ".") continue;
    events.push(
      issued(index, { ...own, meta: { iterations: { from: index, to: index + 1 } } }),
      claimed(index, 1, own),
    );
    if (letter === "g") events.push(event("loop.iteration.completed", index + 5, { ...own, iteration: index }));
    if (letter === "b") {
      events.push(event("loop.iteration.failed", index + 5, { ...own, iteration: index, status: "FAILED" }));
    }
  }
  const count = (letter: string) => [...letters].filter((each) => each === letter).length;
  const counts = { total: letters.length, done: isOver ? letters.length : count("g") + count("b"), failed: count("b") };
  const times = isOver ? {} : { ended_at: null, status: "RUNNING" as const };
  return traced(execution([step("work", { loop: counts, ...times })], times as never), events, isRead);
}

test("few items stand one by one; of many, neighbours that came out alike are one row", () => {
  const few = rows(loop("g".repeat(30)), ["100/work"]);
  assert.equal(few.length, 31);
  assert.equal(few[30]?.name, "item 29");
  const many = rows(loop(`${"g".repeat(20)}b${"g".repeat(10)}`), ["100/work"]);
  assert.deepEqual(many.map(line), [
    "work [COMPLETED] 31 items, 1 failed",
    " items 0–19 [COMPLETED] 20 completed",
    " item 20 [FAILED]",
    " items 21–30 [COMPLETED] 10 completed",
  ]);
  const open = rows(loop(`${"g".repeat(20)}b${"g".repeat(10)}`), ["100/work", "100/work/g0-20"]);
  assert.equal(open.length, 24);
  assert.equal(open[2]?.depth, 2);
});

test("three alike stand alone, four are one row, and no row has more than a thousand", () => {
  const at = (count: number) => rows(loop(`b${"g".repeat(count)}${"b".repeat(40)}`), ["100/work"]);
  assert.equal(at(3).filter(({ kind }) => kind === "range").length, 0);
  assert.equal(at(4).filter(({ kind }) => kind === "range").length, 1);
  const ranges = (count: number) => rows(loop("g".repeat(count)), ["100/work"]).map(({ name }) => name);
  assert.deepEqual(ranges(1_000).slice(1), ["items 0–999"]);
  assert.deepEqual(ranges(1_001).slice(1), ["items 0–999", "item 1,000"]);
});

test("only what failed is listed where that is asked for", () => {
  const found = rows(loop(`${"g".repeat(40)}bg`), ["100/work"], { isFailedOnly: true });
  assert.deepEqual(found.slice(1).map(line), [" item 40 [FAILED]"]);
});

test("an open loop tells what runs from what has not begun; a loop that ended early tells what was not reached", () => {
  assert.deepEqual(
    rows(loop(`${"g".repeat(30)}rr${".".repeat(8)}`, false), ["100/work"])
      .slice(1)
      .map(line),
    [
      " items 0–29 [COMPLETED] 30 completed",
      " item 30 [RUNNING]",
      " item 31 [RUNNING]",
      " items 32–39 [PENDING] 8 not begun",
    ],
  );
  const early = loop(`${"g".repeat(30)}${".".repeat(8)}`);
  const [first] = early.execution.steps;
  if (first?.loop !== undefined) first.loop.done = 30;
  assert.equal(rows(early, ["100/work"]).at(-1)?.state, "UNREACHED");
});

test("what was not read of a log is not said to have failed or to be missing", () => {
  const unread = loop(`${"g".repeat(30)}${".".repeat(70)}`, true, false);
  assert.equal(rows(unread, ["100/work"]).at(-1)?.note, "100 completed", "all that failed is known: nothing");
  const [first] = unread.execution.steps;
  if (first?.loop !== undefined) first.loop.failed = 2;
  assert.equal(rows(unread, ["100/work"]).at(-1)?.note, "70 not read yet");
});

test("what a step called nests beneath it, three deep, and is read when it is unfolded", () => {
  const called = (id: string) => [
    issued(0),
    claimed(5),
    event("call.done", 90, { meta: { child_execution_id: id } }),
    ended(95),
  ];
  const child = execution([step("work")], { execution_id: "200", path: "test/child" });
  const grandchild = execution([step("last")], { execution_id: "300", path: "test/grandchild" });
  const root = traced(execution([step("work")]), called("200"));
  assert.equal(rows(root)[0]?.canUnfold, true);
  assert.deepEqual(
    rows(root, ["100/work"]).map(({ kind }) => kind),
    ["step", "note"],
  );
  const all = new Map([
    ["200", traced(child, called("300"))],
    ["300", traced(grandchild)],
  ]);
  const found = rows(root, ["100/work", "200/work"], { called: all });
  assert.deepEqual(found.map(line), [
    "work [COMPLETED] test/child v1",
    " work [COMPLETED] test/grandchild v1",
    "  last [COMPLETED]",
  ]);
  assert.deepEqual(
    found.map(({ executionId }) => executionId),
    ["100", "200", "300"],
  );
});

test("a playbook that calls itself is unfolded to a depth that ends", () => {
  const own = [issued(0), claimed(5), event("call.done", 90, { meta: { child_execution_id: "100" } }), ended(95)];
  const root = traced(execution([step("work")]), own);
  const found = rows(root, ["100/work"], { called: new Map([["100", root]]) });
  assert.ok(found.length <= 14, `${found.length} rows`);
});

test("attempts, and runs of a step that is gone through more than once, are rows of their own", () => {
  const retried = traced(execution([step("work")]), [
    issued(0),
    claimed(5),
    failedRun(20, 10, 1),
    ran(900, 20, {}, 2),
    ended(905),
  ]);
  assert.deepEqual(rows(retried, ["100/work"]).map(line), [
    "work [COMPLETED] attempt 2",
    " attempt 1 [FAILED] ECONNREFUSED",
    " attempt 2 [COMPLETED]",
  ]);
  const twice = traced(execution([step("work", { runs: 2 })]), [
    ...[issued(0), claimed(5), ended(10)],
    ...[issued(20, { command_id: "2", step_run_id: "10" }), claimed(25, 1, { command_id: "2" })],
  ]);
  assert.deepEqual(rows(twice, ["100/work"]).map(line), [
    "work [COMPLETED] 2 runs",
    " run 1 [COMPLETED] worker-1",
    " run 2 [RUNNING] worker-1",
  ]);
});

test("a called execution of the past has no later step, and what ran then runs up to the moment", () => {
  const of = execution([step("a"), step("b", { started_at: moment(2_000), ended_at: moment(3_000) })]);
  const then = clippedTo(of, BEGAN + 500);
  assert.equal(then.ended_at, moment(500));
  assert.deepEqual(
    then.steps.map(({ status, ended_at }) => `${status} ${ended_at}`),
    [`RUNNING ${moment(500)}`, "PENDING null"],
  );
});

test("ten thousand items unfold to a row each, in ranges of a thousand", () => {
  const root = loop(`${"g".repeat(9_999)}b`);
  const ranges = rows(root, ["100/work"]);
  assert.equal(ranges.length, 12);
  const found = rows(
    root,
    ranges.map(({ key }) => key),
  );
  assert.equal(found.length, 10_011);
  assert.equal(new Set(found.map(({ key }) => key)).size, found.length, "each has a key of its own");
});
