import assert from "node:assert/strict";
import { test } from "node:test";
import { given } from "./support/given.ts";
import { done, failed } from "./support/reports.ts";

// Language document, section 7: a step with several forward upstreams runs once, after every live one is resolved.

const DIAMOND = `
workflow:
  - { step: a, next: [b, c] }
  - { step: b, next: { arcs: [{ step: d, set: { b: 1 } }] } }
  - { step: c, next: { arcs: [{ step: d, set: { c: 1 } }] } }
  - { step: d }
`;

test("a join runs once, after all its upstreams", () => {
  given(DIAMOND)
    .when(done("a"))
    .is({ open: ["b", "c"] })
    .when(done("c"))
    .then("step.completed c -> d")
    .when(done("b"))
    .then("step.completed b -> d", "command.issued d")
    .when(done("d"))
    .is({ status: "COMPLETED" });
});

test("a join gets the inputs of every arc that led to it", () => {
  const { commands } = given(DIAMOND).when(done("a"), done("c"), done("b"));
  assert.deepEqual(commands.at(-1)?.context.input, { b: 1, c: 1 });
});

test("a join waits for branches of different length", () => {
  given(`
workflow:
  - { step: a, next: [b, c] }
  - { step: b, next: d }
  - { step: c, next: c2 }
  - { step: c2, next: d }
  - { step: d }
`)
    .when(done("a"), done("b"))
    .is({ open: ["c"] })
    .when(done("c"))
    .is({ open: ["c2"] })
    .when(done("c2"))
    .is({ open: ["d"] });
});

test("a join does not wait for a branch that was never taken", () => {
  given(`
workflow:
  - { step: a, next: { arcs: [{ step: b, when: "{{ true }}" }, { step: c }] } }
  - { step: b, next: d }
  - { step: c, next: d }
  - { step: d }
`)
    .when(done("a"), done("b"))
    .is({ open: ["d"], steps: { c: "SKIPPED" } });
});

test("a join does not wait for a branch that ends before it", () => {
  given(`
workflow:
  - { step: a, next: [b, c] }
  - { step: b, next: { arcs: [{ step: d, when: "{{ b.go }}" }] } }
  - { step: c, next: d }
  - { step: d }
`)
    .when(done("a"), done("c"))
    .is({ open: ["b"] })
    .when(done("b", { go: false }))
    .is({ open: ["d"] });
});

test("a join that no branch reaches is skipped", () => {
  given(`
workflow:
  - { step: a, next: [b, c] }
  - { step: b, next: { arcs: [{ step: d, when: "{{ b.go }}" }] } }
  - { step: c, next: { arcs: [{ step: d, when: "{{ c.go }}" }] } }
  - { step: d, next: e }
  - { step: e }
`)
    .when(done("a"))
    .when(done("b", { go: false }))
    .then("step.completed b")
    .when(done("c", { go: false }))
    .then(
      "step.completed c",
      "step.skipped d (unreached)",
      "step.skipped e (unreached)",
      "workflow.completed",
      "playbook.completed c",
    );
});

test("a failed upstream whose failure was handled releases the join", () => {
  given(`
workflow:
  - { step: a, next: [b, c] }
  - { step: b, next: { arcs: [{ step: fix, when: "event.name == 'step.failed'" }, { step: d }] } }
  - { step: c, next: d }
  - { step: fix }
  - { step: d }
`)
    .when(done("a"), done("c"), failed("b"))
    .is({ open: ["d", "fix"] })
    .when(done("d"), done("fix"))
    .is({ status: "COMPLETED", steps: { b: "FAILED", fix: "COMPLETED", d: "COMPLETED" } });
});

test("a join after a diamond after a diamond waits for the inner one", () => {
  given(`
workflow:
  - { step: a, next: [b, z] }
  - { step: b, next: [c, d] }
  - { step: c, next: e }
  - { step: d, next: e }
  - { step: e, next: z }
  - { step: z }
`)
    .when(done("a"), done("b"), done("d"))
    .is({ open: ["c"], steps: { z: "PENDING" } })
    .when(done("c"), done("e"))
    .is({ open: ["z"] })
    .when(done("z"))
    .is({ status: "COMPLETED", steps: { z: "COMPLETED" } });
});

test("independent branches that share no join end on their own", () => {
  given(`
workflow:
  - { step: a, next: [b, c] }
  - { step: b, next: b2 }
  - { step: b2 }
  - { step: c }
`)
    .when(done("a"), done("c"), done("b"))
    .is({ open: ["b2"], status: "RUNNING" })
    .when(done("b2"))
    .is({ status: "COMPLETED", result: { status: "ok" } });
});
