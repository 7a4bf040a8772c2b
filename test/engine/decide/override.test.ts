import assert from "node:assert/strict";
import { test } from "node:test";
import type { OverrideAction } from "../../../src/schema/words/event.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import { given } from "../support/given.ts";
import { cancelled, claimed, done, failed, overridden, paused, raw, resumed, rows } from "../support/reports.ts";

// Control, section 1 and rule 14: a person ends a step or an iteration; its commands are cancelled and its arcs follow.

const TWO_STEPS = `
workflow:
  - { step: a, next: b }
  - { step: b }
`;

const HANDLED = `
workflow:
  - step: a
    next:
      arcs:
        - { step: mend, when: "{{ event.name == 'step.failed' }}" }
        - { step: b, when: "{{ event.name == 'step.done' }}" }
  - { step: mend }
  - { step: b }
`;

const loop = (spec: string, list = "[1, 2, 3, 4]") => `
workload: { list: ${list} }
workflow:
  - { step: each, loop: { in: "{{ list }}", iterator: x, spec: ${spec} }, next: after }
  - { step: after }
`;
const PARALLEL = loop("{ mode: parallel, max_in_flight: 2 }");
const LOCAL = loop("{ mode: parallel, policy: { exec: local }, max_in_flight: 2 }");

/** The value of a loop's result, by the results of its iterations; skipped ones count neither as successes nor as failures. */
const loopOf = (results: Json, success = 3): Json => ({
  results,
  iterations: success,
  stats: { total: 4, success, failed: 0 },
  status: "completed",
});

const skip = (step: string, iteration?: number) => overridden(step, "skip", { iteration });
const complete = (step: string, value: Json, iteration?: number) =>
  overridden(step, "complete", { iteration, result: { value } });
const fail = (step: string, iteration?: number) =>
  overridden(step, "fail", {
    iteration,
    error: { kind: "unknown", code: "OVERRIDDEN", message: "by hand", retryable: false },
  });

test("a step that runs is skipped: its command is cancelled, its arcs follow, and a late report changes nothing", () => {
  const run = given(TWO_STEPS).when(claimed("a"));
  const [command_id = ""] = Object.keys(run.state.commands);
  const late = { at: 0, command_id, attempt: 1, step: "a", worker: "w" };
  run
    .when(skip("a"))
    .then("command.cancelled a", "step.skipped a (overridden) -> b", "command.issued b")
    .is({ steps: { a: "SKIPPED", b: "RUNNING" }, open: ["b"] });
  run.refuses("unknown", raw({ type: "command.completed", ...late, tasks: [] }));
  run.when(done("b", 2)).is({ status: "COMPLETED", result: 2 });
});

test("a step is completed with a result, which later steps read, or failed, and its arcs look at that", () => {
  given(HANDLED)
    .when(complete("a", { rows: 3 }))
    .is({ steps: { a: "COMPLETED" }, results: { a: { rows: 3 } }, open: ["b"] });
  given(HANDLED)
    .when(claimed("a"), fail("a"))
    .is({ steps: { a: "FAILED" }, open: ["mend"] });
  given(TWO_STEPS)
    .when(fail("a"))
    .is({ status: "FAILED", error: /by hand/ });
});

test("on a step not begun it counts when that is reached, whatever its guard says", () => {
  const text = TWO_STEPS.replace("{ step: b }", `{ step: b, when: "{{ 1 / 0 }}", next: c }\n  - { step: c }`);
  for (const [report, status] of [
    [skip("b"), "SKIPPED"],
    [complete("b", 7), "COMPLETED"],
  ] as const) {
    given(text)
      .when(report)
      .then()
      .is({ steps: { b: "PENDING" }, open: ["a"] })
      .when(done("a"))
      .is({ steps: { b: status }, open: ["c"] })
      .when(done("c"))
      .is({ status: "COMPLETED" });
  }
  given(TWO_STEPS)
    .when(fail("b"), done("a"))
    .is({ status: "FAILED", steps: { b: "FAILED" } });
});

test("of two said before a step begins the later one counts; it counts once where the graph leads back", () => {
  given(TWO_STEPS).when(skip("b"), complete("b", 1), done("a")).is({ status: "COMPLETED", result: 1 });
  const text = `
workflow:
  - { step: a, next: b }
  - step: b
    next: { arcs: [{ step: b, when: "{{ again }}", set: { again: false } }], spec: { mode: inclusive } }
workload: { again: true }
`;
  given(text)
    .when(skip("b"), done("a"))
    .is({ steps: { b: "RUNNING" }, open: ["b"] });
});

test("one that no path leads to any more is skipped as ever", () => {
  given(HANDLED)
    .when(complete("mend", 1), done("a"), done("b"))
    .is({ status: "COMPLETED", steps: { mend: "SKIPPED" } });
});

test("an ended step, an ended execution, an iteration of what has not begun: refused", () => {
  given(TWO_STEPS)
    .when(done("a"))
    .refuses("unknown", skip("a"), skip("b", 0))
    .when(skip("b"))
    .refuses("late", skip("b"));
  given(TWO_STEPS).when(cancelled()).refuses("late", skip("a"), skip("b"));
});

test("during a pause the command is cancelled at once, and the arcs follow the resumption", () => {
  given(TWO_STEPS)
    .when(claimed("a"), paused(), complete("a", 5))
    .then("command.cancelled a")
    .is({ status: "PAUSED", open: [], steps: { a: "RUNNING", b: "PENDING" } })
    .refuses("unknown", skip("a"))
    .when(resumed())
    .then("step.completed a -> b", "command.issued b")
    .is({ results: { a: 5 } });
  given(PARALLEL)
    .when(paused(), skip("each"))
    .is({ open: [] })
    .when(resumed())
    .then("loop.done each 0/4", "step.skipped each (overridden) -> after", "command.issued after");
});

test("one iteration ends as said, the others go on, and results keep their order", () => {
  given(PARALLEL)
    .when(claimed("each"), skip("each", 0))
    .then("command.cancelled each", "command.issued each[2]")
    .when(complete("each", "given", 2), done("each", 2), done("each", 4, { iteration: 3 }))
    .is({ results: { each: loopOf([null, 2, "given", 4]) }, open: ["after"] })
    .when(done("after"))
    .is({ status: "COMPLETED" });
});

test("an iteration that was not issued is not issued any more", () => {
  const run = given(PARALLEL).when(skip("each", 3), complete("each", "c", 2));
  run.refuses("unknown", skip("each", 3), skip("each", 4));
  run.when(done("each", 1), done("each", 2)).is({ results: { each: loopOf([1, 2, "c", null]) }, open: ["after"] });
  assert.deepEqual(
    run.commands.flatMap(({ loop }) => (loop === undefined ? [] : [loop.from])),
    [0, 1],
  );
  given(loop("{ mode: sequential }"))
    .when(skip("each", 1), done("each", 1))
    .is({ open: ["each"] })
    .when(done("each", 3))
    .when(done("each", 4))
    .is({ results: { each: loopOf([1, null, 3, 4]) } });
});

test("the failed iteration of a loop that stops on errors stops it; of one that tolerates it, it is one of its failures", () => {
  given(loop("{ mode: sequential }"))
    .when(fail("each", 0))
    .is({ status: "FAILED", error: /1 of 4 iterations.*by hand/ });
  given(loop("{ mode: parallel, max_in_flight: 2, on_error: { tolerate: 1 } }"))
    .when(fail("each", 1), done("each", 1), done("each", 3), done("each", 4))
    .is({ steps: { each: "COMPLETED" }, open: ["after"] });
});

test("iterations of one command: the one that a person ended is left out, the others go on, and its report is not missed", () => {
  given(LOCAL)
    .when(claimed("each"), complete("each", "given", 1), done("each", 1, { iteration: 0 }))
    .is({ open: ["each"] })
    .refuses("unknown", (run) => done("each", "late", { iteration: 1 })(run).slice(0, 1))
    .when(done("each", 3, { iteration: 2 }), done("each", 4, { iteration: 3 }))
    .is({ results: { each: loopOf([1, "given", 3, 4], 4) }, open: ["after"] });
});

test("the last open iteration of a shared command ends: the command is cancelled", () => {
  given(loop("{ mode: parallel, policy: { exec: local } }", "[1, 2]"))
    .when(claimed("each"), skip("each", 0), skip("each", 1))
    .then("command.cancelled each", "loop.done each 0/2", "step.completed each -> after", "command.issued after");
});

test("a loop as a whole: what has ended keeps its results, what is open ends as said, the rest is not run", () => {
  const ends: [OverrideAction, string, Json][] = [
    ["skip", "SKIPPED", loopOf(["x", null, null], 1)],
    ["complete", "COMPLETED", loopOf(["x", 9, 9])],
  ];
  for (const [action, status, results] of ends) {
    given(PARALLEL)
      .when(done("each", "x"), overridden("each", action, action === "complete" ? { result: { value: 9 } } : {}))
      .is({ steps: { each: status }, results: { each: results }, open: ["after"] });
  }
  given(PARALLEL)
    .when(done("each", "x"), fail("each"))
    .is({ status: "FAILED", steps: { each: "FAILED" }, error: /by hand/ });
});

test("results that are merged leave out what was skipped", () => {
  const text = PARALLEL.replace("next: after", "spec: { result: { accumulate: { strategy: merge } } }, next: after");
  given(text)
    .when(skip("each", 0), done("each", { b: 1 }), done("each", { c: 1 }), done("each", { d: 1 }))
    .is({ results: { each: loopOf({ b: 1, c: 1, d: 1 }) } });
});

test("a cursor's row ends as said, its claim is cancelled with the loop, and rows that are not issued are no iterations yet", () => {
  const text = `
workflow:
  - step: each
    loop:
      cursor: { kind: postgres, claim: "update t set taken = true returning *" }
      iterator: row
      spec: { mode: cursor, frame: { max_rows: 3, row_concurrency: 2 } }
    tool: { kind: noop }
`;
  given(text)
    .when(rows("each", [{ id: 1 }, { id: 2 }, { id: 3 }]))
    .refuses("unknown", skip("each", 2))
    .when(skip("each", 0))
    .is({ open: ["each", "each"] })
    .when(skip("each"))
    .is({ status: "COMPLETED", steps: { each: "SKIPPED" } });
  given(text)
    .when(claimed("each"), complete("each", 1))
    .then(
      "command.cancelled each",
      "loop.done each 0/0",
      "step.completed each",
      "workflow.completed",
      "playbook.completed each",
    );
});

test("a branch that others wait for is skipped: the join begins once", () => {
  const text = `
workflow:
  - { step: a, next: { arcs: [{ step: left }, { step: right }], spec: { mode: inclusive } } }
  - { step: left, next: join }
  - { step: right, next: join }
  - { step: join }
`;
  given(text)
    .when(done("a"), skip("left"))
    .is({ open: ["right"] })
    .when(done("right"))
    .is({ open: ["join"] });
  given(text).when(done("a"), skip("join"), done("left"), failed("right")).is({ status: "FAILED" });
});

test("who has ended iterations is known until the step runs again, of the newest hundred", () => {
  const around = `
workflow:
  - step: a
    loop: { in: 150, iterator: n, spec: { mode: parallel, max_in_flight: 1 } }
    next: b
  - step: b
    next: { arcs: [{ step: a, when: "{{ again }}" }] }
workload: { again: true }
`;
  const run = given(around).when(skip("a", 7), complete("a", 9, 0));
  const noted = () =>
    run.state.steps["a"]?.iterationsByHand?.map(({ iteration, action, reason }) => [iteration, action, reason]);
  assert.deepEqual(noted(), [
    [7, "skip", "stuck"],
    [0, "complete", "stuck"],
  ]);
  for (let iteration = 149; iteration > 40; iteration -= 1) run.when(skip("a", iteration));
  assert.deepEqual([noted()?.length, noted()?.at(0)?.[0], noted()?.at(-1)?.[0]], [100, 140, 41]);
  assert.equal(run.state.steps["a"]?.overridden, undefined);
  run.when(skip("a"));
  assert.equal(noted()?.length, 100);
  run.when(claimed("b"), done("b"));
  assert.equal(run.state.steps["a"]?.status, "RUNNING");
  assert.equal(noted(), undefined);
});

test("who has ended a step is known until it runs again", () => {
  const around = `
workflow:
  - { step: a, next: b }
  - step: b
    next: { arcs: [{ step: a, when: "{{ again }}" }] }
workload: { again: true }
`;
  const run = given(around).when(claimed("a"), skip("a"));
  assert.equal(run.state.steps["a"]?.overridden?.action, "skip");
  run.when(claimed("b"), done("b"));
  assert.equal(run.state.steps["a"]?.status, "RUNNING");
  assert.equal(run.state.steps["a"]?.overridden, undefined);
});
