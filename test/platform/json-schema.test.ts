import assert from "node:assert/strict";
import { test } from "node:test";
import { problemsWithData } from "../../src/platform/json-schema.ts";
import type { Json, JsonObject } from "../../src/schema/words/json.ts";

const FORM: JsonObject = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  properties: {
    window: { type: "string", enum: ["now", "tonight"] },
    hosts: { type: "array", items: { type: "object", required: ["name"], properties: { name: { minLength: 2 } } } },
    pair: { prefixItems: [{ type: "integer" }, { type: "boolean" }] },
  },
  required: ["window"],
  additionalProperties: false,
};

test("data that fit their schema have no problem", () => {
  for (const data of [{ window: "now" }, { window: "tonight", hosts: [{ name: "db1" }], pair: [1, true] }]) {
    assert.deepEqual(problemsWithData(FORM, data), []);
  }
  assert.deepEqual(problemsWithData({}, [1, { a: null }]), []);
});

test("each problem says where it is", () => {
  const cases: [Json, path: string, message: RegExp][] = [
    [{}, "window", /^is required$/],
    [{ window: "later" }, "window", /^must be one of \["now","tonight"\]$/],
    [{ window: "now", hosts: [{}] }, "hosts.0.name", /^is required$/],
    [{ window: "now", hosts: [{ name: "x" }] }, "hosts.0.name", /too short/],
    [{ window: "now", pair: ["1"] }, "pair.0", /must be integer/],
    [{ window: "now", "a/b": 1 }, "a/b", /^is not a known field$/],
    [3, "", /must be object/],
  ];
  for (const [data, path, message] of cases) {
    const [problem] = problemsWithData(FORM, data);
    assert.equal(problem?.path, path, JSON.stringify(data));
    assert.match(problem?.message ?? "", message);
  }
  assert.equal(problemsWithData({ items: { type: "string" } }, Array(50).fill(1)).length, 20);
});

test("patterns that could be matched for hours are refused, and others match texts of bounded length", () => {
  for (const pattern of [
    "^(a+)+$",
    "(a|a)*b",
    "(a|ab)+$",
    "((ab)*)*",
    "(?=a)b",
    "(a)\\1",
    "a*a*a*a*a*b",
    "(x{2,}){3,}",
  ]) {
    assert.match(
      problemsWithData({ type: "string", pattern }, "aaa")[0]?.message ?? "",
      /has a pattern that may take long/,
      pattern,
    );
  }
  for (const [pattern, fits] of [
    ["^v\\d+\\.\\d+\\.\\d+$", "v1.2.3"],
    ["^[a-z*+(|)]+-(?:x|y)$", "ab-x"],
    ["^(?:ab){2}$", "abab"],
  ] as const) {
    const schema = { type: "string", pattern };
    assert.deepEqual(problemsWithData(schema, fits), [], pattern);
    assert.equal(problemsWithData(schema, `${fits}!`).length, 1, pattern);
    assert.match(problemsWithData(schema, "a".repeat(257))[0]?.message ?? "", /256 characters at most/);
  }
  const began = performance.now();
  problemsWithData({ type: "string", pattern: "^a*a*a*a*b$" }, "a".repeat(256));
  assert.ok(performance.now() - began < 20_000);
  assert.match(problemsWithData({ uniqueItems: true }, Array(2_001).fill(1))[0]?.message ?? "", /2000 items at most/);
});

test("a schema that is not valid, or refers to another, is said to be so", () => {
  const schemas: [JsonObject, RegExp][] = [
    [{ $ref: "#/$defs/a" }, /has `\$ref`/],
    [{ type: "nothing" }, /has no valid `type`/],
    [{ patternProperties: { "(": {} } }, /its schema is not valid/],
    [{ properties: [] }, /has no valid `properties`/],
  ];
  for (const [schema, words] of schemas) assert.match(problemsWithData(schema, {})[0]?.message ?? "", words);
});

test("a text of many characters is matched with a format in no time, and the one format that would take long is refused", () => {
  const formats = [
    "date",
    "date-time",
    "time",
    "duration",
    "uri",
    "uri-reference",
    "uri-template",
    "email",
    "hostname",
    "ipv6",
    "uuid",
  ];
  const texts = [
    `http://${"a".repeat(50_000)}!`,
    "a.".repeat(25_000),
    `a@${"a-".repeat(25_000)}!`,
    "{a,a".repeat(12_000),
  ];
  for (const format of formats) {
    for (const text of texts) {
      const begun = performance.now();
      problemsWithData({ format }, text);
      assert.ok(performance.now() - begun < 10_000, format);
    }
  }
  assert.match(
    problemsWithData({ items: { format: "url" } }, ["x"])[0]?.message ?? "",
    /format `url` in items, which may take long/,
  );
});

test("data are refused unread whose values times the parts of the schema are too many to be checked", () => {
  const schema = { items: { anyOf: [{ type: "string" }, { type: "null" }] } } as const;
  assert.deepEqual(problemsWithData(schema as unknown as JsonObject, Array(62_499).fill(null)), []);
  const [problem] = problemsWithData(schema as unknown as JsonObject, Array(62_500).fill(null));
  assert.equal(problem?.message, "has too many values to be checked");
});
