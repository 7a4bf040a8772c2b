import assert from "node:assert/strict";
import { test } from "node:test";
import { FlowError } from "../../src/schema/words/errors.ts";
import type { Json, JsonObject } from "../../src/schema/words/json.ts";
import { type Accumulate, manifestOf } from "../../src/schema/words/manifest.ts";
import { createArtifactTool } from "../../src/tools/artifact.ts";
import { createNoopTool } from "../../src/tools/registry.ts";
import { toolCall } from "../support/service/tool-call.ts";

const REF = "noetl://execution/1/step/a/task/a/run/1";
const PAYLOADS: Record<string, Json> = {
  [REF]: { rows: [1, 2] },
  p1: { items: [1], seen: { a: 1 } },
  p2: { items: [2, 3], seen: { b: 2 } },
  "joined/manifest": manifest({ strategy: "concat", merge_path: "$.items" }),
  "broken/manifest": { ...manifest({ strategy: "append" }), parts: [{ ref: "p1" }, { ref: "noetl://gone" }] },
  "loop/manifest": {
    ...manifest({ strategy: "append" }),
    parts: [
      { ref: "part1", count: 2, min: 0, max: 2, bytes: 1 },
      { ref: "part2", count: 1, min: 1, max: 1, bytes: 1 },
    ],
  },
  part1: [
    [2, { value: "c" }],
    [0, { value: "a" }],
  ],
  part2: [[1, { ref: { kind: "result_ref", ref: REF } }]],
};

function manifest(accumulate: Accumulate): JsonObject {
  return manifestOf(accumulate, [
    { ref: "p1", bytes: 1 },
    { ref: "p2", bytes: 2 },
  ]) as unknown as JsonObject;
}

const tool = createArtifactTool({
  store: {
    load(ref): Promise<Json> {
      const payload = PAYLOADS[ref];
      if (payload !== undefined) return Promise.resolve(payload);
      return Promise.reject(new FlowError("REFERENCE_NOT_AVAILABLE", `Nothing is stored under ${ref}.`));
    },
  },
});

for (const [name, config, input] of [
  ["uri", { uri: REF }, {}],
  ["ref", { action: "get", ref: REF }, {}],
  ["result_ref that is a ResultRef", { result_ref: { kind: "result_ref", ref: REF } }, {}],
  ["ref that is a stored result", { ref: { __ref__: { ref: REF } } }, {}],
  ["args.ref", { args: { ref: REF } }, {}],
  ["ref among the inputs", {}, { ref: { ref: REF } }],
  ["temp_ref, its earlier name", { temp_ref: { kind: "temp_ref", ref: REF } }, {}],
  ["ref that is of the earlier kind", { ref: { kind: "temp_ref", ref: REF, store: "object" } }, {}],
  ["ref that is the JSON of a ResultRef", { ref: `{"kind": "result_ref", "ref": "${REF}"}` }, {}],
] as [string, JsonObject, JsonObject][]) {
  test(`artifact reads the payload behind ${name}`, async () => {
    assert.deepEqual(await tool.run(toolCall(config, { input })), { status: "ok", data: { rows: [1, 2] } });
  });
}

for (const [name, ref, value] of [
  ["the reference of a manifest", "joined/manifest", [1, 2, 3]],
  ["a manifest as a map", manifest({ strategy: "merge", merge_path: "$.seen" }), { a: 1, b: 2 }],
  [
    "a manifest as a map with its reference",
    { kind: "manifest", strategy: "concat", ref: "joined/manifest" },
    [1, 2, 3],
  ],
  ["a manifest as JSON", JSON.stringify(manifest({ strategy: "replace", merge_path: "$.items" })), [2, 3]],
  ["the manifest of a loop", "loop/manifest", ["a", { rows: [1, 2] }, "c"]],
] as [string, Json, Json][]) {
  test(`artifact reads what the parts come to behind ${name}`, async () => {
    assert.deepEqual(await tool.run(toolCall({ ref })), { status: "ok", data: value });
  });
}

test("a manifest that is sealed is opened before its parts are read, and so are they", async () => {
  const sealed: Record<string, Json> = { "s/manifest": "sealed joined/manifest", p1: "sealed p1", p2: "sealed p2" };
  const store = { load: (ref: string): Promise<Json> => Promise.resolve(sealed[ref] ?? null) };
  const open = (payload: Json) => Promise.resolve(PAYLOADS[String(payload).replace("sealed ", "")] ?? null);
  const { data } = await createArtifactTool({ store }).run(toolCall({ ref: "s/manifest" }, { open }));
  assert.deepEqual(data, [1, 2, 3]);
});

test("a manifest of which a part is lost is not available", async () => {
  const { error } = await tool.run(toolCall({ ref: "broken/manifest" }));
  assert.deepEqual([error?.kind, error?.code], ["not_found", "REFERENCE_NOT_AVAILABLE"]);
});

test("artifact says when there is nothing behind the reference", async () => {
  const { error } = await tool.run(toolCall({ ref: "noetl://gone" }));
  assert.deepEqual([error?.kind, error?.code, error?.retryable], ["not_found", "REFERENCE_NOT_AVAILABLE", false]);
});

for (const [name, config] of [
  ["no reference", {}],
  ["a reference that is a number", { ref: 5 }],
  ["a map without ref", { ref: { a: 1 } }],
  ["a manifest without a strategy", { ref: { kind: "manifest", parts: [] } }],
  ["another action", { action: "put", ref: REF }],
] as [string, JsonObject][]) {
  test(`artifact with ${name} is a configuration error`, async () => {
    assert.equal((await tool.run(toolCall(config))).error?.kind, "configuration");
  });
}

test("noop answers its result, or that all is well", async () => {
  const noop = createNoopTool();
  assert.deepEqual(await noop.run(toolCall({ result: { a: [1] } })), { status: "ok", data: { a: [1] } });
  assert.deepEqual(await noop.run(toolCall({})), { status: "ok", data: { status: "ok" } });
  assert.deepEqual(await noop.run(toolCall({ result: null })), { status: "ok", data: { status: "ok" } });
});

test("noop with a result that is no map is a configuration error", async () => {
  const { error } = await createNoopTool().run(toolCall({ result: [1] }));
  assert.equal(error?.kind, "configuration");
  assert.match(error?.message ?? "", /"result" expects a map, got a list/);
});
