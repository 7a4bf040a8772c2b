import assert from "node:assert/strict";
import { test } from "node:test";
import { advanceOf, continueAdvance } from "../../../src/engine/decide/advance.ts";
import { startExecution } from "../../../src/engine/decide/start.ts";
import { emptyState } from "../../../src/engine/state/state.ts";
import { ACCOUNT_STEPS, openAccount } from "../../../src/language/expression/parsing/budget.ts";
import { countingEnv, given } from "./../support/given.ts";
import { compile } from "../support/playbook.ts";
import { done, failed } from "../support/reports.ts";

/* What the templates that a server evaluates after one event may use together. */

/** An expression of about this many steps; it is true. */
const costly = (steps: number) => `(range(${Math.floor(steps / 1.25)}) | sum) >= 0`;
const arcs = (count: number, steps: number) =>
  Array.from({ length: count }, (_, index) => `{ step: s${index}, when: "${costly(steps)} and ${index} < 0" }`).join(
    ", ",
  );
const targets = (count: number, more = "") =>
  Array.from({ length: count }, (_, index) => `  - { step: s${index}${more} }`).join("\n");

const withArcs = (count: number, steps: number) => `
workflow:
  - { step: start, next: { arcs: [${arcs(count, steps)}] } }
${targets(count)}
`;

test("conditions that stay within the budget together are evaluated, one by one and all", () => {
  given(withArcs(10, ACCOUNT_STEPS / 11))
    .when(done("start"))
    .is({ status: "COMPLETED" });
});

test("conditions that go beyond it together fail the step with a code and the expression, although each would fit", () => {
  const run = given(withArcs(12, ACCOUNT_STEPS / 11)).when(done("start"));
  run.is({
    status: "FAILED",
    error: /^Step 'start', set and arcs: .* used up at "\(range\(\d+\) \| sum\) >= 0 and 1[01] < 0/,
  });
  assert.equal(run.state.error?.code, "DECISION_BUDGET");
});

test("an arc for failures does not make it go on: nothing more is evaluated for that event", () => {
  const rescue = "{ step: s0, when: \"event.name == 'step.failed'\" }";
  given(`
workflow:
  - { step: start, set: { ctx.a: "{{ ${costly(2 * ACCOUNT_STEPS)} }}" }, next: { arcs: [${rescue}] } }
${targets(1)}
`)
    .when(done("start"))
    .is({ status: "FAILED", steps: { start: "FAILED" } });
});

test("assignments, guards, admissions and collections of one event share the budget", () => {
  const share = ACCOUNT_STEPS / 3.5;
  const step = (what: string) => `
workflow:
  - { step: start, set: { ctx.a: "{{ ${costly(share)} }}" }, next: { arcs: [{ step: next, when: "${costly(share)}" }] } }
  - { step: next, when: "${costly(share)}"${what} }
`;
  given(step(""))
    .when(done("start"))
    .is({ open: ["next"] });
  for (const what of [
    `, spec: { policy: { admit: { rules: [{ when: "${costly(share)}", then: { allow: true } }] } } }`,
    `, loop: { in: "{{ [${costly(share)}] }}", iterator: i }`,
  ]) {
    const run = given(step(what)).when(done("start"));
    run.is({ status: "FAILED", steps: { next: "FAILED" } });
    assert.equal(run.state.error?.code, "DECISION_BUDGET", what);
  }
});

test("guards of many steps share the budget, although each is a decision of its own", () => {
  const fired = Array.from({ length: 12 }, (_, index) => `{ step: s${index} }`).join(", ");
  const guard = `, when: "not (${costly(ACCOUNT_STEPS / 11)})"`;
  const run = given(`
workflow:
  - { step: start, next: { spec: { mode: inclusive }, arcs: [${fired}] } }
${targets(12, guard)}
`).when(done("start"));
  assert.equal(run.state.error?.code, "DECISION_BUDGET");
});

test("the next event has a full budget again", () => {
  const heavy = costly(ACCOUNT_STEPS * 0.8);
  given(`
workflow:
  - { step: start, next: { arcs: [{ step: next, when: "${heavy}" }] } }
  - { step: next, next: { arcs: [{ step: last, when: "${heavy}" }] } }
  - { step: last }
`)
    .when(done("start"), done("next"), done("last"))
    .is({ status: "COMPLETED" });
});

test("events that are decided together have a budget each, as if they were decided one by one", () => {
  const program = compile(`
workflow:
  - { step: start, next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] } }
  - { step: a, set: { ctx.a: "{{ ${costly(ACCOUNT_STEPS * 0.8)} }}" } }
  - { step: b, set: { ctx.b: "{{ ${costly(ACCOUNT_STEPS * 0.8)} }}" } }
`);
  const env = countingEnv();
  const state = emptyState();
  const first = startExecution({ executionId: "1", catalogId: "2", input: {} }, program, env);
  const begun = advanceOf([first]);
  assert.deepEqual(
    begun.accounts.map(({ left }) => left),
    [ACCOUNT_STEPS],
  );
  const two = advanceOf([first, first]);
  assert.notEqual(two.accounts[0], two.accounts[1]);
  continueAdvance(advanceOf([]), state, program, env);
});

test("steps that lead back without any work in between end the execution", () => {
  const run = given(`
workflow:
  - { step: start, next: { arcs: [{ step: a }] } }
  - { step: a, when: "{{ false }}", next: { arcs: [{ step: b }] } }
  - { step: b, when: "{{ false }}", next: { arcs: [{ step: a }] } }
`).when(done("start"));
  run.is({ status: "FAILED", error: /leads to too many others/ });
  assert.equal(run.state.error?.code, "DECISION_BUDGET");
});

test("a long chain of skipped steps is no such loop", () => {
  // As many as a document may have.
  const count = 9_990;
  const chain = Array.from(
    { length: count },
    (_, index) => `  - { step: s${index}, when: "{{ false }}", next: { arcs: [{ step: s${index + 1} }] } }`,
  ).join("\n");
  given(`
workflow:
  - { step: start, next: { arcs: [{ step: s0 }] } }
${chain}
  - { step: s${count} }
`)
    .when(done("start"))
    .is({ open: [`s${count}`] });
});

test("a failed step's arcs share the budget too", () => {
  const run = given(`
workflow:
  - { step: start, next: { arcs: [{ step: s0, when: "event.name == 'step.failed' and ${costly(2 * ACCOUNT_STEPS)}" }] } }
${targets(1)}
`).when(failed("start", "boom"));
  run.is({ status: "FAILED", error: /boom/ });
});

test("defaults of a workload are refused at the start when they are too much together", () => {
  const keys = Array.from({ length: 12 }, (_, index) => `k${index}: "{{ ${costly(ACCOUNT_STEPS / 11)} }}"`).join(", ");
  const program = compile(`workload: { ${keys} }\nworkflow: [{ step: a }]`);
  const start = () =>
    startExecution({ executionId: "1", catalogId: "2", input: {} }, program, {
      ...countingEnv(),
      account: openAccount(),
    });
  assert.throws(start, { code: "DECISION_BUDGET", message: /used up at/ });
});
