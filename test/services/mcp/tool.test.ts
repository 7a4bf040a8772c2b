import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { agentTool } from "../../../src/services/mcp/tool.ts";

const toolOf = (metadata: JsonObject, workload?: JsonObject) =>
  agentTool({
    catalogId: "7",
    path: "ops/a",
    metadata: { name: "a", agent: true, ...metadata },
    payload: { ...(workload !== undefined && { workload }), workflow: [{}, {}] },
  });

test("inputs are described by the types of their defaults; what a template gives has none", () => {
  const workload = {
    text: "x",
    count: 1,
    flag: false,
    nothing: null,
    list: [1],
    map: { a: 1 },
    made: "{{ env.REGION }}",
    inner: { url: "{% if x %}" },
    long: "x".repeat(2_000),
  };
  assert.deepEqual(toolOf({}, workload)?.inputSchema, {
    type: "object",
    properties: {
      text: { type: "string", default: "x" },
      count: { type: "number", default: 1 },
      flag: { type: "boolean", default: false },
      nothing: { default: null },
      list: { type: "array", items: {}, default: [1] },
      map: { type: "object", default: { a: 1 } },
      made: { description: "Worked out when left out." },
      inner: { type: "object" },
      long: { type: "string" },
    },
  });
});

test("an agent without inputs takes none in particular", () => {
  assert.deepEqual(toolOf({})?.inputSchema, { type: "object", properties: {} });
  assert.equal(toolOf({})?.steps, 2);
});

test("an input called __proto__ is a property like any other", () => {
  const workload = JSON.parse('{"__proto__": 1}') as JsonObject;
  const properties = toolOf({}, workload)?.inputSchema["properties"];
  assert.deepEqual(Object.keys(properties ?? {}), ["__proto__"]);
});

test("what the author declares wins over what the defaults say", () => {
  const input_schema = { properties: { a: { type: "string" } }, required: ["a"] };
  const output_schema = { type: "array", items: { type: "number" } };
  const annotations = { readOnlyHint: true, destructiveHint: "no", other: true };
  const said = { title: "T", description: "D", input_schema, output_schema, annotations };
  const tool = toolOf({ description: "other", exposes_as_mcp: said }, { b: 1 });
  assert.deepEqual(
    [tool?.title, tool?.description, tool?.inputSchema, tool?.isDeclared, tool?.resultSchema, tool?.annotations],
    ["T", "D", { type: "object", ...input_schema }, true, output_schema, { readOnlyHint: true }],
  );
});

for (const [what, input_schema] of [
  ["a list", []],
  ["a text", "object"],
  ["of something else than an object", { type: "string" }],
] as const) {
  test(`a declared schema that is ${what} is passed over`, () => {
    const tool = toolOf({ exposes_as_mcp: { input_schema: input_schema as never } }, { b: 1 });
    assert.equal(tool?.isDeclared, false);
    assert.deepEqual(tool?.inputSchema["properties"], { b: { type: "number", default: 1 } });
  });
}

for (const [what, metadata] of [
  ["that terminals do not show", { terminal: { visible: false } }],
  ["that says so", { exposes_as_mcp: false }],
] as const) {
  test(`an agent ${what} is no tool`, () => assert.equal(toolOf(metadata), undefined));
}

for (const metadata of [
  { terminal: {} },
  { terminal: { visible: true } },
  { exposes_as_mcp: true },
  { terminal: "x" },
]) {
  test(`${JSON.stringify(metadata)} is a tool`, () => assert.equal(toolOf(metadata)?.name, "ops__a"));
}
