import assert from "node:assert/strict";
import { test } from "node:test";
import { given } from "./support/given.ts";
import { done, failed } from "./support/reports.ts";

// Language document, section 7: step failure.

test("a failure that no arc takes fails the run with that error", () => {
  const { state } = given("workflow: [{ step: a, next: b }, { step: b }]")
    .when(failed("a", { kind: "server_error", code: "HTTP_503", message: "upstream is down" }))
    .then("step.failed a (no)", "workflow.failed server_error", "playbook.failed server_error")
    .is({ status: "FAILED", steps: { a: "FAILED", b: "PENDING" }, error: /upstream is down/ });
  assert.equal(state.error?.step, "a");
  assert.equal(state.error?.code, "HTTP_503");
});

for (const name of ["step.failed", "call.error", "step.error"]) {
  test(`an arc that names ${name} takes the failure, and the run continues`, () => {
    given(`
workflow:
  - { step: a, next: { arcs: [{ step: b }, { step: fix, when: "{{ event.name == '${name}' }}" }] } }
  - { step: b }
  - { step: fix }
`)
      .when(failed("a"))
      .then("step.failed a (yes) -> fix", "step.skipped b (unreached)", "command.issued fix")
      .when(done("fix", { fixed: true }))
      .is({ status: "COMPLETED", result: { fixed: true }, steps: { a: "FAILED", b: "SKIPPED" } });
  });
}

test("an arc without a condition is not tried when the step failed", () => {
  given("workflow: [{ step: a, next: { arcs: [{ step: b }] } }, { step: b }]")
    .when(failed("a"))
    .is({ status: "FAILED", steps: { b: "PENDING" } });
});

test("an arc that names a failure and does not match leaves it unhandled", () => {
  given(`
workflow:
  - { step: a, next: { arcs: [{ step: fix, when: "{{ event.name == 'step.failed' and output.error.retryable }}" }] } }
  - { step: fix }
`)
    .when(failed("a", { retryable: false }))
    .is({ status: "FAILED" });
});

test("the arcs of a failure read the error and its result", () => {
  given(`
workflow:
  - step: a
    next:
      arcs:
        - step: fix
          when: "{{ event.name == 'step.failed' and output.status == 'error' and output.error.kind == 'timeout' }}"
          set: { why: "{{ output.error.message }}", was: "{{ result.status }}" }
  - { step: fix }
`)
    .when(failed("a", { kind: "timeout", message: "too slow" }))
    .is({ open: ["fix"], vars: { why: "too slow", was: "error" } });
});

test("inclusive arcs for a failure all fire", () => {
  given(`
workflow:
  - step: a
    next:
      spec: { mode: inclusive }
      arcs:
        - { step: b, when: "event.name == 'step.failed'" }
        - { step: c, when: "event.name == 'call.error'" }
        - { step: d }
  - { step: b }
  - { step: c }
  - { step: d }
`)
    .when(failed("a"))
    .is({ open: ["b", "c"], steps: { d: "SKIPPED" } });
});

test("the step's own set is not applied when it failed", () => {
  given(`
workflow:
  - { step: a, set: { ctx.x: 1 }, next: { arcs: [{ step: b, when: "event.name == 'step.failed'", set: { y: 2 } }] } }
  - { step: b }
`)
    .when(failed("a"))
    .is({ vars: { y: 2 } });
});

test("an arc for failures that cannot be carried out leaves the first error standing", () => {
  given(`
workflow:
  - { step: a, next: { arcs: [{ step: "{{ 'no' ~ 'where' }}", when: "event.name == 'step.failed'" }] } }
`)
    .when(failed("a", "the first error"))
    .is({ status: "FAILED", error: /the first error/ });
});

const SIBLINGS = `
workflow:
  - { step: a, next: [b, c, d] }
  - { step: b }
  - { step: c, next: c2 }
  - { step: c2 }
  - { step: d }
`;

test("an unhandled failure drains the siblings and starts nothing new", () => {
  given(SIBLINGS)
    .when(done("a"), failed("b"))
    .then(
      "step.completed a -> b, c, d",
      "command.issued b",
      "command.issued c",
      "command.issued d",
      "step.failed b (no)",
    )
    .is({ status: "RUNNING", open: ["c", "d"] })
    .when(done("c"))
    .is({ status: "RUNNING", open: ["d"], steps: { c: "COMPLETED", c2: "PENDING" } })
    .when(done("d"))
    .is({ status: "FAILED", error: /boom/, steps: { d: "COMPLETED", c2: "PENDING" } });
});

test("the first unhandled failure is the run's error", () => {
  given(SIBLINGS)
    .when(done("a"), failed("b", "first"), failed("c", "second"), done("d"))
    .is({ status: "FAILED", error: /first/ });
});

test("an unhandled failure starts no further iteration of a loop beside it", () => {
  given(`
workflow:
  - { step: a, next: [b, each] }
  - { step: b }
  - { step: each, loop: { in: [1, 2, 3] } }
`)
    .when(done("a"), failed("b", "first"))
    .is({ open: ["each"] })
    .when(done("each"))
    .then("loop.done each 1/3", "step.failed each (no)", "workflow.failed unknown", "playbook.failed unknown")
    .is({ status: "FAILED", error: /first/ });
});

test("a waiting join does not run after an unhandled failure", () => {
  given(`
workflow:
  - { step: a, next: [b, c] }
  - { step: b, next: d }
  - { step: c, next: d }
  - { step: d }
`)
    .when(done("a"), done("b"), failed("c"))
    .is({ status: "FAILED", steps: { d: "PENDING" } });
});

test("a set that cannot be evaluated fails the step, and an arc may take that failure", () => {
  given(`
workflow:
  - { step: a, set: { x: "{{ a.n | items }}" }, next: { arcs: [{ step: b, when: "event.name == 'step.failed'" }, { step: c }] } }
  - { step: b }
  - { step: c }
`)
    .when(done("a", { n: 1 }))
    .is({ open: ["b"], vars: {} });
});
