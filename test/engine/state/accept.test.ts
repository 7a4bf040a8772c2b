import assert from "node:assert/strict";
import { test } from "node:test";
import { accept } from "../../../src/engine/state/accept.ts";
import { evolve } from "../../../src/engine/state/evolve.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import { type Given, given } from "../support/given.ts";
import { cancelled, claimed, done, type Report, raw } from "../support/reports.ts";

// Decisions, "Event batches"; reliability: late, duplicated, stale and early reports change nothing.

const CHAIN = "workflow: [{ step: a, next: b }, { step: b }]";

/** The events of a report, not given to the engine. */
function eventsOf(run: Given, report: Report): FlowEvent[] {
  // The program is only read for labels, which default to the step's name.
  return report({ state: run.state, program: { steps: new Map() } as never, now: 2_000_000 });
}

test("every report of a step is refused once the step's command has ended", () => {
  const run = given(CHAIN).when(claimed("a"));
  const events = eventsOf(run, done("a"));
  run.when(raw(...events)).refuses("unknown", ...events.map((event) => raw(event)));
});

test("every report is refused once the run is over", () => {
  const run = given(CHAIN).when(done("a"), claimed("b"));
  const events = eventsOf(run, done("b"));
  run.when(raw(...events)).refuses("late", ...events.map((event) => raw(event)), cancelled());
});

test("a report for a command that never existed is unknown", () => {
  given(CHAIN).refuses("unknown", ({ now }) => [
    { type: "command.completed", at: now, command_id: "999", attempt: 1, step: "a" },
  ]);
});

test("a claim that reported long work runs until another claim takes its place", () => {
  const run = given(CHAIN).when(claimed("a", 1));
  const [id = ""] = Object.keys(run.state.commands);
  const running = () => run.state.commands[id]?.running;
  const started = (attempt: number) =>
    raw({ type: "command.started", at: 2_000_000, command_id: id, attempt, step: "a", worker: "w" });
  assert.equal(running(), undefined);
  run.when(started(1));
  assert.equal(running(), true);
  run.when(claimed("a", 2));
  assert.equal(running(), undefined);
  run.refuses("stale", started(1));
});

test("a claim must raise the attempt", () => {
  given(CHAIN).when(claimed("a", 1)).refuses("stale", claimed("a", 1), claimed("a", 0)).when(claimed("a", 2));
});

test("after another claim, reports with the old attempt are stale, the new worker's are not", () => {
  const run = given(CHAIN).when(claimed("a"));
  const old = eventsOf(run, done("a", { by: "old" }));
  run
    .when(claimed("a"))
    .refuses("stale", ...old.map((event) => raw(event)))
    .when(done("a", { by: "new" }))
    .is({ results: { a: { by: "new" } } });
});

test("a report without a claim is stale", () => {
  given(CHAIN).refuses("stale", ({ state, now }) => [
    { type: "command.completed", at: now, command_id: Object.keys(state.commands)[0] ?? "", attempt: 1, step: "a" },
  ]);
});

test("the end of a command is early while results it refers to have not arrived", () => {
  const run = given(CHAIN).when(claimed("a"));
  const [taskDone, end] = eventsOf(run, done("a", { n: 1 }));
  assert.ok(taskDone && end);
  run
    .refuses("early", raw(end))
    .when(raw(taskDone))
    .when(raw(end))
    .is({ results: { a: { n: 1 } } });
});

test("a failure is early too: its result is what the arcs read", () => {
  const run = given(CHAIN).when(claimed("a"));
  const [taskDone, end] = eventsOf(run, done("a", { status: 404 }));
  assert.ok(taskDone && end?.type === "command.completed");
  const error = { kind: "not_found", code: "HTTP_404", message: "no", retryable: false } as const;
  const failure: FlowEvent = { ...end, type: "command.failed", error };
  run
    .refuses("early", raw(failure))
    .when(raw(taskDone, failure))
    .is({ results: { a: { status: 404 } } });
});

const LOOP = "workflow: [{ step: each, loop: { in: 3, spec: { mode: parallel, policy: { exec: local } } } }]";

test("an iteration's end is early before its results, a loop command's before its iterations", () => {
  const run = given(LOOP).when(claimed("each"));
  const [taskDone, iterationEnd] = eventsOf(run, done("each", 1, { iteration: 0 }));
  assert.ok(taskDone && iterationEnd);
  const end: FlowEvent = {
    type: "command.completed",
    at: 0,
    command_id: Object.keys(run.state.commands)[0] ?? "",
    attempt: 1,
    step: "each",
    iterations: 3,
  };
  run
    .refuses("early", raw(iterationEnd), raw(end))
    .when(raw(taskDone, iterationEnd))
    .refuses("unknown", raw(taskDone), raw(iterationEnd))
    .refuses("early", raw(end))
    .when(done("each", 1, { iteration: 2 }))
    .refuses("early", raw(end))
    .when(done("each", 1, { iteration: 1 }))
    .is({ status: "COMPLETED" });
});

test("an iteration outside its command is unknown", () => {
  given("workflow: [{ step: each, loop: { in: 3 } }]")
    .when(claimed("each"))
    .refuses("unknown", ({ state, now }) => [
      {
        type: "loop.iteration.completed",
        at: now,
        command_id: Object.keys(state.commands)[0] ?? "",
        attempt: 1,
        step: "each",
        iteration: 1,
        tasks: [],
      },
    ]);
});

test("a new claim voids the results of unfinished work and keeps the iterations that ended", () => {
  const run = given(LOOP).when(done("each", "first", { iteration: 0 }));
  const [unfinished] = eventsOf(run, done("each", "void", { iteration: 1 }));
  assert.ok(unfinished);
  run.when(raw(unfinished)).when(claimed("each"));
  assert.deepEqual(Object.values(run.state.commands)[0]?.values, {});
  run
    .refuses("unknown", done("each", "again", { iteration: 0 }))
    .when(done("each", "second", { iteration: 1 }), done("each", "third", { iteration: 2 }))
    .is({
      status: "COMPLETED",
      results: {
        each: {
          results: ["first", "second", "third"],
          stats: { total: 3, success: 3, failed: 0 },
          iterations: 3,
          status: "completed",
        },
      },
    });
});

test("the number of claims can be read as the step's attempts", () => {
  const run = given(CHAIN).when(claimed("a"), claimed("a"), claimed("a"), done("a"));
  assert.equal(run.state.steps["a"]?.attempts, 3);
});

test("evolve leaves the state alone for events that do not apply", () => {
  const run = given(CHAIN).when(done("a", { n: 1 }, { set: [["x", 1]] }));
  const before = JSON.stringify(run.state);
  const ref = { command_id: "999", attempt: 1, step: "a" };
  const strays: FlowEvent[] = [
    { type: "command.claimed", at: 1, ...ref },
    {
      type: "task.done",
      at: 1,
      ...ref,
      task: "a",
      task_run_id: "r",
      status: "ok",
      run: 1,
      final: true,
      result: { value: 2 },
      duration_ms: 1,
    },
    { type: "command.completed", at: 1, ...ref, tasks: ["a"], set: [["x", 2]] },
    { type: "loop.iteration.completed", at: 1, ...ref, iteration: 0, tasks: [], set: [["x", 3]] },
    { type: "command.cancelled", at: 1, command_id: "999", step: "a", reason: "" },
  ];
  for (const event of strays) evolve(run.state, event);
  assert.equal(JSON.stringify(run.state), before);
});

test("a duplicate of a task's result changes nothing", () => {
  const run = given(CHAIN).when(claimed("a"));
  const [taskDone, end] = eventsOf(run, done("a", { n: 1 }));
  assert.ok(taskDone && end);
  run.when(raw(taskDone));
  assert.equal(accept(run.state, taskDone), "accepted");
  const before = JSON.stringify(run.state);
  evolve(run.state, taskDone);
  assert.equal(JSON.stringify(run.state), before);
});

test("a duplicated cancellation is late", () => {
  given(CHAIN).when(cancelled()).refuses("late", cancelled());
});

/** How far a task of the step's command is, as a worker tells it. */
function progress(more: { attempt?: number; iteration?: number } = {}): Report {
  return ({ state, now }) => {
    const [command_id = "", command] = Object.entries(state.commands)[0] ?? [];
    const ref = { command_id, attempt: command?.attempt ?? 0, step: command?.step ?? "", ...more };
    const about = { task: "t", task_run_id: `${command_id}-0-0`, run: 1 };
    return [{ type: "task.progress", at: now, ...ref, ...about, progress: { rows: 5 } }];
  };
}

test("the progress of a task is accepted from the holder of its command, and changes nothing", () => {
  const run = given(CHAIN).when(claimed("a"));
  const before = structuredClone(run.state);
  run.when(progress());
  assert.deepEqual(run.state, before);
  run.when(done("a")).is({ results: { a: { status: "ok" } } });
});

test("progress is refused for a lost claim, an ended command and an ended run", () => {
  const run = given(CHAIN)
    .refuses("stale", progress({ attempt: 1 }))
    .when(claimed("a"));
  const old = eventsOf(run, progress());
  run
    .when(claimed("a"))
    .refuses("stale", raw(...old))
    .when(done("a"))
    .refuses("unknown", raw(...old))
    .when(done("b"))
    .refuses("late", raw(...old));
});

test("progress is refused for an ended iteration and for another command's iteration", () => {
  given(LOOP)
    .when(claimed("each"), progress({ iteration: 1 }))
    .refuses("unknown", progress({ iteration: 3 }), progress())
    .when(done("each", 1, { iteration: 1 }))
    .refuses("unknown", progress({ iteration: 1 }));
});
