import assert from "node:assert/strict";
import { test } from "node:test";
import { toPlainJson } from "../../../src/language/template/template.ts";
import { boundedResult } from "../../../src/language/views/bounded-result.ts";
import { withReferences } from "../../../src/language/views/references.ts";
import { ResultView } from "../../../src/language/views/result-view.ts";
import type { View } from "../../../src/language/views/view.ts";
import { loading, referenced } from "../../../src/schema/rules/whole-result.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { asManifest, isManifestRef, type Manifest } from "../../../src/schema/words/manifest.ts";
import type { StoredResult } from "../../../src/schema/words/result.ts";
import { type Given, given } from "../support/given.ts";
import { done, failed } from "../support/reports.ts";

// Interface specification, Manifest: the results of a loop beyond the inline limit, and loops whose results are joined.

const BIG = "x".repeat(20_000);

function resultOf(run: Given, step = "each"): StoredResult {
  const stored = run.state.steps[step]?.result;
  assert.ok(stored);
  return stored;
}

function view(run: Given): ResultView {
  const stored = { get: (ref: string) => run.stored.get(ref) };
  // As `loadedReferences` does: what is at hand of a manifest is what its parts come to.
  const get = (ref: string) => (isManifestRef(ref) ? withReferences(referenced(ref), stored) : stored.get(ref));
  return new ResultView(resultOf(run), { get });
}

function big(count: number, settings = ""): Given {
  const run = given(`workflow: [{ step: each, loop: { in: ${count} } ${settings} }]`);
  for (let index = 0; index < count; index += 1) run.when(done("each", { n: index, items: [index], text: BIG }));
  return run.is({ status: "COMPLETED" });
}

test("the manifest is stored with the loop's end, in the form of the specification", () => {
  const run = big(10);
  const { manifest, parts = [] } = resultOf(run).loop ?? {};
  assert.match(manifest ?? "", /^noetl:\/\/execution\/1\/step\/each\/task\/loop\/run\/[^/]+\/manifest$/);
  const record = run.stored.get(manifest ?? "") as Manifest;
  assert.deepEqual(record, {
    kind: "manifest",
    strategy: "append",
    parts,
    total_parts: 3,
    total_bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
  });
  assert.deepEqual(asManifest(JSON.parse(JSON.stringify(record)))?.parts.length, 3);
  assert.equal(
    run.log.findLast((event) => event.type === "loop.done" && event.manifest === manifest)?.type,
    "loop.done",
  );
});

test("reading the manifest by its reference gives the results in their order", async () => {
  const run = big(10);
  const { manifest = "" } = resultOf(run).loop ?? {};
  const results = await loading(referenced(manifest), async (ref) => run.stored.get(ref) ?? null);
  assert.deepEqual(
    (results as { n: number }[]).map(({ n }) => n),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  );
});

test("people are shown the manifest, and of a long one its reference alone", () => {
  const run = big(10);
  const { results } = boundedResult(resultOf(run)) as { results: JsonObject };
  assert.deepEqual(Object.keys(results), ["kind", "strategy", "total_parts", "total_bytes", "ref", "parts"]);
  const { results: short } = boundedResult(resultOf(run), 100) as { results: JsonObject };
  assert.deepEqual(Object.keys(short), ["kind", "strategy", "total_parts", "total_bytes", "ref"]);
});

test("_ref is the manifest, and nothing if all results are inline", () => {
  const reference = view(big(10)).get("_ref") as JsonObject;
  assert.deepEqual([reference["kind"], reference["total_parts"]], ["manifest", 3]);
  const small = given("workflow: [{ step: each, loop: { in: 2 } }]").when(done("each", 1), done("each", 2));
  assert.equal(view(small).get("_ref"), undefined);
  assert.equal(resultOf(small).loop?.manifest, undefined);
});

test("a loop that was cut off before its end has no manifest, and is shown with the results that are in no part", () => {
  const run = given(`
workflow:
  - { step: start, next: [a, each] }
  - { step: a }
  - { step: each, loop: { in: 9, spec: { mode: parallel } } }
`);
  run.when(done("start"));
  for (let index = 0; index < 5; index += 1) run.when(done("each", { text: BIG }));
  const loop = run.state.steps["each"]?.run?.loop;
  assert.ok(loop);
  const shown = boundedResult(
    { loop: { status: "failed", stats: { total: 9, success: 5, failed: 0 }, tail: loop.tail, parts: loop.parts } },
    1_000,
  );
  const { results } = shown as { results: JsonObject };
  assert.deepEqual([results["total_parts"], (results["tail"] as unknown[]).length], [1, 1]);
  assert.ok(Array.isArray(results["parts"]));
});

const JOINED = ", spec: { result: { accumulate: { strategy: concat, merge_path: $.items } } }";

test("results that the step joins are one list, inline or not", () => {
  for (const run of [big(6, JOINED), smallJoined()]) {
    assert.deepEqual(toPlainJson(view(run).get("results")), [0, 1, 2, 3, 4, 5]);
    assert.deepEqual(toPlainJson(view(run).get("data")), [0, 1, 2, 3, 4, 5]);
    assert.equal((view(run).get("results") as View).get(4), 4);
    assert.equal((view(run).get("results") as View).get(-1), 5);
  }
});

function smallJoined(): Given {
  const run = given(`workflow: [{ step: each, loop: { in: 6 } ${JOINED} }]`);
  for (let index = 0; index < 6; index += 1) run.when(done("each", { items: [index] }));
  return run;
}

test("people see joined results that are inline as their combined value", () => {
  assert.deepEqual((boundedResult(resultOf(smallJoined())) as { results: unknown }).results, [0, 1, 2, 3, 4, 5]);
});

test("the manifest of joined results says how they are joined, and reading it joins them", async () => {
  const run = big(6, JOINED);
  const { manifest = "" } = resultOf(run).loop ?? {};
  const record = run.stored.get(manifest) as Manifest;
  assert.deepEqual([record.strategy, record.merge_path], ["concat", "$.items"]);
  assert.deepEqual(await loading(referenced(manifest), async (ref) => run.stored.get(ref) ?? null), [0, 1, 2, 3, 4, 5]);
});

test("merged maps are read by their fields", () => {
  const merge = ", spec: { result: { accumulate: { strategy: merge } } }";
  const run = given(`workflow: [{ step: each, loop: { in: 2 } ${merge} }]`);
  run.when(done("each", { a: { x: 1 } }), done("each", { a: { y: 2 } }));
  assert.deepEqual(toPlainJson((view(run).get("results") as View).get("a")), { x: 1, y: 2 });
});

test("an iteration that failed is in the list of results, but not in a joined list", () => {
  for (const [settings, results] of [
    ["", [{ items: [1] }, "error"]],
    [JOINED, [1]],
  ] as const) {
    const run = given(`workflow: [{ step: each, loop: { in: 2, spec: { on_error: continue } } ${settings} }]`);
    run.when(done("each", { items: [1] }), failed("each"));
    const list = toPlainJson(view(run).get("results")) as JsonObject[];
    assert.deepEqual(
      list.map((item) => item["status"] ?? item),
      results,
    );
  }
});

test("the combined result of several runs of a task replaces that of its last run", () => {
  const run = given("workflow: [{ step: a, tool: [{ t: { kind: noop } }, { u: { kind: noop } }] }]");
  const id = Object.keys(run.state.commands)[0] ?? "";
  const ref = { command_id: id, attempt: 1, step: "a", worker: "w" };
  const task = (name: string, value: number): FlowEvent => {
    const told = { task: name, task_run_id: "r", status: "ok", run: 1, final: true, bytes: 1, duration_ms: 0 } as const;
    return { type: "task.done", at: 1, ...ref, ...told, result: { value } };
  };
  run.when(() => [
    { type: "command.claimed", at: 1, ...ref },
    task("t", 1),
    task("u", 2),
    {
      type: "command.completed",
      at: 2,
      ...ref,
      tasks: ["t", "u"],
      pipeline: true,
      results: [["t", { value: [1, 1] }, 5]],
    },
  ]);
  assert.deepEqual(resultOf(run, "a").tasks, [
    ["t", { value: [1, 1] }],
    ["u", { value: 2 }],
  ]);
});
