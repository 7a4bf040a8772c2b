import assert from "node:assert/strict";
import { test } from "node:test";
import { setup } from "../support/bench.ts";
import { ok } from "../support/scripted-tools.ts";

// Language document, sections 3 and 8: how a task reaches its tool.

test("a kind that nothing runs fails its task when it is run, and its rules may take that", async (t) => {
  for (const kind of ["frobnicate", "rhai", "container"]) {
    const { state } = await setup(t).failed(`workflow: [{ step: a, tool: { kind: ${kind} } }]`);
    assert.equal(state.error?.kind, "configuration");
    assert.match(state.error?.message ?? "", new RegExp(`kind "${kind}" cannot be run`));
  }
  const ran = await setup(t).completed(`
workflow:
  - step: a
    tool: [{ x: { kind: frobnicate, spec: { policy: { rules: [{ when: "output.error.kind == 'configuration'", then: { do: continue } }] } } } }]
`);
  assert.equal(ran.of("task.done")[0]?.status, "error");
});

test("a step without a tool does nothing and is done", async (t) => {
  const ran = await setup(t).completed("workflow: [{ step: a }]");
  assert.deepEqual(await ran.result(), { status: "ok" });
});

test("kind aliases reach the tool of the canonical kind", async (t) => {
  const { completed, calls } = setup(t);
  await completed(`
workflow:
  - step: a
    tool:
      - one: { kind: postgres, query: x }
      - two: { kind: sql, query: x }
      - three: { kind: script, script: { code: x } }
      - four: { kind: result, action: get, ref: x }
`);
  assert.deepEqual(
    calls.map(({ kind }) => kind),
    ["sqldb", "sqldb", "python", "artifact"],
  );
});

test("a tool knows its execution, step, task and document", async (t) => {
  const { completed, calls, folder } = setup(t);
  const ran = await completed(`
workflow:
  - step: calls
    tool:
      - code:
          kind: python
          code: |
            result = 1
`);
  const [call] = calls;
  assert.deepEqual(
    [call?.executionId, call?.step, call?.task, call?.attempt],
    [ran.state.executionId, "calls", "code", 1],
  );
  assert.equal(call?.source.file, `${folder}/main.yaml`);
  assert.equal(call?.source.codeLine, 10);
});

test("task run ids are unique over steps, iterations and runs of a step", async (t) => {
  const { completed, calls } = setup(t);
  await completed(`
workflow:
  - step: a
    loop: { in: 3 }
    tool: [{ x: { kind: http } }, { y: { kind: http } }]
    set: { n: "{{ (n | default(0)) + 1 }}" }
    next: { arcs: [{ step: a, when: "n < 2" }] }
`);
  assert.equal(calls.length, 12);
  assert.equal(new Set(calls.map(({ taskRunId }) => taskRunId)).size, 12);
});

test("lines that a tool logs are handed on with their place", async (t) => {
  const tools = {
    work: (call: { log: (line: string) => void; config: { url?: unknown } }) => {
      call.log(`at ${String(call.config.url)}`);
      return ok({});
    },
  };
  const { completed, lines } = setup(t, { tools });
  const ran = await completed(`
workflow:
  - step: a
    tool: { kind: http, name: work, url: start }
    next: [{ step: b }]
  - step: b
    loop: { in: 2 }
    tool: { kind: http, name: work, url: "{{ loop_index }}" }
`);
  const { executionId } = ran.state;
  const told = lines.map(({ commandId, ...line }) => {
    assert.match(commandId, /^\d+$/);
    return line;
  });
  assert.deepEqual(told, [
    { executionId, step: "a", task: "work", text: "at start" },
    { executionId, step: "b", task: "work", iteration: 0, text: "at 0" },
    { executionId, step: "b", task: "work", iteration: 1, text: "at 1" },
  ]);
});

const WORKBOOK = `
workbook:
  - name: greet
    tool: { kind: http, url: "{{ greeting }} {{ name }}", input: { greeting: Hello, name: World }, timeout: 3 }
`;

test("a workbook task runs the named tool with its inputs over the tool's defaults", async (t) => {
  const { completed, calls } = setup(t, { tools: { a: (call) => ok({ said: call.config["url"] ?? null }) } });
  const ran = await completed(`${WORKBOOK}
workflow:
  - step: a
    tool: { kind: workbook, name: greet, input: { name: Ada } }
`);
  assert.deepEqual([calls[0]?.kind, calls[0]?.input], ["http", { greeting: "Hello", name: "Ada" }]);
  assert.deepEqual(await ran.result(), { said: "Hello Ada" });
});

test("what a workbook task hands over is rendered without the defaults of the tool that it calls", async (t) => {
  const { completed, calls } = setup(t, { tools: { a: () => ok({}), b: () => ok({}) } });
  await completed(`workload: { x: 5, y: 6 }
workbook:
  - { name: get, input: { x: null, y: null, z: "{{ y }}" }, tool: { kind: http, url: "{{ x }}/{{ y }}/{{ z }}" } }
workflow:
  - step: a
    input: { y: 7 }
    tool: { kind: workbook, name: get, input: { x: "{{ x }}", y: "{{ y }}" } }
    next: b
  - { step: b, tool: { kind: workbook, name: get } }
`);
  // The defaults are rendered with the step's inputs, and give way to the call's.
  assert.deepEqual(
    calls.map(({ input }) => input),
    [
      { x: 5, y: 7, z: 7 },
      { x: null, y: null, z: 6 },
    ],
  );
});

test("a workbook task that names no tool of the workbook fails and lists them", async (t) => {
  const { state } = await setup(t).failed(`${WORKBOOK}
workload: { which: shout }
workflow:
  - step: a
    tool: { kind: workbook, name: "{{ which }}", input: { name: Ada } }
`);
  assert.match(state.error?.message ?? "", /workbook has no tool .*; it has: greet/);
});

test("code is given every name that it may read, results with their virtual fields, and no secret", async (t) => {
  const { completed, calls } = setup(t, {
    tools: { fetch: [ok({ data: { n: 1 } })] },
    env: { TOWN: "Bern" },
  });
  await completed(`
workload: { w: 1 }
keychain: [{ name: api, kind: static, data: { token: secret } }]
workflow:
  - step: fetch
    tool: { kind: http }
    set: { v: 2 }
    next: { arcs: [{ step: code, set: { arrived: 3 } }] }
  - step: code
    loop: { in: [x] }
    tool: { kind: python, code: "result = context['w']", input: { token: "{{ keychain.api.token }}" } }
`);
  const names = calls[1]?.names() ?? {};
  const { fetch, w, v, arrived, item, loop_index, env, result, execution_id, token } = names as Record<string, unknown>;
  assert.deepEqual(
    { fetch, w, v, arrived, item, loop_index, env, result, token },
    {
      fetch: { data: { n: 1 }, body: { n: 1 } },
      w: 1,
      v: 2,
      arrived: 3,
      item: "x",
      loop_index: 0,
      env: { TOWN: "Bern" },
      result: { data: { n: 1 }, body: { n: 1 } },
      token: "secret",
    },
  );
  assert.equal(typeof execution_id, "string");
  assert.equal(names["keychain"], undefined);
});

test("code that reads no name beside its inputs is given none", async (t) => {
  const { completed, calls } = setup(t);
  await completed('workflow: [{ step: a, tool: { kind: python, code: "result = 1" } }]', { big: 1 });
  assert.deepEqual(calls[0]?.names(), {});
});

test("env holds what the runtime allows, and nothing of the process", async (t) => {
  const { completed } = setup(t, { env: { TOWN: "Bern" } });
  const ran = await completed(`
workflow:
  - step: a
    when: "env.TOWN == 'Bern'"
    tool: { kind: noop, result: { town: "{{ env.TOWN }}", path: "{{ env.PATH is defined }}", all: "{{ env }}" } }
`);
  assert.deepEqual(await ran.result(), { town: "Bern", path: false, all: { TOWN: "Bern" } });
});
