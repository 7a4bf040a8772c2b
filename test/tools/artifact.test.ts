import assert from "node:assert/strict";
import { test } from "node:test";
import { FlowError } from "../../src/schema/errors.ts";
import type { Json, JsonObject } from "../../src/schema/json.ts";
import { createArtifactTool } from "../../src/tools/artifact.ts";
import { createNoopTool } from "../../src/tools/noop.ts";
import { toolCall } from "../support/tool-call.ts";

const REF = "noetl://execution/1/step/a/task/a/run/1";
const tool = createArtifactTool({
  store: {
    load(ref): Promise<Json> {
      if (ref === REF) return Promise.resolve({ rows: [1, 2] });
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
] as [string, JsonObject, JsonObject][]) {
  test(`artifact reads the payload behind ${name}`, async () => {
    assert.deepEqual(await tool.run(toolCall(config, { input })), { status: "ok", data: { rows: [1, 2] } });
  });
}

test("artifact says when there is nothing behind the reference", async () => {
  const { error } = await tool.run(toolCall({ ref: "noetl://gone" }));
  assert.deepEqual([error?.kind, error?.code, error?.retryable], ["not_found", "REFERENCE_NOT_AVAILABLE", false]);
});

for (const [name, config] of [
  ["no reference", {}],
  ["a reference that is a number", { ref: 5 }],
  ["a map without ref", { ref: { a: 1 } }],
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
