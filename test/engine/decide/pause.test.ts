import assert from "node:assert/strict";
import { test } from "node:test";
import { given } from "../support/given.ts";
import { cancelled, claimed, done, failed, paused, resumed, rows, timedOut } from "../support/reports.ts";

// Control, section 1 and rules 1 to 3: nothing is issued or claimed during a pause, what workers have is recorded, and everything
// that it led to follows when the execution is resumed.

const TWO_STEPS = `
workflow:
  - { step: a, next: b }
  - { step: b }
`;

const BRANCHES = `
workflow:
  - { step: a, next: { arcs: [{ step: left }, { step: right }], spec: { mode: inclusive } } }
  - { step: left, next: join }
  - { step: right, next: join }
  - { step: join }
`;

const LOOP = `
workload: { list: [1, 2, 3, 4] }
workflow:
  - { step: each, loop: { in: "{{ list }}", iterator: x, spec: { mode: parallel, max_in_flight: 2 } }, next: after }
  - { step: after }
`;

test("a step that ends during a pause is recorded, and its arc follows on the resumption", () => {
  given(TWO_STEPS)
    .when(claimed("a"), paused("quota"), done("a"))
    .then()
    .is({ status: "PAUSED", steps: { a: "RUNNING", b: "PENDING" }, open: [] })
    .when(resumed())
    .then("step.completed a -> b", "command.issued b")
    .is({ status: "RUNNING", steps: { a: "COMPLETED" }, open: ["b"] });
});

test("a pause says since when, why and by whom; a resumption takes that back", () => {
  const run = given(TWO_STEPS).when(paused("quota"));
  assert.deepEqual(run.state.paused, { at: run.state.paused?.at, reason: "quota" });
  run.when(resumed());
  assert.equal(run.state.paused, undefined);
  assert.equal(run.state.status, "RUNNING");
});

test("a pause of what nothing happens to changes nothing: the same command is open afterwards", () => {
  const run = given(TWO_STEPS).when(paused());
  const before = [...run.commands];
  run
    .then()
    .when(resumed())
    .then()
    .is({ open: ["a"] });
  assert.deepEqual(run.commands, before);
});

test("a second pause and a resumption of what runs are refused, as is either after the end", () => {
  given(TWO_STEPS)
    .refuses("unknown", resumed())
    .when(paused())
    .refuses("unknown", paused())
    .when(resumed(), done("a"), done("b"))
    .refuses("late", paused())
    .refuses("late", resumed());
});

test("two branches that end during a pause lead to their join once", () => {
  given(BRANCHES)
    .when(done("a"), claimed("left"), claimed("right"), paused(), done("left"), done("right"))
    .is({ status: "PAUSED", open: [], steps: { join: "PENDING" } })
    .when(resumed())
    .then("step.completed left -> join", "step.completed right -> join", "command.issued join")
    .when(done("join"))
    .is({ status: "COMPLETED" });
});

const TWO_ENDS = `
workflow:
  - { step: a, next: { arcs: [{ step: left }, { step: right }], spec: { mode: inclusive } } }
  - { step: left }
  - { step: right }
`;

test("two branches that end during a pause end the run once", () => {
  given(TWO_ENDS)
    .when(done("a"), claimed("left"), claimed("right"), paused(), done("left"), done("right"))
    .when(resumed())
    .then("step.completed left", "step.completed right", "workflow.completed", "playbook.completed right");
});

test("two branches that fail during a pause fail the run once", () => {
  given(TWO_ENDS)
    .when(done("a"), claimed("left"), claimed("right"), paused(), failed("left"), failed("right"))
    .when(resumed())
    .then("step.failed left (no)", "step.failed right (no)", "workflow.failed unknown", "playbook.failed unknown");
});

test("a loop issues no further iterations during a pause, and as many as it may afterwards", () => {
  given(LOOP)
    .when(claimed("each"), claimed("each", undefined, 1), paused(), done("each", 1, { iteration: 0 }))
    .is({ status: "PAUSED", open: ["each"] })
    .when(done("each", 2, { iteration: 1 }))
    .is({ open: [] })
    .when(resumed())
    .then("command.issued each[2]", "command.issued each[3]")
    .when(done("each", 3), done("each", 4), done("after"))
    .is({ status: "COMPLETED", vars: {} });
});

test("the last iteration of a loop ends during a pause: the loop ends with the resumption", () => {
  const text = LOOP.replace("[1, 2, 3, 4]", "[1]");
  given(text)
    .when(claimed("each"), paused(), done("each", 1))
    .is({ status: "PAUSED", open: [] })
    .when(resumed())
    .then("loop.done each 1/1", "step.completed each -> after", "command.issued after");
});

test("rows that a cursor has claimed during a pause are worked on after it", () => {
  const text = `
workflow:
  - step: each
    loop:
      cursor: { kind: postgres, claim: "update t set taken = true returning *" }
      iterator: row
      spec: { mode: cursor, frame: { max_rows: 2, row_concurrency: 2 } }
    tool: { kind: noop }
`;
  given(text)
    .when(claimed("each"), paused(), rows("each", [{ id: 1 }, { id: 2 }]))
    .is({ status: "PAUSED", open: [] })
    .when(resumed())
    .is({ status: "RUNNING", open: ["each", "each"] });
});

test("a failure during a pause ends the run with the resumption, not before", () => {
  given(TWO_STEPS)
    .when(claimed("a"), paused(), failed("a"))
    .is({ status: "PAUSED" })
    .when(resumed())
    .then("step.failed a (no)", "workflow.failed unknown", "playbook.failed unknown")
    .is({ status: "FAILED" });
});

test("a paused execution can be cancelled, and ended by its server", () => {
  given(TWO_STEPS).when(claimed("a"), paused(), cancelled()).is({ status: "CANCELLED", open: [] });
  const ended = given(TWO_STEPS).when(claimed("a"), paused(), timedOut()).is({ status: "FAILED", open: [] });
  assert.equal(ended.state.paused, undefined);
});
