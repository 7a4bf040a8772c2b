import assert from "node:assert/strict";
import { test } from "node:test";
import { given } from "./support/given.ts";
import { done, failed } from "./support/reports.ts";

// Language document, sections 5.6 and 5.7: what is written, in which order, and who sees it.

test("ctx, step and bare targets of a step's set write execution variables, iter is dropped", () => {
  given(`
workflow:
  - step: a
    set: { ctx.x: 1, step.y: 2, z: 3, iter.w: 4, ctx.a.b: 5 }
`)
    .when(done("a"))
    .is({ vars: { x: 1, y: 2, z: 3, "a.b": 5 } });
});

test("writes are applied in order: tasks, then the step's set, then each arc that fires", () => {
  const { log } = given(`
workflow:
  - step: a
    set: { seen: "{{ x }}", x: step }
    next:
      spec: { mode: inclusive }
      arcs:
        - { step: b, when: "{{ x == 'step' }}", set: { was: "{{ x }}", x: first } }
        - { step: c, set: { then: "{{ x }}", x: second } }
  - { step: b }
  - { step: c }
`)
    .when(done("a", {}, { set: [["x", "task"]] }))
    .is({ open: ["b", "c"], vars: { seen: "task", was: "step", then: "first", x: "second" } });
  const completed = log.find((event) => event.type === "step.completed");
  assert.deepEqual(completed?.type === "step.completed" && completed.set, [
    ["seen", "task"],
    ["x", "step"],
    ["was", "step"],
    ["x", "first"],
    ["then", "first"],
    ["x", "second"],
  ]);
});

test("all arcs are judged before the set of any of them is applied", () => {
  given(`
workflow:
  - step: a
    next:
      spec: { mode: inclusive }
      arcs:
        - { step: b, set: { x: 1 } }
        - { step: c, when: "{{ x is defined }}" }
  - { step: b }
  - { step: c }
`)
    .when(done("a"))
    .is({ open: ["b"], steps: { c: "SKIPPED" } });
});

test("an arc that does not fire writes nothing", () => {
  given(`
workflow:
  - { step: a, next: { arcs: [{ step: b, when: "{{ false }}", set: { x: 1 } }, { step: c, set: { y: 2 } }] } }
  - { step: b }
  - { step: c }
`)
    .when(done("a"))
    .is({ vars: { y: 2 } });
});

for (const word of ["set", "args", "input"]) {
  test(`${word} of an arc is the input of its target`, () => {
    const { commands } = given(`
workflow:
  - { step: a, next: { arcs: [{ step: b, ${word}: { n: "{{ a.n }}" } }] } }
  - { step: b }
`).when(done("a", { n: 4 }));
    assert.deepEqual(commands.at(-1)?.context.input, { n: 4 });
  });
}

test("the request's inputs are the input of the first step", () => {
  const { commands } = given("workload: { x: 1, y: 2 }\nworkflow: [{ step: a }]", { input: { x: 5 } });
  assert.deepEqual(commands[0]?.context.input, { x: 5 });
});

test("labels of the step's own tasks are in scope in its set and arcs", () => {
  given(`
workflow:
  - step: a
    tool: [{ get: { kind: noop } }, { put: { kind: noop } }]
    set: { ctx.x: "{{ get.v + put.v }}", ctx.merged: "{{ result.v }}", ctx.first: "{{ result.results.get.v }}" }
    next: { arcs: [{ step: b, when: "{{ put.v == 2 }}" }] }
  - { step: b }
`)
    .when(
      done("a", null, {
        tasks: [
          ["get", { v: 1 }],
          ["put", { v: 2 }],
        ],
      }),
    )
    .is({ open: ["b"], vars: { x: 3, merged: 2, first: 1 } });
});

test("output in set is the envelope, its data is the result's own data if it has some", () => {
  given(`
workflow:
  - step: a
    set: { status: "{{ output.status }}", data: "{{ output.data }}", code: "{{ output.status_code }}" }
`)
    .when(done("a", { status_code: 200, data: { id: 1 } }))
    .is({ vars: { status: "ok", data: { id: 1 }, code: 200 } });
  given('workflow: [{ step: a, set: { data: "{{ output.data }}" } }]')
    .when(done("a", { id: 1 }))
    .is({ vars: { data: { id: 1 } } });
});

test("iterations of a parallel loop write in the order in which they complete, the last wins", () => {
  const { log } = given("workflow: [{ step: each, loop: { in: 3, spec: { mode: parallel } } }]")
    .when(
      done("each", 0, { iteration: 2, set: [["x", "third"]] }),
      done("each", 0, { iteration: 0, set: [["x", "first"]] }),
      done("each", 0, { iteration: 1, set: [["x", "second"]] }),
    )
    .is({ status: "COMPLETED", vars: { x: "second" } });
  const writers = log.filter((event) => event.type === "loop.iteration.completed" && event.set !== undefined);
  assert.equal(writers.length, 3);
});

test("the writes of a failed step's tasks stay", () => {
  given("workflow: [{ step: a }]")
    .when(failed("a", "boom", { set: [["x", 1]] }))
    .is({ status: "FAILED", vars: { x: 1 } });
});

test("a command keeps the values it was issued with: later writes do not reach it", () => {
  const { commands } = given(`
workflow:
  - { step: a, next: [slow, fast] }
  - { step: slow, tool: { kind: noop, result: { x: "{{ ctx.x }}" } } }
  - { step: fast, set: { ctx.x: 2 }, next: later }
  - { step: later, tool: { kind: noop, result: { x: "{{ ctx.x }}" } } }
`).when(done("a", {}, { set: [["x", 1]] }), done("fast"));
  assert.deepEqual(
    commands.map(({ step, context }) => [step, context.vars]),
    [
      ["a", {}],
      ["slow", { x: 1 }],
      ["fast", {}],
      ["later", { x: 2 }],
    ],
  );
});

test("a command carries what its templates name and nothing else", () => {
  const { commands } = given(
    `
workload: { used: 1, unused: 2 }
workflow:
  - { step: a, next: b }
  - { step: b, next: c }
  - { step: c, tool: { kind: noop, result: { v: "{{ used + a.n + y }}", prev: "{{ result.n }}" } } }
`,
    { input: {} },
  ).when(
    done(
      "a",
      { n: 1 },
      {
        set: [
          ["y", 3],
          ["z", 4],
        ],
      },
    ),
    done("b", { n: 2 }),
  );
  const context = commands.at(-1)?.context;
  assert.deepEqual(context?.workload, { used: 1 });
  assert.deepEqual(context?.vars, { y: 3 });
  assert.deepEqual(context?.steps, { a: { value: { n: 1 } }, b: { value: { n: 2 } } });
  assert.equal(context?.from, "b");
});

test("a variable called __proto__ is a variable", () => {
  const { state } = given('workflow: [{ step: a, set: { "ctx.__proto__": { polluted: true } } }]').when(done("a"));
  assert.ok(Object.hasOwn(state.vars, "__proto__"));
  assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
});
