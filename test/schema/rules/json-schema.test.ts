import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cleanAnySchema, cleanObjectSchema } from "../../../src/schema/rules/clean-json-schema.ts";
import { problemsBySchema } from "../../../src/schema/rules/json-schema.ts";
import type { Json, JsonObject } from "../../../src/schema/words/json.ts";

const PERSON: JsonObject = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 2, maxLength: 4 },
    age: { type: "integer", minimum: 0, exclusiveMaximum: 150 },
    mood: { enum: ["good", "bad"] },
    version: { const: 2 },
    tags: { type: "array", items: { type: ["string", "null"] }, maxItems: 2 },
    home: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false },
  },
  required: ["name"],
};

for (const [value, problems] of [
  [{ name: "Ann" }, []],
  [{ name: "Ann", age: 7, mood: "bad", version: 2, tags: ["a", null], home: { city: "x" }, other: 1 }, []],
  [{}, ["it.name is required"]],
  ["x", ["it must be object"]],
  [null, ["it must be object"]],
  [{ name: "A" }, ["it.name must have characters: 2 at least"]],
  [{ name: "😀😀😀😀" }, []],
  [{ name: "Anna", age: 1.5 }, ["it.age must be integer"]],
  [{ name: "Anna", age: -1 }, ["it.age must be 0 at least"]],
  [{ name: "Anna", age: 150 }, ["it.age must be less than 150"]],
  [{ name: "Anna", mood: "so" }, ['it.mood must be one of ["good","bad"]']],
  [{ name: "Anna", version: 3 }, ["it.version must be 2"]],
  [{ name: "Anna", tags: [1] }, ["it.tags[0] must be string or null"]],
  [{ name: "Anna", tags: ["a", "b", "c"] }, ["it.tags must have items: 2 at most"]],
  [{ name: "Anna", home: { town: 1 } }, ["it.home.city is required", "it.home.town is not a known field"]],
] as [Json, string[]][]) {
  test(`${JSON.stringify(value)}: ${problems.join("; ") || "nothing wrong"}`, () => {
    assert.deepEqual(problemsBySchema(PERSON, value, "it"), problems);
  });
}

test("a field called __proto__ or constructor is looked up among the schema's own", () => {
  const value = JSON.parse('{"name": "Ann", "__proto__": {}, "constructor": 1}') as Json;
  assert.deepEqual(problemsBySchema(PERSON, value, "it"), []);
  assert.equal(problemsBySchema({ ...PERSON, additionalProperties: false }, value, "it").length, 2);
});

test("problems are listed up to a bound", () => {
  const value = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`k${at}`, 1]));
  assert.ok(problemsBySchema({ additionalProperties: false }, value, "it").length <= 21);
});

test("whatever the schema and the value, checking and cleaning come to an end without a fault", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (schema, value) => {
      if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return;
      problemsBySchema(schema as JsonObject, value as Json, "it");
      cleanAnySchema(schema);
    }),
  );
});

test("invalid parts of a schema are removed; they would disable all tools of a client", () => {
  assert.deepEqual(
    cleanObjectSchema({
      type: "object",
      properties: {
        a: { type: "strnig", description: "kept" },
        b: true,
        c: { type: "string", pattern: "([", minLength: -1, maxLength: 3, format: "date" },
        d: { type: ["string", "string"], enum: [] },
        e: { anyOf: [{ type: "string" }, 1], oneOf: [{ type: "null" }], pattern: "^a+$" },
        f: { type: "array", items: { $ref: "#/$defs/x" }, uniqueItems: true, required: ["a", "a"] },
      },
      required: ["a", "b"],
      additionalProperties: false,
      $defs: { x: {} },
      $schema: "x",
      "x-own": 1,
    }),
    {
      type: "object",
      properties: {
        a: { description: "kept" },
        b: {},
        c: { type: "string", maxLength: 3, format: "date" },
        d: {},
        e: { oneOf: [{ type: "null" }], pattern: "^a+$" },
        f: { type: "array", items: {}, uniqueItems: true },
      },
      required: ["a", "b"],
      additionalProperties: false,
    },
  );
});

for (const none of [null, [], "x", 1, { type: "array" }, { type: ["object", "null"] }]) {
  test(`${JSON.stringify(none)} is no schema of an object`, () => assert.equal(cleanObjectSchema(none), undefined));
}

test("a schema without end is cut off", () => {
  let deep: JsonObject = {};
  for (let depth = 0; depth < 1_000; depth += 1) deep = { items: deep };
  assert.ok(JSON.stringify(cleanAnySchema(deep)).length < 500);
});
