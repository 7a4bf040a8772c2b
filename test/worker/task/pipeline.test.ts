import assert from "node:assert/strict";
import { test } from "node:test";
import { setup } from "../support/bench.ts";
import { bad, ok } from "../support/scripted-tools.ts";

// Language document, sections 5.1 and 8: what the tasks of a step make together.

const THREE = `
      - a: { kind: http }
      - b: { kind: shell, cmd: "{{ a.n }} {{ output.data.n }} {{ _prev.n }}" }
      - c: { kind: sqldb, query: x }
`;
const TOOLS = { a: [ok({ n: 1, only_a: true })], b: [ok({ n: 2 })], c: [ok({ n: 3, rows: [] })] };

test("the result is the merge of all tasks' fields, later wins, each readable by its label", async (t) => {
  const { completed, calls } = setup(t, { tools: TOOLS });
  const ran = await completed(`
workflow:
  - step: s
    tool: ${THREE}
    set: { label: "{{ a.n }}", results: "{{ result.results.b.n }}", through: "{{ output.a.n }}" }
    next: { arcs: [{ step: end, when: "a.n == 1 and c.n == 3" }] }
  - step: end
    tool: { kind: noop, result: { whole: "{{ s }}", a: "{{ s.a.n }}", b: "{{ s.results.b.n }}", before: "{{ result.c.n }}", bare: "{{ a is defined }}" } }
`);
  assert.equal(calls[1]?.config["cmd"], "1 1 1");
  assert.deepEqual(ran.state.vars, { label: 1, results: 2, through: 1 });
  const whole = { n: 3, only_a: true, rows: [] };
  assert.deepEqual(await ran.result(), { whole, a: 1, b: 2, before: 3, bare: false });
});

test("a lone task's result is the step's, whichever way it was written", async (t) => {
  for (const tool of [
    "{ kind: http, name: a }",
    "[{ name: a, kind: http }]",
    "[{ a: { kind: http } }]",
    "{ a: { kind: http } }",
  ]) {
    const { completed } = setup(t, { tools: { a: [ok([1, 2])] } });
    const ran = await completed(`
workflow:
  - step: s
    tool: ${tool}
    set: { own: "{{ a[0] }}" }
`);
    assert.deepEqual(await ran.result(), [1, 2], tool);
    assert.deepEqual(ran.state.vars, { own: 1 }, tool);
  }
});

test("a pipeline whose tasks give no maps has the last one's result", async (t) => {
  const { completed } = setup(t, { tools: { a: [ok("text")], b: [ok([2])] } });
  const ran = await completed(`
workflow:
  - step: s
    tool: [{ a: { kind: http } }, { b: { kind: http } }]
    set: { a: "{{ a }}" }
`);
  assert.deepEqual(await ran.result(), [2]);
  assert.equal(ran.state.vars["a"], "text");
});

test("a pipeline that ends early has the results of the tasks that ran", async (t) => {
  const { completed } = setup(t, { tools: TOOLS });
  const ran = await completed(`
workflow:
  - step: s
    tool:
      - a: { kind: http, spec: { policy: { rules: [{ else: { then: { do: break } } }] } } }
      - b: { kind: http }
    set: { b: "{{ b is defined }}" }
`);
  assert.deepEqual(await ran.result(), { n: 1, only_a: true });
  assert.deepEqual(ran.state.vars, { b: false });
});

test("a pipeline that fails keeps the results up to the failure for its arcs", async (t) => {
  const { completed } = setup(t, { tools: { ...TOOLS, b: [bad("server_error", "HTTP_500")] } });
  const ran = await completed(`
workflow:
  - step: s
    tool: ${THREE}
    next: { arcs: [{ step: end, when: "event.name == 'call.error'", set: { a: "{{ a.n }}", code: "{{ b.error.code }}", c: "{{ c is defined }}" } }] }
  - step: end
`);
  assert.deepEqual(ran.state.vars, { a: 1, code: "HTTP_500", c: false });
});

test("tasks that are stored by reference merge as those that are inline", async (t) => {
  const { completed } = setup(t, { tools: TOOLS });
  const ran = await completed(`
workflow:
  - step: s
    spec: { result: { inline_max_bytes: 1 } }
    tool: ${THREE}
    set: { a: "{{ a.only_a }}" }
    next: [{ step: end }]
  - step: end
    tool: { kind: noop, result: { n: "{{ s.n }}", rows: "{{ s.c.rows }}", label: "{{ s.results.a.n }}" } }
`);
  assert.deepEqual(await ran.step("s"), { n: 3, only_a: true, rows: [] });
  assert.deepEqual(await ran.result(), { n: 3, rows: [], label: 1 });
});

test("a task without a name is called by its place", async (t) => {
  const { completed, calls } = setup(t);
  await completed(`
workflow:
  - step: s
    tool: [{ kind: http }, { kind: http, url: "{{ task_0.config is defined }}" }]
`);
  assert.deepEqual(
    calls.map(({ task, config }) => [task, config["url"]]),
    [
      ["task_0", undefined],
      ["task_1", true],
    ],
  );
});
