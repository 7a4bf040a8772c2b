import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { setup } from "../support/bench.ts";
import { bad, ok } from "../support/scripted-tools.ts";

// Language document, section 4.9: which names a template may read in each place, and which of two wins.

test("a name is looked up as reserved, input, iteration name, label, task variable, variable, step, workload", async (t) => {
  const { completed } = setup(t);
  // `x` has a value in every layer; the layers are taken away one by one, from the top.
  const steps = (layers: { input?: string; iterator?: string; label?: string; local?: string; variable?: string }) => `
workload: { x: workload }
workflow:
  - step: first
    tool: { kind: noop }
    ${layers.variable ?? ""}
    next: [{ step: probe }]
  - step: probe
    loop: { in: [iteration], iterator: ${layers.iterator ?? "item"} }
    tool:
      - ${layers.label ?? "a"}: { kind: noop, result: { from: label }, set: { ${layers.local ?? "y: 1"} } }
      - b: { kind: noop, ${layers.input ?? ""} result: { x: "{{ x }}" } }
`;
  const variable = "set: { x: variable }";
  const local = "x: local";
  const probe = async (layers: Parameters<typeof steps>[0]) => {
    const ran = await completed(steps(layers));
    const { results } = (await ran.step("probe")) as { results: { x: unknown }[] };
    return results[0]?.x;
  };
  const input = "input: { x: input },";
  assert.equal(await probe({ input, iterator: "x", label: "x", local, variable }), "input");
  assert.equal(await probe({ iterator: "x", label: "x", local, variable }), "iteration");
  assert.equal(await probe({ local, variable }), "local");
  assert.deepEqual(await probe({ label: "x", variable }), { from: "label" });
  assert.equal(await probe({ variable }), "variable");
  assert.equal(await probe({}), "workload");
});

/** A playbook whose step `probe` shows, in every place that has templates, what `expressions` give there. */
function probing(expressions: Record<string, string>, more: { workload?: string; probe?: string } = {}): string {
  const shown = JSON.stringify(Object.fromEntries(Object.entries(expressions).map(([k, e]) => [k, `{{ ${e} }}`])));
  return `
workload: { w: from workload${more.workload ?? ""} }
workflow:
  - step: first
    tool: { kind: noop, result: { value: of first } }
    set: { v: from first }
    next: { arcs: [{ step: probe, set: { i: over the arc } }] }
  - step: probe
    ${more.probe ?? ""}
    tool:
      - before: { kind: noop, result: { value: of before } }
      - task:
          kind: noop
          result: { config: ${shown} }
          set: { ctx.in_task_set: ${shown} }
          spec: { policy: { rules: [{ else: { then: { do: continue, set: { in_rule: ${shown} } } } }] } }
    set: { in_step_set: ${shown} }
    next: { arcs: [{ step: last, set: { in_arc: ${shown} } }] }
  - step: last
`;
}

async function probe(
  t: TestContext,
  expressions: Record<string, string>,
  more: { workload?: string; probe?: string } = {},
): Promise<Record<string, JsonObject>> {
  const { completed } = setup(t, { env: { HOME_TOWN: "Bern" } });
  const ran = await completed(probing(expressions, more));
  const { config } = (await ran.step("probe")) as { config: JsonObject };
  const { in_task_set, in_rule, in_step_set, in_arc } = ran.state.vars as Record<string, JsonObject>;
  return { config, in_rule: in_rule!, in_task_set: in_task_set!, in_step_set: in_step_set!, in_arc: in_arc! };
}

test("names that hold everywhere have the same value in config, rule, task set, step set and arc", async (t) => {
  const places = await probe(t, {
    id: "execution_id == job.uuid and job.id == execution_id and job.execution_id == execution_id",
    text: "execution_id is string",
    catalog: "catalog_id",
    workload: "workload.w",
    bare: "w",
    ctx: "[ctx.w, ctx.v, ctx.first.value]",
    vars: "[vars.v, vars.w is defined]",
    steps: "steps.first.value",
    step: "first.value",
    input: "[input.i, args.i, i]",
    env: "[env.HOME_TOWN, env.PATH is defined]",
    before: "before.value",
    parent: "parent_execution_id",
  });
  const expected = {
    id: true,
    text: true,
    catalog: "test",
    workload: "from workload",
    bare: "from workload",
    ctx: ["from workload", "from first", "of first"],
    vars: ["from first", false],
    steps: "of first",
    step: "of first",
    input: ["over the arc", "over the arc", "over the arc"],
    env: ["Bern", false],
    before: "of before",
    parent: null,
  };
  for (const [place, seen] of Object.entries(places)) assert.deepEqual(seen, expected, place);
});

test("result and response are the raw result of this step in set and arcs, and of the step before elsewhere", async (t) => {
  const places = await probe(t, {
    result: "result.value",
    response: "response.value",
    own: "result.config is defined",
  });
  const before = { result: "of first", response: "of first", own: false };
  assert.deepEqual(places["config"], before);
  assert.deepEqual(places["in_rule"], before);
  // The task's own result: its `config` is there, its `value` is not.
  assert.deepEqual(places["in_task_set"], { result: null, response: null, own: true });
  const ofStep = { result: "of before", response: "of before", own: true };
  assert.deepEqual(places["in_step_set"], ofStep);
  assert.deepEqual(places["in_arc"], ofStep);
});

test("output is the task before in config, this task in rule and set, the step at its end", async (t) => {
  const places = await probe(t, {
    status: "output.status",
    alias: "outcome.status",
    of: "output.data.value or (output.data.config is defined and 'this')",
    own: "output.value",
    event: "[event.name, event.step, event.type]",
  });
  const none = [null, null, null];
  assert.deepEqual(places["config"], { status: "ok", alias: "ok", of: "of before", own: "of before", event: none });
  assert.deepEqual(places["in_rule"], { status: "ok", alias: "ok", of: "this", own: null, event: none });
  assert.deepEqual(places["in_task_set"], { status: "ok", alias: "ok", of: "this", own: null, event: none });
  const end = {
    status: "ok",
    alias: "ok",
    of: "of before",
    own: "of before",
    event: ["step.done", "probe", "step.done"],
  };
  assert.deepEqual(places["in_step_set"], end);
  assert.deepEqual(places["in_arc"], end);
});

test("_prev, _attempt, iter and loop_index mean something in tasks, and nothing at the step's end", async (t) => {
  const places = await probe(t, {
    prev: "_prev.value",
    attempt: "_attempt",
    index: "loop_index",
    iter: "iter.index",
  });
  for (const place of ["config", "in_rule", "in_task_set"]) {
    assert.deepEqual(places[place], { prev: "of before", attempt: 1, index: null, iter: null }, place);
  }
  for (const place of ["in_step_set", "in_arc"]) {
    assert.deepEqual(places[place], { prev: null, attempt: null, index: null, iter: null }, place);
  }
});

test("a workload key does not shadow a reserved name, except parent_execution_id", async (t) => {
  const workload = ", execution_id: mine, catalog_id: mine, job: mine, parent_execution_id: mine, loop_index: mine";
  const places = await probe(
    t,
    {
      shadowed: "'mine' in [execution_id, catalog_id, job]",
      parent: "parent_execution_id",
      // A reserved name without a value here is an ordinary name.
      index: "loop_index",
      inWorkload: "workload.execution_id",
    },
    { workload },
  );
  for (const [place, seen] of Object.entries(places)) {
    assert.deepEqual(seen, { shadowed: false, parent: "mine", index: "mine", inWorkload: "mine" }, place);
  }
});

test("null is a value and hides what is below it, undefined does not", async (t) => {
  const { completed } = setup(t);
  const ran = await completed(
    `
workload: { a: workload, b: workload, c: null }
workflow:
  - step: first
    set: { a: null, b: "{{ nothing.at.all }}" }
    next: [{ step: second }]
  - step: second
    tool: { kind: noop, input: { c: null }, result: { a: "{{ a }}", b: "{{ b }}", c: "{{ c }}", d: "{{ c is defined }}" } }
`,
    { c: "request" },
  );
  // A whole template renders undefined to null, so that `b` was set to null.
  assert.deepEqual(await ran.result(), { a: null, b: null, c: null, d: true });
});

test("a bare set of a task is seen by later tasks of the pipeline only", async (t) => {
  const { completed } = setup(t);
  const ran = await completed(`
workflow:
  - step: first
    tool:
      - a: { kind: noop, set: { mark: 1, ctx.kept: 2 } }
      - b: { kind: noop, result: { seen: "{{ mark }}" } }
    set: { after: "{{ mark is defined }}" }
    next: [{ step: second }]
  - step: second
    tool: { kind: noop, result: { seen: "{{ mark is defined }}", kept: "{{ kept }}" } }
`);
  assert.deepEqual(((await ran.step("first")) as JsonObject)["seen"], 1);
  assert.deepEqual(await ran.result(), { seen: false, kept: 2 });
  assert.equal(ran.state.vars["after"], false);
});

test("_prev keeps the last good result when a task fails and the pipeline goes on", async (t) => {
  const { completed } = setup(t, { tools: { broken: [bad("connection", "REFUSED")] } });
  const ran = await completed(`
workflow:
  - step: a
    tool:
      - good: { kind: noop, result: { n: 1 } }
      - broken: { kind: http, spec: { policy: { rules: [{ else: { then: { do: continue } } }] } } }
      - last:
          kind: noop
          result: { prev: "{{ _prev.n }}", output: "{{ output.status }}", code: "{{ broken.error.code }}", status: "{{ broken.status }}" }
`);
  assert.deepEqual(await ran.step("a"), {
    n: 1,
    prev: 1,
    output: "error",
    code: "REFUSED",
    status: "error",
    error: ((await ran.step("a")) as JsonObject)["error"],
  });
});

test("_attempt counts the runs of a task from 1", async (t) => {
  const { completed, calls } = setup(t, { tools: { flaky: [bad("timeout", "T"), bad("timeout", "T"), ok({})] } });
  await completed(`
workflow:
  - step: a
    tool:
      - flaky: { kind: http, url: "run {{ _attempt }}", spec: { policy: { rules: [{ when: "output.status == 'error'", then: { do: retry } }] } } }
      - next: { kind: http, url: "run {{ _attempt }}" }
`);
  assert.deepEqual(
    calls.map((call) => [call.config["url"], call.attempt]),
    [
      ["run 1", 1],
      ["run 2", 2],
      ["run 3", 3],
      ["run 1", 1],
    ],
  );
});
