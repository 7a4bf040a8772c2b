import assert from "node:assert/strict";
import { test } from "node:test";
import { FlowError } from "../../src/schema/words/errors.ts";
import type { Json } from "../../src/schema/words/json.ts";
import { type Bench, type Ran, setup } from "../worker/support/bench.ts";

// Interface specification, Result references: when the payloads of a local run end.

function making(name: string, store: string, rest = ""): string {
  const make = `{ kind: noop, result: { list: [1, 2] }, spec: { result: { inline_max_bytes: 0, store: { ${store} } } } }`;
  return `  - { step: ${name}, tool: ${make} ${rest} }`;
}

/** The references that the run's tasks have stored, by step. */
function refs({ of }: Ran): Map<string, string> {
  return new Map(
    of("task.done").flatMap(({ step, result }) => (result?.ref === undefined ? [] : [[step, result.ref.ref]])),
  );
}

async function readable(bench: Bench, ref: string | undefined): Promise<boolean> {
  try {
    assert.deepEqual(await bench.runtime.results.load(ref ?? ""), { list: [1, 2] } satisfies Json);
    return true;
  } catch (error) {
    assert.ok(error instanceof FlowError && error.code === "REFERENCE_NOT_AVAILABLE", String(error));
    return false;
  }
}

test("a payload of the scope step is read by the step's arcs and by no later step", async (t) => {
  const bench = setup(t);
  const ran = await bench.failed(`
workflow:
${making("make", "scope: step", ', next: { arcs: [{ step: use, when: "{{ make.list[1] == 2 }}", args: { first: "{{ make.list[0] }}" } }] }')}
  - { step: use, tool: { kind: noop, result: { second: "{{ make.list[1] }}" } } }
`);
  const { code, step } = ran.state.error ?? {};
  assert.deepEqual([code, step], ["REFERENCE_NOT_AVAILABLE", "use"]);
});

test("a payload of the scope execution ends with it, unless it is its result", async (t) => {
  const bench = setup(t);
  const ran = await bench.completed(`
workflow:
${making("first", "scope: execution", ", next: [{ step: kept }]")}
${making("kept", "scope: permanent", ", next: [{ step: end }]")}
${making("end", "scope: execution")}
`);
  const stored = refs(ran);
  assert.deepEqual(await Promise.all(["first", "kept", "end"].map((step) => readable(bench, stored.get(step)))), [
    false,
    true,
    true,
  ]);
});

test("a payload of the scope workflow outlives the child that made it, and ends with the root", async (t) => {
  const bench = setup(t, {
    files: { "child.yaml": `metadata: { name: child }\nworkflow:\n${making("made", "scope: workflow")}\n` },
  });
  const ran = await bench.completed(`
workflow:
  - step: call
    tool: { kind: playbook, path: child.yaml, return_step: made }
    next: [{ step: read }]
  - { step: read, tool: { kind: noop, result: { list: "{{ call.list }}" } } }
`);
  assert.deepEqual(await ran.result(), { list: [1, 2] });
  const child = bench.executions().find(({ state }) => state.path === "child");
  assert.ok(child !== undefined);
  assert.equal(await readable(bench, refs(child).get("made")), false);
});

test("a loop's parts and manifest end with the scope of its step", async (t) => {
  const bench = setup(t);
  const ran = await bench.completed(`
workflow:
  - step: each
    loop: { in: 8, iterator: n }
    output: { store: { scope: execution } }
    tool: { kind: noop, result: { text: "{{ 'x' * 20000 }}" } }
    next: [{ step: end }]
  - { step: end, tool: { kind: noop, result: { count: "{{ each.results | length }}" } } }
`);
  assert.deepEqual(await ran.result(), { count: 8 });
  const { parts = [], manifest = "" } = ran.state.steps["each"]?.result?.loop ?? {};
  assert.ok(parts.length > 1);
  for (const ref of [manifest, ...parts.map((part) => part.ref)]) assert.equal(await readable(bench, ref), false, ref);
});

test("a payload is gone when its time is over, and its reference says when that is", async (t) => {
  const bench = setup(t);
  const ran = await bench.failed(`
workflow:
${making("make", "kind: s3, ttl: 1h", ", next: [{ step: wait }]")}
  - { step: wait, tool: { kind: http, name: wait, spec: { policy: { rules: [{ when: "{{ _attempt < 14 }}", then: { do: retry, attempts: 99, delay: 300 } }] } } }, next: [{ step: use }] }
  - { step: use, tool: { kind: noop, result: "{{ make }}" } }
`);
  assert.equal(ran.state.error?.code, "REFERENCE_NOT_AVAILABLE");
  assert.match(ran.state.error.message, /its time is over/);
  const { ref } = ran.of("task.done")[0]?.result ?? {};
  assert.deepEqual([ref?.store, ref?.expires_at], ["s3", "2026-01-01T01:00:00.000Z"]);
});
