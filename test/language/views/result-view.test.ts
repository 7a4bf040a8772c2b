import assert from "node:assert/strict";
import { test } from "node:test";
import { toPlainJson } from "../../../src/language/template/template.ts";
import { ReferenceNeeded, type References } from "../../../src/language/views/references.ts";
import { ResultView } from "../../../src/language/views/result-view.ts";
import type { View } from "../../../src/language/views/view.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import type { StoredResult } from "../../../src/schema/words/result.ts";

// Language document, section 4.5, field by field, and what is read from the store for it.

/** A store that tells which payloads were asked for. */
function storeOf(payloads: Record<string, Json> = {}): References & { asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    get(ref) {
      asked.push(ref);
      return payloads[ref];
    },
  };
}

function reference(ref: string, extracted: Record<string, Json> = {}): StoredResult {
  const meta = { content_type: "application/json", bytes: 9, sha256: "0" };
  const preview = { truncated: true, bytes: 9, sample: "{" };
  return { ref: { kind: "result_ref", ref, store: "disk", scope: "permanent", meta, extracted, preview } };
}

function see(stored: StoredResult, key: string | number, payloads: Record<string, Json> = {}): Json | undefined {
  const value = new ResultView(stored, storeOf(payloads)).get(key);
  return value === undefined ? undefined : toPlainJson(value);
}

/** The same value inline and by reference. */
function kept(value: Json): [string, StoredResult, Record<string, Json>][] {
  return [
    ["inline", { value }, {}],
    ["by reference", reference("r"), { r: value }],
  ];
}

test("own field, then data or result as itself, then body, then a field of data", () => {
  const value = { a: 1, none: null, data: { b: 2, a: 9, body: 5 } };
  for (const [where, stored, payloads] of kept(value)) {
    assert.equal(see(stored, "a", payloads), 1, where);
    assert.equal(see(stored, "none", payloads), null, where);
    assert.deepEqual(see(stored, "data", payloads), value.data, where);
    assert.deepEqual(see(stored, "result", payloads), value, where);
    assert.deepEqual(see(stored, "body", payloads), value.data, where);
    assert.equal(see(stored, "b", payloads), 2, where);
    assert.equal(see(stored, "c", payloads), undefined, where);
  }
});

test("fields of every object of the host language are no fields", () => {
  for (const [where, stored, payloads] of kept({ data: {} })) {
    for (const key of ["constructor", "toString", "__proto__", "hasOwnProperty"]) {
      assert.equal(see(stored, key, payloads), undefined, `${key} ${where}`);
    }
  }
});

test("a list has items by index, negative from the end, and itself as rows, data, result and results", () => {
  for (const [where, stored, payloads] of kept([10, 20])) {
    assert.deepEqual(
      [see(stored, 0, payloads), see(stored, -1, payloads), see(stored, 2, payloads)],
      [10, 20, undefined],
      where,
    );
    for (const key of ["rows", "data", "result", "results"])
      assert.deepEqual(see(stored, key, payloads), [10, 20], where);
  }
});

test("what is no list has no rows and no items", () => {
  for (const [where, stored, payloads] of kept({ a: 1 })) {
    assert.deepEqual(
      [see(stored, "rows", payloads), see(stored, "results", payloads), see(stored, 0, payloads)],
      [undefined, undefined, undefined],
      where,
    );
  }
});

test("extracted fields and those of the reference are read without the payload, others ask for it", () => {
  const store = storeOf();
  const view = new ResultView(reference("r", { a: 1, gone: null }), store);
  assert.deepEqual([view.get("a"), view.get("gone"), view.get("_store")], [1, null, "disk"]);
  assert.equal((view.get("_ref") as { ref: string }).ref, "r");
  assert.equal(view.get("__ref__"), view.get("_ref"));
  assert.equal((view.get("_preview") as { bytes: number }).bytes, 9);
  assert.deepEqual(store.asked, []);
  for (const read of [() => view.get("b"), () => view.get(0), () => view.plain()]) {
    assert.throws(read, (error) => error instanceof ReferenceNeeded && error.ref === "r");
  }
});

test("an inline result has no reference", () => {
  for (const key of ["_ref", "__ref__", "_store", "_preview"]) assert.equal(see({ value: { a: 1 } }, key), undefined);
});

test("virtual fields come after own ones and before those of data", () => {
  const stored: StoredResult = {
    value: { own: "own", data: { inner: "inner", only: "inner" } },
    virtual: { own: { value: "virtual" }, inner: { value: "virtual" }, command_0: { value: { rows: [1] } } },
  };
  assert.deepEqual([see(stored, "own"), see(stored, "inner"), see(stored, "only")], ["own", "virtual", "inner"]);
  assert.deepEqual(see(stored, "command_0"), { rows: [1] });
  assert.deepEqual(toPlainJson(new ResultView(stored, storeOf())), stored.value, "They are no part of the value");
});

const PIPELINE: StoredResult = {
  tasks: [
    ["first", { value: { n: 1, a: 1 } }],
    ["second", { value: [5] }],
    ["third", reference("r", { n: 3 })],
  ],
};

test("a pipeline is the merge of its tasks' fields, and each by its label", () => {
  const payloads = { r: { n: 3, list: [7] } };
  assert.deepEqual([see(PIPELINE, "n", payloads), see(PIPELINE, "a", payloads)], [3, 1]);
  // A field of that name in any task's result would win, so that all of them are looked at.
  assert.deepEqual(see(PIPELINE, "first", payloads), { n: 1, a: 1 });
  assert.deepEqual(see(PIPELINE, "second", payloads), [5]);
  const results = new ResultView(PIPELINE, storeOf(payloads)).get("results") as Record<string, View>;
  assert.deepEqual(Object.keys(results), ["first", "second", "third"]);
  assert.deepEqual(toPlainJson(new ResultView(PIPELINE, storeOf(payloads))), { n: 3, a: 1, list: [7] });
});

test("a field of a pipeline that its last task has asks for no payload", () => {
  const store = storeOf();
  assert.equal(new ResultView(PIPELINE, store).get("n"), 3);
  assert.deepEqual(store.asked, []);
  const stored: StoredResult = {
    tasks: [
      ["a", reference("r")],
      ["b", { value: { n: 1 } }],
    ],
  };
  assert.equal(new ResultView(stored, store).get("n"), 1);
  assert.deepEqual(store.asked, []);
});

test("a pipeline without maps is its last task's result", () => {
  const stored: StoredResult = {
    tasks: [
      ["a", { value: 1 }],
      ["b", { value: "text" }],
    ],
  };
  assert.equal(toPlainJson(new ResultView(stored, storeOf())), "text");
});

const ENTRY = (index: number): [number, StoredResult] => [index, { value: { n: index } }];
const LOOP: StoredResult = {
  loop: {
    status: "failed",
    stats: { total: 5, success: 3, failed: 1 },
    tail: [ENTRY(3)],
    // Parallel iterations end in any order, so that the ranges of parts overlap.
    parts: [
      { ref: "p0", count: 2, min: 0, max: 2, bytes: 1 },
      { ref: "p1", count: 1, min: 1, max: 1, bytes: 1 },
    ],
  },
};
const PARTS = { p0: [ENTRY(0), ENTRY(2)], p1: [ENTRY(1)] } as unknown as Record<string, Json>;

test("a loop's result has results in collection order, stats, iterations and status", () => {
  assert.deepEqual(toPlainJson(new ResultView(LOOP, storeOf(PARTS))), {
    results: [{ n: 0 }, { n: 1 }, { n: 2 }, { n: 3 }],
    stats: { total: 5, success: 3, failed: 1 },
    iterations: 4,
    status: "failed",
  });
  assert.deepEqual(see(LOOP, "data", PARTS), [{ n: 0 }, { n: 1 }, { n: 2 }, { n: 3 }]);
});

test("a loop's counters are read without any part, one result with the parts that may hold it", () => {
  const store = storeOf(PARTS);
  const view = new ResultView(LOOP, store);
  assert.deepEqual([view.get("status"), view.get("iterations")], ["failed", 4]);
  const results = view.get("results") as View;
  assert.deepEqual(toPlainJson(results.get(3)), { n: 3 });
  assert.deepEqual(store.asked, []);
  assert.deepEqual(toPlainJson(results.get(2)), { n: 2 });
  assert.deepEqual(store.asked, ["p0"]);
  assert.deepEqual(toPlainJson(results.get(1)), { n: 1 });
  assert.deepEqual(toPlainJson(results.get(-1)), { n: 3 });
  assert.equal(results.get(4), undefined);
  assert.equal(results.get("length"), undefined);
});

test("code is given body, results and virtual fields as real ones, own ones kept", () => {
  const view = (stored: StoredResult) => toPlainJson(new ResultView(stored, storeOf(PARTS)).forCode());
  assert.deepEqual(view({ value: { data: { a: 1 } } }), { data: { a: 1 }, body: { a: 1 } });
  assert.deepEqual(view({ value: { data: 1, body: 2 } }), { data: 1, body: 2 });
  assert.deepEqual(view({ value: { rows: [] }, virtual: { command_0: { value: 1 } } }), { rows: [], command_0: 1 });
  assert.deepEqual(view({ value: { a: 1 } }), { a: 1 });
  assert.deepEqual(view({ value: [1] }), [1]);
  assert.deepEqual(view({ tasks: [["a", { value: { n: 1 } }]] }), { n: 1, results: { a: { n: 1 } } });
});

test("selected fields of a task are fields of the whole, and of what code is given, inline and by reference", () => {
  const value = { status: "ok", page: { next: "c2" } };
  const inline: StoredResult = { value, virtual: { next: { value: "c2" } } };
  for (const [where, stored, payloads] of [
    ["inline", inline, {}],
    ["by reference", reference("r", { status: "ok", next: "c2" }), { r: value }],
  ] as [string, StoredResult, Record<string, Json>][]) {
    const whole: StoredResult = {
      tasks: [
        ["make", stored],
        ["look", { value: { n: 1 } }],
      ],
    };
    assert.equal(see(whole, "next", payloads), "c2", where);
    assert.deepEqual(toPlainJson(new ResultView(whole, storeOf(payloads))), { ...value, n: 1 }, where);
    const code = toPlainJson(new ResultView(stored, storeOf(payloads)).forCode());
    assert.deepEqual(code, { ...value, next: "c2" }, where);
  }
});

test("a list's reference is the manifest of its tasks' results; without a reference while all are inline", () => {
  const manifest = see(PIPELINE, "_ref") as { kind: string; parts: { task: string }[] };
  assert.equal(manifest.kind, "manifest");
  assert.deepEqual(
    manifest.parts.map(({ task }) => task),
    ["first", "second", "third"],
  );
  assert.equal(see({ tasks: [["a", { value: 1 }]] }, "_ref"), undefined);
});
