import assert from "node:assert/strict";
import { test } from "node:test";
import { given } from "./support/given.ts";
import { done, failed } from "./support/reports.ts";

// Language document, section 7: loop-back arcs never wait and re-run their target.

const PAGES = `
workflow:
  - step: fetch
    next:
      arcs:
        - { step: fetch, when: "{{ fetch.more }}", set: { page: "{{ (page | default(1)) + 1 }}" } }
        - { step: report }
  - { step: report }
`;

test("an arc to the step itself runs it again, with its new input", () => {
  const run = given(PAGES)
    .when(done("fetch", { more: true }))
    .then("step.completed fetch -> fetch", "command.issued fetch")
    .is({ vars: { page: 2 } })
    .when(done("fetch", { more: true }), done("fetch", { more: false }))
    .then(
      "step.completed fetch -> fetch",
      "command.issued fetch",
      "step.completed fetch -> report",
      "command.issued report",
    )
    .when(done("report"))
    .is({ status: "COMPLETED", vars: { page: 3 } });
  assert.equal(run.state.steps["fetch"]?.runs, 3);
  assert.equal(run.state.steps["fetch"]?.order, 1);
  assert.equal(run.state.steps["report"]?.order, 2);
});

const WITH_JOIN = `
workflow:
  - { step: start, next: split }
  - { step: split, next: [left, right] }
  - { step: left, next: join }
  - { step: right, next: join }
  - step: join
    next: { arcs: [{ step: split, when: "{{ join.again }}" }, { step: end }] }
  - { step: end }
`;

test("a join inside a loop waits in every round", () => {
  given(WITH_JOIN)
    .when(done("start"), done("split"), done("left"))
    .is({ open: ["right"] })
    .when(done("right"), done("join", { again: true }))
    .is({ open: ["split"], steps: { end: "PENDING" } })
    .when(done("split"), done("right"))
    .is({ open: ["left"], steps: { join: "COMPLETED" } })
    .when(done("left"))
    .is({ open: ["join"] })
    .when(done("join", { again: false }), done("end", { total: 2 }))
    .is({ status: "COMPLETED", result: { total: 2 } });
});

test("a back arc does not wait for a sibling that still runs", () => {
  given(`
workflow:
  - { step: start, next: [work, watch] }
  - { step: work, next: { arcs: [{ step: start, when: "{{ work.again }}" }] } }
  - { step: watch }
`)
    .when(done("start"), done("work", { again: true }))
    .then(
      "step.completed start -> work, watch",
      "command.issued work",
      "command.issued watch",
      "step.completed work -> start",
      "command.issued start",
    )
    .is({ open: ["watch", "start"] });
});

test("a step that is to run again while it runs does so afterwards", () => {
  given(`
workflow:
  - { step: start, next: [work, watch] }
  - { step: work, next: { arcs: [{ step: start, when: "{{ work.again }}" }] } }
  - { step: watch }
`)
    .when(done("start"), done("work", { again: true }), done("start"))
    .is({ open: ["watch", "work"] })
    .when(done("watch"))
    .then("step.completed watch", "command.issued watch")
    .when(done("watch"), done("work", { again: false }))
    .is({ status: "COMPLETED" });
});

test("a step that only a later round can reach is not skipped before", () => {
  // `late` can only be reached over the back arc while `work` runs.
  given(`
workflow:
  - { step: start, next: { arcs: [{ step: late, when: "{{ round == 2 }}" }, { step: work }] } }
  - { step: work, next: { arcs: [{ step: start, set: { round: 2 } }] } }
  - { step: late }
`)
    .when(done("start"))
    .then("step.completed start -> work", "command.issued work")
    .when(done("work"), done("start"), done("late"))
    .is({ status: "COMPLETED", steps: { late: "COMPLETED" } });
});

test("a step that was skipped in one round may run in the next", () => {
  given(`
workflow:
  - { step: start, next: work }
  - { step: work, when: "{{ round == 2 }}", next: { arcs: [{ step: start, when: "{{ not round }}", set: { round: 2 } }] } }
`)
    .when(done("start"))
    .then("step.completed start -> work", "step.skipped work (when) -> start", "command.issued start")
    .when(done("start"), done("work"))
    .is({ status: "COMPLETED", steps: { work: "COMPLETED" } });
});

test("a failure may lead back, and the step that failed runs again", () => {
  given(`
workflow:
  - { step: start, next: work }
  - { step: work, next: { arcs: [{ step: start, when: "event.name == 'step.failed'" }] } }
`)
    .when(done("start"), failed("work"))
    .is({ open: ["start"], steps: { work: "FAILED" } })
    .when(done("start"), done("work"))
    .is({ status: "COMPLETED", steps: { work: "COMPLETED" } });
});

test("the exit of a loop waits for a branch beside the loop, the loop does not", () => {
  given(`
workflow:
  - { step: start, next: [spin, slow] }
  - { step: spin, next: { arcs: [{ step: spin, when: "{{ spin.again }}" }, { step: join }] } }
  - { step: slow, next: join }
  - { step: join }
`)
    .when(done("start"), done("spin", { again: true }), done("spin", { again: true }), done("spin", { again: false }))
    .is({ open: ["slow"] })
    .when(done("slow"))
    .is({ open: ["join"] });
});
