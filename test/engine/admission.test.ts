import { test } from "node:test";
import { given } from "./support/given.ts";
import { done } from "./support/reports.ts";

// Language document, section 2: `when` and `spec.policy.admit.rules`.

const GUARDED = `
workload: { go: false }
workflow:
  - step: a
    when: "{{ workload.go }}"
    set: { ctx.touched: true }
    next: { arcs: [{ step: b, set: { from: a } }] }
  - { step: b }
`;

test("a falsy guard skips the step, its arcs are still evaluated", () => {
  given(GUARDED)
    .then("workflow.initialized a", "step.skipped a (when) -> b", "command.issued b")
    .when(done("b"))
    .is({ status: "COMPLETED", steps: { a: "SKIPPED", b: "COMPLETED" } });
});

test("a skipped step writes no set of its own, the arc that fires does", () => {
  given(GUARDED).is({ vars: { from: "a" } });
});

test("a truthy guard lets the step run", () => {
  given(GUARDED, { input: { go: true } }).is({ open: ["a"] });
});

test("a guard without braces is an expression", () => {
  given("workload: { n: 2 }\nworkflow: [{ step: a, when: workload.n > 1 }]").is({ open: ["a"] });
  given("workload: { n: 2 }\nworkflow: [{ step: a, when: workload.n > 2 }]").is({ status: "COMPLETED" });
});

test("every step skipped completes the run without a result", () => {
  given("workflow: [{ step: a, when: false, next: b }, { step: b, when: 'no' }]")
    .then(
      "workflow.initialized a",
      "step.skipped a (when) -> b",
      "step.skipped b (when)",
      "workflow.completed",
      "playbook.completed without result",
    )
    .is({ status: "COMPLETED", result: null });
});

test("a guard that cannot be evaluated fails the step", () => {
  given(`
workflow:
  - { step: a, when: "{{ 5 | items }}", next: b }
  - { step: b }
`).is({ status: "FAILED", error: /Step 'a', guard/, steps: { a: "FAILED", b: "PENDING" } });
});

test("a guard that cannot be evaluated can be handled by an arc", () => {
  given(`
workflow:
  - { step: a, when: "{{ 5 | items }}", next: { arcs: [{ step: b, when: "event.name == 'step.failed'" }] } }
  - { step: b }
`)
    .when(done("b"))
    .is({ status: "COMPLETED", steps: { a: "FAILED" } });
});

const ADMITTED = `
workload: { load: 0 }
workflow:
  - step: a
    spec:
      policy:
        admit:
          rules:
            - { when: "{{ workload.load > 90 }}", then: { allow: false } }
            - { when: "{{ workload.load > 50 }}", then: { allow: true } }
            - { else: { then: { allow: "{{ workload.load == 0 }}" } } }
    next: b
  - { step: b }
`;

test("the first admission rule that matches decides", () => {
  given(ADMITTED, { input: { load: 95 } }).then(
    "workflow.initialized a",
    "step.skipped a (admission) -> b",
    "command.issued b",
  );
  given(ADMITTED, { input: { load: 60 } }).is({ open: ["a"] });
});

test("the else of admission decides if no rule matched, and may be a template", () => {
  given(ADMITTED, { input: { load: 10 } }).is({ steps: { a: "SKIPPED" } });
  given(ADMITTED, { input: { load: 0 } }).is({ open: ["a"] });
});

test("without a matching admission rule the step is admitted", () => {
  given(`
workflow:
  - { step: a, spec: { policy: { admit: { rules: [{ when: "{{ false }}", then: { allow: false } }] } } } }
`).is({ open: ["a"] });
});

test("a guard reads the input that came over the arc and the step's own", () => {
  given(`
workflow:
  - { step: a, next: { arcs: [{ step: b, set: { n: 7 } }] } }
  - { step: b, input: { m: "{{ n + 1 }}" }, when: "{{ m == 8 and input.n == 7 }}" }
`)
    .when(done("a"))
    .is({ open: ["b"] });
});

test("a skipped step lets a join behind it go on", () => {
  given(`
workflow:
  - { step: a, next: [b, c] }
  - { step: b, when: false, next: d }
  - { step: c, next: d }
  - { step: d }
`)
    .when(done("a"))
    .is({ open: ["c"], steps: { b: "SKIPPED" } })
    .when(done("c"))
    .is({ open: ["d"] });
});

test("a skipped step has no result under its task's name, in its own arcs as everywhere else", () => {
  given(`
workflow:
  - step: a
    when: false
    tool: { kind: noop }
    next: { arcs: [{ step: b, when: a is defined }, { step: c }] }
  - { step: b }
  - { step: c }
`).then("workflow.initialized a", "step.skipped a (when) -> c", "step.skipped b (unreached)", "command.issued c");
});
