import assert from "node:assert/strict";
import { test } from "node:test";
import { setup } from "../support/bench.ts";

// Language document, sections 2, 4.9 and 5.7: what arrives over the arc, the step's input and the task's, later wins.

test("arc, step and task inputs are merged, and the later one wins", async (t) => {
  const { completed, calls } = setup(t);
  await completed(`
workflow:
  - step: first
    next: { arcs: [{ step: second, set: { a: arc, b: arc, c: arc } }] }
  - step: second
    input: { b: step, c: step }
    tool: { kind: python, code: "1", input: { c: task } }
`);
  assert.deepEqual(calls[0]?.input, { a: "arc", b: "step", c: "task" });
});

test("args is input by its older name, and input wins over it", async (t) => {
  const { completed, calls } = setup(t);
  await completed(`
workflow:
  - step: first
    args: { a: step args, b: step args }
    input: { b: step input }
    tool: { kind: python, code: "1", args: { c: args, d: args }, input: { d: input } }
`);
  assert.deepEqual(calls[0]?.input, { a: "step args", b: "step input", c: "args", d: "input" });
});

test("the first step's input is the request's", async (t) => {
  const { run, calls } = setup(t);
  await run(
    `
workload: { a: default, b: default }
workflow:
  - step: first
    tool: { kind: python, code: "1", name: "{{ input.a }}-{{ args.a }}-{{ input.b is defined }}" }
    next: [{ step: second }]
  - step: second
    tool: { kind: python, code: "1", name: "{{ input.a is defined }} {{ a }}" }
`,
    { input: { a: "given" } },
  );
  assert.deepEqual(calls[0]?.input, { a: "given" });
  assert.deepEqual(calls[1]?.input, {}, "What was given at the start does not arrive over a later arc");
});

test("while inputs are rendered, `input` is what came before them", async (t) => {
  const { completed, calls } = setup(t);
  await completed(`
workflow:
  - step: first
    next: { arcs: [{ step: second, set: { n: 1 } }] }
  - step: second
    input: { n: "{{ input.n + 1 }}", m: "{{ n }}" }
    tool: { kind: python, code: "1", input: { n: "{{ input.n * 10 }}", m: "{{ input.m }} and {{ n }}" } }
`);
  assert.deepEqual(calls[0]?.input, { n: 20, m: "1 and 2" });
});

test("a task's own inputs are names in its config, its rules and its set", async (t) => {
  const { completed, calls } = setup(t);
  const ran = await completed(`
workflow:
  - step: first
    input: { a: step }
    tool:
      - one:
          kind: http
          input: { b: task }
          url: "{{ a }} {{ b }} {{ input.b }}"
          set: { ctx.in_set: "{{ a }} {{ b }} {{ args.b }}" }
          spec: { policy: { rules: [{ when: "b == 'task' and input.a == 'step'", then: { do: continue, set: { in_rule: "{{ input.b }}" } } }] } }
      - two: { kind: http, url: "{{ b is defined }}" }
`);
  assert.equal(calls[0]?.config["url"], "step task task");
  assert.deepEqual(ran.state.vars, { in_rule: "task", in_set: "step task task" });
  assert.equal(calls[1]?.config["url"], false, "The inputs of one task are not those of the next");
});

test("an input that cannot be rendered fails its task before the tool is called", async (t) => {
  const { failed, calls } = setup(t);
  const { state } = await failed(`
workflow:
  - step: first
    tool: { kind: python, code: "1", input: { n: "{{ 5 < 'a' }}" } }
`);
  assert.equal(calls.length, 0);
  assert.equal(state.error?.kind, "template");
  assert.equal(state.error?.step, "first");
});

test("inputs named like fields of every object are ordinary names", async (t) => {
  const { run, calls } = setup(t);
  const input = JSON.parse('{"constructor": 1, "toString": 2, "__proto__": {"polluted": true}}');
  const text = `
workflow:
  - step: first
    tool: { kind: python, code: "1", name: x, url: "{{ constructor }} {{ toString }} {{ valueOf is defined }} {{ polluted is defined }}" }
`;
  await run(text, { input });
  assert.equal(calls[0]?.config["url"], "1 2 false false");
  assert.deepEqual(Object.keys(calls[0]?.input ?? {}), ["constructor", "toString", "__proto__"]);
  assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
});
