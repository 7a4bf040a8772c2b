import assert from "node:assert/strict";
import { test } from "node:test";
import { resultText, wholeResult } from "../../../src/cli/progress/result.ts";
import { boundedResult, tasksManifest } from "../../../src/language/views/bounded-result.ts";
import { createLocalResults } from "../../../src/local/results.ts";
import { loading, wholeManifest } from "../../../src/schema/rules/whole-result.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import type { ResultRef, StoredResult } from "../../../src/schema/words/result.ts";

test("a pipeline's result is the merge of its tasks' fields, references loaded", async () => {
  const store = createLocalResults();
  await store.save("noetl://a", '{"x": 2, "y": 3}');
  const second = reference("noetl://a");
  const stored: StoredResult = {
    tasks: [
      ["first", { value: { x: 1, z: 1 } }],
      ["second", { ref: { ...second, meta: { ...second.meta, fields: ["x", "y"] }, extracted: { x: 2 } } }],
    ],
  };
  assert.deepEqual(await wholeResult(stored, store), { x: 2, z: 1, y: 3 });
  assert.deepEqual(boundedResult(stored), {
    x: 2,
    z: 1,
    y: { kind: "result_ref", ref: "noetl://a", field: "y", store: "disk", meta: { bytes: 20, sha256: "" } },
  });
  const manifest = tasksManifest(stored.tasks ?? []);
  assert.deepEqual(manifest, {
    kind: "manifest",
    strategy: "fields",
    parts: [
      { task: "first", value: { x: 1, z: 1 } },
      { task: "second", ref: "noetl://a", bytes: 20, sha256: "", extracted: { x: 2 } },
    ],
    total_parts: 2,
    total_bytes: 33,
  });
  assert.deepEqual(await loading(wholeManifest(manifest), (ref) => store.load(ref)), { x: 2, z: 1, y: 3 });
  const { lines, missing } = resultText(stored);
  assert.deepEqual(JSON.parse(lines.join("")), { x: 2, z: 1 });
  assert.match(missing ?? "", /33 bytes in all; --json/);
  // Within the limit each, whatever they come to together.
  const long = "x".repeat(50_000);
  const inline: StoredResult = {
    tasks: [
      ["first", { value: { a: long, n: 1 } }],
      ["second", { value: { b: long, n: 2 } }],
    ],
  };
  assert.deepEqual(boundedResult(inline), { a: long, n: 2, b: long });
});

test("where no task of a list gave fields its result is that of the last, stored or not", () => {
  const list = reference("noetl://list");
  const map = reference("noetl://map");
  const named = { ref: { ...map, meta: { ...map.meta, fields: ["n", "rows"] }, extracted: { n: null } } };
  assert.deepEqual(
    boundedResult({
      tasks: [
        ["a", { value: [1] }],
        ["b", { ref: list }],
      ],
    }),
    list,
  );
  assert.deepEqual(
    boundedResult({
      tasks: [
        ["a", { ref: list }],
        ["b", { value: 7 }],
      ],
    }),
    7,
  );
  const joined = boundedResult({
    tasks: [
      ["a", named],
      ["b", { ref: list }],
    ],
  }) as Record<string, unknown>;
  assert.deepEqual([Object.keys(joined), joined["n"]], [["n", "rows"], null]);
  assert.equal((joined["rows"] as { ref: string }).ref, map.ref);
});

test("a loop's result has its stored parts in collection order", async () => {
  const store = createLocalResults();
  const part: Json = [[0, { value: "a" }] as unknown as Json, [2, { value: "c" }] as unknown as Json];
  await store.save("noetl://part", JSON.stringify(part));
  const stored: StoredResult = {
    loop: {
      status: "completed",
      stats: { total: 3, success: 3, failed: 0 },
      tail: [[1, { value: "b" }]],
      parts: [{ ref: "noetl://part", count: 2, min: 0, max: 2, bytes: 10 }],
    },
  };
  const whole = (await wholeResult(stored, store)) as { results: Json; iterations: number };
  assert.deepEqual(whole.results, ["a", "b", "c"]);
  assert.equal(whole.iterations, 3);
  const bounded = boundedResult(stored) as { results: { parts: { ref: string }[] } };
  assert.equal(bounded.results.parts[0]?.ref, "noetl://part");
});

test("a manifest is what its parts come to", async () => {
  const store = createLocalResults();
  const manifest = {
    kind: "manifest",
    strategy: "concat",
    merge_path: "$.n",
    parts: [{ ref: "noetl://a" }, { ref: "noetl://b" }],
  };
  await store.save("noetl://a", '{"n": [1]}');
  await store.save("noetl://b", '{"n": [2, 3]}');
  await store.save("noetl://x/manifest", JSON.stringify(manifest));
  assert.deepEqual(await wholeResult({ ref: reference("noetl://x/manifest") }, store), [1, 2, 3]);
  assert.deepEqual(
    await wholeResult({ ref: reference("noetl://x/manifest", true) }, store),
    reference("noetl://x/manifest", true),
  );
});

test("a sensitive result is never loaded to be shown", async () => {
  const store = createLocalResults();
  await store.save("noetl://secret", '{"token": "secret-text"}');
  const stored: StoredResult = { ref: reference("noetl://secret", true) };
  assert.doesNotMatch(JSON.stringify(await wholeResult(stored, store)), /secret-text/);
  assert.match(resultText(stored).missing ?? "", /sensitive/);
  const pipeline: StoredResult = {
    tasks: [
      ["login", stored],
      ["count", { value: { n: 1 } }],
    ],
  };
  assert.deepEqual(await wholeResult(pipeline, store), { n: 1 });
  assert.deepEqual(boundedResult(pipeline), { n: 1 });
});

test("a long result is cut for people and says so", () => {
  const { lines, missing } = resultText({ value: Array.from({ length: 1_000 }, (_, index) => index) });
  assert.ok(lines.length <= 40);
  assert.match(missing ?? "", /--json prints the whole/);
  assert.equal(resultText({ value: { a: 1 } }).missing, undefined);
});

test("a result that is missing from the store is an error that names it", async () => {
  const stored: StoredResult = { ref: reference("noetl://gone") };
  await assert.rejects(wholeResult(stored, createLocalResults()), /noetl:\/\/gone/);
});

function reference(ref: string, sensitive = false): ResultRef {
  return {
    kind: "result_ref",
    ref,
    store: "disk",
    scope: "permanent",
    meta: { content_type: "application/json", bytes: 20, sha256: "" },
    extracted: {},
    preview: sensitive ? { truncated: true, bytes: 0, sample: "" } : { truncated: false, bytes: 20, sample: "{}" },
  };
}
