import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { SecretSchema, secretProblems } from "../../../src/schema/rules/secret-schema.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";

test("data that keep to their schema have no problem, and without a schema anything does", () => {
  const schema: SecretSchema = {
    fields: ["a", "b", "c"],
    required: ["a"],
    types: { a: "string", b: "integer", c: "boolean" },
  };
  assert.deepEqual(secretProblems(schema, { a: "", b: 0, c: false }), []);
  assert.deepEqual(secretProblems(schema, { a: "x" }), []);
  assert.deepEqual(secretProblems({}, { anything: [1] }), []);
  assert.deepEqual(secretProblems({ fields: [], required: [], types: {} }, { anything: 1 }), []);
});

test("every violation is reported at once, in the specification's words and order", () => {
  const schema: SecretSchema = {
    fields: ["client_id", "client_secret", "port"],
    required: ["client_id", "client_secret"],
    types: { client_id: "string", port: "integer" },
  };
  assert.deepEqual(secretProblems(schema, { client_id: 7, port: "443", extra: 1, more: 2 }), [
    "Missing required field: client_secret",
    "Field 'client_id' must be string, got integer",
    "Field 'port' must be integer, got string",
    "Unexpected fields: extra, more",
  ]);
});

const VALUES: readonly [JsonObject[string], string][] = [
  ["x", "string"],
  [2, "integer"],
  [1.5, "number"],
  [true, "boolean"],
  [[1], "array"],
  [{ a: 1 }, "object"],
  [null, "null"],
];
for (const [value, actual] of VALUES) {
  test(`${JSON.stringify(value)} is of type ${actual}`, () => {
    for (const type of ["string", "integer", "boolean", "number", "array", "object"] as const) {
      const fits = type === actual || (type === "number" && actual === "integer");
      const expected = fits ? [] : [`Field 'f' must be ${type}, got ${actual}`];
      assert.deepEqual(secretProblems({ types: { f: type } }, { f: value }), expected);
    }
  });
}

test("a field that is null is there, and a field of the prototype is not", () => {
  assert.deepEqual(secretProblems({ required: ["a"] }, { a: null }), []);
  assert.deepEqual(secretProblems({ required: ["constructor", "toString"] }, {}), [
    "Missing required field: constructor",
    "Missing required field: toString",
  ]);
  const hostile = JSON.parse('{"__proto__": {"a": 1}}') as JsonObject;
  assert.deepEqual(secretProblems({ fields: ["a"], required: ["a"] }, hostile), [
    "Missing required field: a",
    "Unexpected fields: __proto__",
  ]);
});

test("no problem holds a value", () => {
  const schema: SecretSchema = { fields: ["b"], required: ["b"], types: { a: "integer" } };
  assert.ok(!secretProblems(schema, { a: "canary", c: "canary" }).join().includes("canary"));
});

test("a schema with a misspelt key, an unknown type, or a name that is not text is refused", () => {
  for (const wrong of [
    { require: ["a"] },
    { types: { a: "text" } },
    { types: [] },
    { required: [1] },
    { fields: "a" },
  ]) {
    assert.equal(v.safeParse(SecretSchema, wrong).success, false, JSON.stringify(wrong));
  }
  const whole = { fields: ["a"], required: ["a"], types: { a: "array" }, description: "what it is" };
  assert.deepEqual(v.parse(SecretSchema, whole), whole);
  const odd = JSON.parse('{"types": {"constructor": "string", "__proto__": "string"}}') as JsonObject;
  assert.deepEqual(Object.keys(v.parse(SecretSchema, odd).types ?? {}), ["constructor", "__proto__"]);
});
