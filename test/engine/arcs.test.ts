import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventOf } from "../../src/schema/words/event.ts";
import { given } from "./support/given.ts";
import { done } from "./support/reports.ts";

// Language document, section 7: what follows a step.

test("a run starts at its entry step and ends when the last branch has ended", () => {
  given(`
workflow:
  - { step: a, next: b }
  - { step: b }
`)
    .then("workflow.initialized a", "command.issued a")
    .when(done("a"))
    .then("step.completed a -> b", "command.issued b")
    .when(done("b", { rows: 3 }))
    .then("step.completed b", "workflow.completed", "playbook.completed b")
    .is({ status: "COMPLETED", result: { rows: 3 }, steps: { a: "COMPLETED", b: "COMPLETED" } });
});

test("a step named start is the entry although it is not the first", () => {
  given(`
workflow:
  - { step: other }
  - { step: start }
`).is({ open: ["start"] });
});

test("entry_step wins over a step named start", () => {
  given(`
executor: { spec: { entry_step: b } }
workflow:
  - { step: start }
  - { step: b }
`).is({ open: ["b"] });
});

const EXCLUSIVE = `
workflow:
  - step: a
    next:
      spec: { mode: exclusive }
      arcs:
        - { step: b, when: "{{ a.n > 5 }}" }
        - { step: c, when: "{{ a.n > 1 }}" }
        - { step: d }
  - { step: b }
  - { step: c }
  - { step: d }
`;

test("of exclusive arcs the first match fires, the other targets are skipped", () => {
  given(EXCLUSIVE)
    .when(done("a", { n: 9 }))
    .then("step.completed a -> b", "step.skipped c (unreached)", "step.skipped d (unreached)", "command.issued b")
    .when(done("b"))
    .is({ status: "COMPLETED", steps: { b: "COMPLETED", c: "SKIPPED", d: "SKIPPED" } });
});

test("an arc without a condition matches when those before it did not", () => {
  given(EXCLUSIVE)
    .when(done("a", { n: 0 }))
    .is({ open: ["d"], steps: { b: "SKIPPED", c: "SKIPPED", d: "RUNNING" } });
});

test("next.evaluated lists which arcs matched, which fired, and which were not evaluated", () => {
  const { log } = given(EXCLUSIVE).when(done("a", { n: 3 }));
  const evaluated = log.find((event): event is EventOf<"next.evaluated"> => event.type === "next.evaluated");
  assert.deepEqual(evaluated?.arcs, [
    { step: "b", matched: false, fired: false },
    { step: "c", matched: true, fired: true },
    { step: "d", fired: false },
  ]);
});

test("next.evaluated is not written if no arc has a condition", () => {
  const { log } = given("workflow: [{ step: a, next: b }, { step: b }]").when(done("a"), done("b"));
  assert.ok(!log.some(({ type }) => type === "next.evaluated"));
});

test("a condition that cannot be evaluated does not match, and the reason is recorded", () => {
  const { log } = given(`
workflow:
  - { step: a, next: { arcs: [{ step: b, when: "{{ a.n | items }}" }, { step: c }] } }
  - { step: b }
  - { step: c }
`)
    .when(done("a", { n: 3 }))
    .is({ open: ["c"] });
  const evaluated = log.find((event): event is EventOf<"next.evaluated"> => event.type === "next.evaluated");
  assert.equal(evaluated?.arcs[0]?.matched, false);
  assert.match(evaluated?.arcs[0]?.error ?? "", /items/);
});

const INCLUSIVE = EXCLUSIVE.replace("mode: exclusive", "mode: inclusive");

test("of inclusive arcs every match fires", () => {
  given(INCLUSIVE)
    .when(done("a", { n: 3 }))
    .then("step.completed a -> c, d", "step.skipped b (unreached)", "command.issued c", "command.issued d")
    .when(done("d"), done("c"))
    .is({ status: "COMPLETED", steps: { b: "SKIPPED", c: "COMPLETED", d: "COMPLETED" } });
});

test("two inclusive arcs to one step run it once, with the inputs of both", () => {
  given(`
workflow:
  - step: a
    next:
      spec: { mode: inclusive }
      arcs:
        - { step: b, set: { x: 1, y: 1 } }
        - { step: b, set: { y: 2 } }
  - { step: b }
`)
    .when(done("a"))
    .then("step.completed a -> b, b", "command.issued b")
    .is({ vars: { x: 1, y: 2 } })
    .when(done("b"))
    .is({ status: "COMPLETED" });
});

test("a branch without a matching arc ends, and so does the run when it was the last", () => {
  given(`
workflow:
  - { step: a, next: { arcs: [{ step: b, when: "{{ a.go }}" }, { step: c, when: "{{ a.stop }}" }] } }
  - { step: b }
  - { step: c }
`)
    .when(done("a", { go: false }))
    .then(
      "step.completed a",
      "step.skipped b (unreached)",
      "step.skipped c (unreached)",
      "workflow.completed",
      "playbook.completed a",
    )
    .is({ status: "COMPLETED", steps: { b: "SKIPPED", c: "SKIPPED" } });
});

test("a step that follows only skipped steps is skipped too", () => {
  given(`
workflow:
  - { step: a, next: { arcs: [{ step: b, when: "{{ a.go }}" }] } }
  - { step: b, next: c }
  - { step: c, next: d }
  - { step: d }
`)
    .when(done("a", { go: false }))
    .is({ status: "COMPLETED", steps: { b: "SKIPPED", c: "SKIPPED", d: "SKIPPED" } });
});

test("on_no_match: error fails the run when no arc matches", () => {
  given(`
workflow:
  - { step: a, next: { spec: { on_no_match: error }, arcs: [{ step: b, when: "{{ a.go }}" }] } }
  - { step: b }
`)
    .when(done("a", { go: false }))
    .then("step.failed a (no)", "workflow.failed configuration", "playbook.failed configuration")
    .is({ status: "FAILED", error: /No arc of step 'a' matched/ });
});

test("on_no_match: quiet ends the branch like the default", () => {
  given(`
workflow:
  - { step: a, next: { spec: { on_no_match: quiet }, arcs: [{ step: b, when: "{{ a.go }}" }] } }
  - { step: b }
`)
    .when(done("a", { go: false }))
    .is({ status: "COMPLETED" });
});

test("no_next_is_error fails a step none of whose arcs match, but not a step without arcs", () => {
  const text = `
executor: { spec: { no_next_is_error: true } }
workflow:
  - { step: a, next: { arcs: [{ step: b, when: "{{ a.go }}" }] } }
  - { step: b }
`;
  given(text)
    .when(done("a", { go: true }), done("b"))
    .is({ status: "COMPLETED" });
  given(text)
    .when(done("a", { go: false }))
    .is({ status: "FAILED" });
});

test("there is no implicit route to end", () => {
  given("workflow: [{ step: a }, { step: end }]")
    .when(done("a"))
    .is({ status: "COMPLETED", steps: { end: "PENDING" } });
});

const DYNAMIC = `
workflow:
  - { step: a, next: { arcs: [{ step: "{{ a.to }}" }] } }
  - { step: b }
  - { step: c }
`;

test("the target of an arc may be a template", () => {
  given(DYNAMIC)
    .when(done("a", { to: "c" }))
    .then("step.completed a -> c", "command.issued c");
});

test("a template that names no step fails the step that has the arc", () => {
  given(DYNAMIC)
    .when(done("a", { to: "nowhere" }))
    .is({ status: "FAILED", error: /Step 'a'.*leads to step 'nowhere', which does not exist/ });
});

test("arcs read the step's result, its envelope, and event.name by each of its spellings", () => {
  for (const name of ["step.done", "call.done", "step.exit", "task.done"]) {
    given(`
workflow:
  - { step: a, next: { arcs: [{ step: b, when: "{{ event.name == '${name}' and output.status == 'ok' and result.n == 1 and event.step == 'a' }}" }] } }
  - { step: b }
`)
      .when(done("a", { n: 1 }))
      .is({ open: ["b"] });
  }
});

test("arcs for failures do not match a success", () => {
  given(`
workflow:
  - { step: a, next: { arcs: [{ step: b, when: "{{ event.name == 'step.failed' }}" }, { step: c }] } }
  - { step: b }
  - { step: c }
`)
    .when(done("a"))
    .is({ open: ["c"], steps: { b: "SKIPPED" } });
});
