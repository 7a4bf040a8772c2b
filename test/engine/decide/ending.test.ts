import assert from "node:assert/strict";
import { test } from "node:test";
import { startExecution } from "../../../src/engine/decide/start.ts";
import { countingEnv, given } from "../support/given.ts";
import { compile } from "../support/playbook.ts";
import { cancelled, claimed, done, failed, rows, timedOut } from "../support/reports.ts";

// Language document, section 7: how a run ends, and what its result is.

test("the result is that of the step that completed last", () => {
  given("workflow: [{ step: a, next: [b, c] }, { step: b }, { step: c }]")
    .when(done("a", { n: 0 }), done("c", { n: 2 }), done("b", { n: 1 }))
    .is({ status: "COMPLETED", result: { n: 1 } });
});

test("the result is that of end if it ran, although another step finished later", () => {
  given("workflow: [{ step: a, next: [b, end] }, { step: b }, { step: end }]")
    .when(done("a"), done("end", { n: "end" }), done("b", { n: "b" }))
    .is({ status: "COMPLETED", result: { n: "end" } });
});

const FINAL = `
executor: { spec: { final_step: tidy } }
workflow:
  - { step: a, next: { arcs: [{ step: tidy, when: "{{ a.early }}" }] } }
  - { step: tidy, input: { last: "{{ result.n }}" }, next: { arcs: [{ step: after, when: "{{ tidy.more }}" }] } }
  - { step: after }
`;

test("the final step runs once when nothing else is left, and gives the result", () => {
  const run = given(FINAL)
    .when(done("a", { n: 1 }))
    .then("step.completed a", "command.issued tidy")
    .when(done("tidy", { tidied: true }))
    .then("step.completed tidy", "step.skipped after (unreached)", "workflow.completed", "playbook.completed tidy")
    .is({ result: { tidied: true } });
  assert.equal(run.commands.at(-1)?.context.from, "a");
});

test("a final step that an arc has led to does not run a second time", () => {
  given(FINAL)
    .when(done("a", { early: true }), done("tidy"))
    .is({ status: "COMPLETED" });
});

test("the arcs of the final step are followed", () => {
  given(FINAL)
    .when(done("a", {}), done("tidy", { more: true }))
    .is({ open: ["after"] })
    .when(done("after"))
    .is({ status: "COMPLETED" });
});

test("a final step whose guard is false is not tried again", () => {
  given(`
executor: { spec: { final_step: tidy } }
workflow: [{ step: a }, { step: tidy, when: false }]
`)
    .when(done("a", { n: 1 }))
    .then("step.completed a", "step.skipped tidy (when)", "workflow.completed", "playbook.completed a");
});

test("a final step that fails, fails the run", () => {
  given("executor: { spec: { final_step: tidy } }\nworkflow: [{ step: a }, { step: tidy }]")
    .when(done("a"), failed("tidy"))
    .is({ status: "FAILED", error: /boom/ });
});

test("the final step does not run after an unhandled failure", () => {
  given("executor: { spec: { final_step: tidy } }\nworkflow: [{ step: a }, { step: tidy }]")
    .when(failed("a"))
    .is({ status: "FAILED", steps: { tidy: "PENDING" } });
});

test("a run with a target goes no further than that step", () => {
  given(
    "executor: { spec: { final_step: tidy } }\nworkflow: [{ step: a, next: b }, { step: b, next: c }, { step: c }, { step: tidy }]",
    {
      target: "b",
    },
  )
    .when(done("a"), done("b", { n: 1 }))
    .is({ status: "COMPLETED", result: { n: 1 }, steps: { b: "COMPLETED", tidy: "PENDING" } });
});

test("a target that fails, fails the run although an arc would have taken it", () => {
  given("workflow: [{ step: a, next: { arcs: [{ step: b, when: \"event.name == 'step.failed'\" }] } }, { step: b }]", {
    target: "a",
  })
    .when(failed("a"))
    .is({ status: "FAILED" });
});

test("a target that is not a step is refused at the start, with the names of the steps", () => {
  const request = { executionId: "1", catalogId: "2", input: {}, target: "x" };
  assert.throws(() => startExecution(request, compile("workflow: [{ step: a }, { step: b }]"), countingEnv()), {
    code: "NOT_FOUND",
    message: /no step 'x' .* a, b$/,
  });
});

test("the workload is rendered once, in order, and inputs replace its keys", () => {
  const { state } = given(
    `
workload: { a: 1, b: "{{ a + 1 }}", c: "{{ b ~ '!' }}", d: "{{ d }}", e: "{{ now() }}" }
workflow: [{ step: s }]
`,
    { input: { a: 10, extra: true } },
  );
  assert.deepEqual(state.workload, { a: 10, b: 11, c: "11!", d: null, e: state.workload["e"], extra: true });
  assert.match(String(state.workload["e"]), /^1970-01-01T00:16:40/);
});

const RUNNING = `
workflow:
  - { step: a, next: [b, each, cur] }
  - { step: b, next: c }
  - { step: c }
  - { step: each, loop: { in: 5, spec: { mode: parallel, max_in_flight: 2 } }, next: c }
  - { step: cur, loop: { cursor: { kind: postgres, claim: "select 1" }, spec: { mode: cursor } } }
`;

test("cancelling ends every command and every running step, and starts nothing", () => {
  given(RUNNING)
    .when(done("a"), claimed("b"), rows("cur", [1]), done("each"))
    .when(cancelled("no longer needed"))
    .then(
      "command.cancelled b",
      "command.cancelled each",
      "command.cancelled cur",
      "command.cancelled each",
      "step.failed b (no)",
      "step.failed each (no)",
      "step.failed cur (no)",
    )
    .is({
      status: "CANCELLED",
      error: /no longer needed/,
      steps: { a: "COMPLETED", b: "FAILED", each: "FAILED", c: "PENDING" },
      open: [],
    });
});

test("a step whose work has not started is skipped when the run is cancelled", () => {
  given("workflow: [{ step: a }]")
    .when(cancelled())
    .is({ status: "CANCELLED", steps: { a: "SKIPPED" } });
});

test("a run that exceeds its time limit fails with that error, and everything in it ends", () => {
  const { state } = given(RUNNING)
    .when(done("a"), claimed("b"))
    .when(timedOut())
    .is({
      status: "FAILED",
      error: /the run took too long/,
      open: [],
    });
  assert.equal(state.error?.kind, "timeout");
  assert.equal(state.steps["b"]?.error?.kind, "timeout");
});

test("a time-out while the run drains is the run's error", () => {
  given(RUNNING)
    .when(done("a"), failed("b", "first"), timedOut())
    .is({ status: "FAILED", error: /the run took too long/ });
});
