import assert from "node:assert/strict";
import { test } from "node:test";
import { type Names, nameScope } from "../../../src/language/template/names.ts";
import { toPlainJson } from "../../../src/language/template/template.ts";
import { noReferences } from "../../../src/language/views/references.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { StoredResult } from "../../../src/schema/words/result.ts";

// Language document, section 4.9, as a table: which of two layers wins, and what each reserved name is.

function names(more: Partial<Names> & { results?: Record<string, StoredResult> } = {}): Names {
  const results = new Map(Object.entries(more.results ?? {}));
  return {
    executionId: "1",
    catalogId: "2",
    workload: {},
    vars: {},
    spec: {},
    steps: { get: (name) => results.get(name), names: () => results.keys() },
    references: noReferences,
    input: () => ({}),
    reserved: {},
    ...more,
  };
}

function see(given: Names, name: string): unknown {
  const value = nameScope(given).lookup(name);
  return value === undefined ? undefined : toPlainJson(value);
}

function iteration(item: unknown, more: Partial<NonNullable<Names["iteration"]>> = {}) {
  return { iterator: "x", item, index: 0, written: {}, ...more };
}

/** The layers from the top down; each gives `x` the layer's own name. */
const LAYERS: [string, Partial<Names> & { results?: Record<string, StoredResult> }][] = [
  ["reserved", { reserved: { x: "reserved" } }],
  ["input", { input: () => ({ x: "input" }) }],
  ["iteration", { iteration: iteration("iteration") }],
  ["local", { locals: { x: "local" } }],
  ["task", { tasks: new Map([["x", { value: "task" }]]) }],
  ["pending", { pending: { x: "pending" } }],
  ["variable", { vars: { x: "variable" } }],
  ["step", { results: { x: { value: "step" } } }],
  ["workload", { workload: { x: "workload" } }],
];

for (const [index, [name]] of LAYERS.entries()) {
  const below = LAYERS.slice(index);
  test(`${name} wins over ${
    below
      .slice(1)
      .map(([other]) => other)
      .join(", ") || "nothing"
  }`, () => {
    assert.equal(see(names(Object.assign({}, ...below.map(([, layer]) => layer))), "x"), name);
  });
}

/** Each layer below the reserved one with null as its `x`. */
const NULLS: typeof LAYERS = [
  ["input", { input: () => ({ x: null }) }],
  ["iteration", { iteration: iteration(null) }],
  ["local", { locals: { x: null } }],
  ["task", { tasks: new Map([["x", { value: null }]]) }],
  ["pending", { pending: { x: null } }],
  ["variable", { vars: { x: null } }],
  ["step", { results: { x: { value: null } } }],
  ["workload", { workload: { x: null } }],
];

for (const [index, [name, nulled]] of NULLS.entries()) {
  test(`null in ${name} is a value and hides what is below`, () => {
    const below = LAYERS.slice(index + 2).map(([, layer]) => layer);
    assert.equal(see(names(Object.assign({}, ...below, nulled)), "x"), null);
  });
}

test("a name that nothing has is undefined, whatever every object has", () => {
  for (const name of [
    "x",
    "constructor",
    "toString",
    "__proto__",
    "iter",
    "loop_index",
    "output",
    "env",
    "spec",
    "result",
  ]) {
    assert.equal(see(names(), name), undefined, name);
  }
});

test("reserved names without a value are ordinary names", () => {
  const given = names({ workload: { loop_index: 5, output: "o", result: "r", spec: "s", iter: "i", _prev: 1 } });
  const seen = ["loop_index", "output", "result", "spec", "iter", "_prev"].map((name) => see(given, name));
  assert.deepEqual(seen, [5, "o", "r", "s", "i", 1]);
});

test("execution_id, catalog_id and job are not shadowed, parent_execution_id is", () => {
  const own = { execution_id: "w", catalog_id: "w", job: "w", parent_execution_id: "w" };
  for (const layer of [{ workload: own }, { input: () => own }, { vars: own }]) {
    const given = names({ parentExecutionId: "9", ...layer });
    assert.deepEqual([see(given, "execution_id"), see(given, "catalog_id")], ["1", "2"]);
    assert.deepEqual(see(given, "job"), { uuid: "1", id: "1", execution_id: "1" });
    assert.equal(see(given, "parent_execution_id"), "w");
  }
  assert.equal(see(names({ parentExecutionId: "9" }), "parent_execution_id"), "9");
  assert.equal(
    see(names({ parentExecutionId: "9", workload: { parent_execution_id: null } }), "parent_execution_id"),
    null,
  );
  assert.equal(see(names(), "parent_execution_id"), undefined);
});

test("ctx is everything set, the step results and the workload as one map, vars only what was set", () => {
  const given = names({
    workload: { w: 1, s: "workload", v: "workload" },
    results: { s: { value: { n: 2 } }, v: { value: "step" } },
    vars: { v: "set", p: "old" },
    pending: { p: "new" },
  });
  assert.deepEqual(see(given, "ctx"), { w: 1, s: { n: 2 }, v: "set", p: "new" });
  assert.deepEqual(see(given, "vars"), { v: "set", p: "new" });
  assert.deepEqual(see(given, "workload"), { w: 1, s: "workload", v: "workload" });
  assert.deepEqual(see(given, "steps"), { s: { n: 2 }, v: "step" });
});

test("ctx and steps are read field by field without touching the others", () => {
  const given = names({ vars: { v: 1 } });
  given.steps = {
    get: (name) => {
      assert.equal(name, "s");
      return { value: 2 };
    },
    names: () => assert.fail("nobody asked for all"),
  };
  const scope = nameScope(given);
  const field = (root: string, key: string) =>
    toPlainJson((scope.lookup(root) as { get(key: string): unknown }).get(key));
  assert.deepEqual([field("ctx", "v"), field("ctx", "s"), field("steps", "s")], [1, 2, 2]);
});

test("input and args are the same map", () => {
  const given = names({ input: () => ({ a: 1 }) });
  assert.deepEqual([see(given, "input"), see(given, "args"), see(given, "a")], [{ a: 1 }, { a: 1 }, 1]);
});

test("result and response are the result of the step that led here", () => {
  const given = names({ results: { before: { value: { n: 1 } } }, from: "before" });
  assert.deepEqual([see(given, "result"), see(given, "response")], [{ n: 1 }, { n: 1 }]);
  assert.equal(see(names({ from: "skipped" }), "result"), undefined);
});

test("outcome is output by its other name", () => {
  assert.deepEqual(see(names({ reserved: { output: { status: "ok" } } }), "outcome"), { status: "ok" });
});

test("iter describes the current iteration", () => {
  const fields = (more: Partial<NonNullable<Names["iteration"]>>) =>
    see(names({ iteration: iteration("a", more) }), "iter") as JsonObject;
  assert.deepEqual(fields({ index: 0, total: 2 }), {
    index: 0,
    _index: 0,
    _first: true,
    _last: false,
    _total: 2,
    parent: null,
    x: "a",
  });
  const last = fields({ index: 1, total: 2, parent: { y: 1 }, written: { mark: true, index: "written" } });
  assert.deepEqual([last["_first"], last["_last"], last["parent"], last["mark"]], [false, true, { y: 1 }, true]);
  assert.equal(last["index"], "written", "What was written wins");
  const open = fields({ index: 3 });
  assert.deepEqual([open["_last"], open["_total"]], [null, null], "A cursor does not know its end");
  assert.equal(see(names({ iteration: iteration("a", { index: 3 }) }), "loop_index"), 3);
});

test("the names of a scope are all that can be looked up", () => {
  const given = names(
    Object.assign({}, ...LAYERS.map(([, layer]) => layer), { from: "x", env: {}, parentExecutionId: "9" }),
  );
  const all = new Set(nameScope(given).names());
  for (const name of [
    "x",
    "execution_id",
    "parent_execution_id",
    "loop_index",
    "env",
    "result",
    "iter",
    "ctx",
    "args",
  ]) {
    assert.ok(all.has(name), name);
  }
  const known = new Set(nameScope(names({ pending: { p: 1 }, workload: { w: 1 } })).names());
  assert.ok(known.has("p") && known.has("w"));
});
