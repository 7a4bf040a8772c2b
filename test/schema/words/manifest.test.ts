import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json } from "../../../src/schema/words/json.ts";
import { type Accumulate, asManifest, startMerge } from "../../../src/schema/words/manifest.ts";
import { parsePath, valuesAt } from "../../../src/schema/words/merge-path.ts";

// Interface specification, Manifest; decisions, "Results".

function merged(accumulate: Accumulate, parts: Json[]): Json {
  const merge = startMerge(accumulate);
  for (const part of parts) merge.add(part);
  return merge.value();
}

const PAGES: Json[] = [
  { page: 1, data: { items: [1, 2] }, seen: { a: 1, x: [1] } },
  { page: 2, data: { items: [3] }, seen: { b: 2, x: [2] } },
  { page: 3, data: {}, seen: { a: 3 } },
];

for (const [what, accumulate, value] of [
  ["append lists the parts", { strategy: "append" }, PAGES],
  ["append lists what the path finds", { strategy: "append", merge_path: "$.page" }, [1, 2, 3]],
  ["concat joins the lists at the path", { strategy: "concat", merge_path: "$.data.items" }, [1, 2, 3]],
  ["concat takes what is no list as an item", { strategy: "concat", merge_path: "$.page" }, [1, 2, 3]],
  ["concat joins through a wildcard", { strategy: "concat", merge_path: "$.data[*]" }, [1, 2, 3]],
  ["merge goes into maps and replaces lists", { strategy: "merge", merge_path: "$.seen" }, { a: 3, x: [2], b: 2 }],
  ["replace keeps the last", { strategy: "replace" }, PAGES[2]],
  ["replace keeps the last that the path finds", { strategy: "replace", merge_path: "$.data.items" }, [3]],
] as [string, Accumulate, Json][]) {
  test(what, () => {
    const before = structuredClone(PAGES);
    assert.deepEqual(merged(accumulate, PAGES), value);
    assert.deepEqual(PAGES, before, "The parts belong to others");
  });
}

test("nothing comes to an empty list, or to null", () => {
  assert.deepEqual(
    (["append", "concat", "merge", "replace"] as const).map((strategy) => merged({ strategy }, [])),
    [[], [], null, null],
  );
});

test("null adds nothing to joined lists, and is a part like any other to a list of parts", () => {
  assert.deepEqual(merged({ strategy: "concat" }, [null, [1], null]), [1]);
  assert.deepEqual(merged({ strategy: "append" }, [null, 1]), [null, 1]);
});

test("what was merged before is taken as it is", () => {
  const concat = startMerge({ strategy: "concat", merge_path: "$.data" });
  concat.add([1, [2]], true);
  concat.add({ data: [3] });
  assert.deepEqual(concat.value(), [1, [2], 3]);
  const append = startMerge({ strategy: "append" });
  append.add([[1], 2], true);
  append.add([3]);
  assert.deepEqual(append.value(), [[1], 2, [3]]);
});

test("a key that is called like the prototype is a key", () => {
  const part = JSON.parse('{"__proto__": {"polluted": 1}}') as Json;
  const value = merged({ strategy: "merge" }, [part, part]);
  assert.equal(JSON.stringify(value), '{"__proto__":{"polluted":1}}');
  assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
});

test("merging many small maps costs no copy of what was gathered", () => {
  const parts = Array.from({ length: 20_000 }, (_, index) => ({ [`k${index}`]: { n: index } }));
  assert.equal(Object.keys(merged({ strategy: "merge" }, parts) as object).length, 20_000);
});

for (const [path, value, found] of [
  ["$", 5, [5]],
  ["$.a.b", { a: { b: 1 } }, [1]],
  ["$['odd name'][\"it's\"]", { "odd name": { "it's": 1 } }, [1]],
  ["$['it\\'s \"so\"']", { 'it\'s "so"': 1 }, [1]],
  ["$[0]", [7, 8], [7]],
  ["$[-1]", [7, 8], [8]],
  ["$[2]", [7, 8], []],
  ["$.*[0]", { a: [1], b: [2], c: {} }, [1, 2]],
  ["$.größe-2", { "größe-2": 1 }, [1]],
  ["$.constructor", {}, []],
  ["$.length", [1], []],
  ["$.a.b", { a: null }, []],
] as [string, Json, Json[]][]) {
  test(`${path} leads to ${JSON.stringify(found)} in ${JSON.stringify(value)}`, () => {
    const segments = parsePath(path);
    assert.ok(Array.isArray(segments), JSON.stringify(segments));
    assert.deepEqual(valuesAt(segments, value), found);
  });
}

for (const [path, at] of [
  ["a", 0],
  ["$a", 1],
  ["$.", 1],
  ["$.a..b", 3],
  ["$.a[", 3],
  ["$.a[01]", 3],
  ["$.a[?(@.b)]", 3],
  ["$.a['\\x']", 3],
  ["$.a b", 3],
] as const) {
  test(`${path} is no path, at its character ${at + 1}`, () => {
    const problem = parsePath(path);
    assert.ok("message" in problem, JSON.stringify(problem));
    assert.equal(problem.at, at);
  });
}

test("a manifest is distinguished from other maps by its kind, its strategy and its parts", () => {
  const parts = [{ ref: "noetl://a", bytes: 3 }, { ref: "noetl://b" }];
  assert.deepEqual(asManifest({ kind: "manifest", strategy: "concat", merge_path: "$.a", parts, more: 1 }), {
    kind: "manifest",
    strategy: "concat",
    merge_path: "$.a",
    parts,
    total_parts: 2,
    total_bytes: 3,
  });
  for (const other of [
    null,
    [],
    { kind: "result_ref", strategy: "append", parts },
    { kind: "manifest", strategy: "sum", parts },
    { kind: "manifest", strategy: "append" },
    { kind: "manifest", strategy: "append", parts: [{}] },
    { kind: "manifest", strategy: "append", parts: [{ ref: "a", count: "2" }] },
  ] as Json[]) {
    assert.equal(asManifest(other), undefined, JSON.stringify(other));
  }
});
