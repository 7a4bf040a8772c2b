import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Json } from "../../../src/schema/words/json.ts";
import { forgetJsonText, jsonText, knownJsonText, noteJsonText } from "../../../src/schema/words/json-text.ts";

/** The value of a text, after the text was noted. */
function noted(text: string): Json {
  const value = JSON.parse(text) as Json;
  noteJsonText(value, text);
  return value;
}

test("the text of a large value is kept, character for character", () => {
  for (const text of [
    "{}",
    "[]",
    '{"a":1,"b":[true,false,null,-1.5,{"c":"d e"}]}',
    `{"text":"${"x".repeat(100_000)}"}`,
    '{"é":"名","__proto__":{"a":1},"":""}',
    '[1e+21,0,"]},:",1]',
    '["\ud83d\ude00"]',
  ]) {
    assert.equal(knownJsonText(noted(text)), text);
  }
});

test("a text that another one would replace is not kept", () => {
  for (const text of [
    '{"b":1, "a":2}',
    ' {"a":1}',
    '{"a":1}\n',
    '{"2":1,"1":2}',
    '{"a":1,"a":2}',
    '{"a":1,"a":1}',
    "[1.0]",
    "[-0]",
    "[1e3]",
    "[12345678901234567890]",
    "[1e400]",
    "[0.10]",
    '["\\u0041"]',
    '["\\/"]',
    '["\\ud800"]',
    '["\ud800"]',
  ]) {
    const value = noted(text);
    assert.equal(knownJsonText(value), undefined, text);
    assert.equal(jsonText(value), JSON.stringify(JSON.parse(text)));
  }
  // Longer than what is worth keeping, more values than are worth comparing, and deeper than a stack.
  for (const text of [
    `["${"x".repeat(5_000_000)}"]`,
    `[${"1,".repeat(10_000)}1]`,
    `${"[".repeat(5_000)}"${"x".repeat(1_000_000)}"${"]".repeat(5_000)}`,
  ]) {
    assert.equal(knownJsonText(noted(text)), undefined);
  }
});

test("a text of another value is not kept", () => {
  const text = '{"a":[1,"b"]}';
  for (const other of [
    '{"a":[1,"c"]}',
    '{"a":[1,"b",2]}',
    '{"a":[1]}',
    '{"a":[1,"b"],"c":1}',
    '{"a":"[1,\'b\']"}',
    "{}",
    "[]",
  ]) {
    const value = JSON.parse(other) as Json;
    noteJsonText(value, text);
    assert.equal(knownJsonText(value), undefined, other);
  }
  const value = noted(text);
  assert.deepEqual(Reflect.ownKeys({ ...(value as object) }), ["a"]);
  assert.equal(knownJsonText(structuredClone(value)), undefined);
  noteJsonText(value, text);
  noteJsonText("a", '"a"');
  noteJsonText(null, "null");
  assert.equal(knownJsonText("a"), undefined);
});

test("a text that was let go of is gone, and another one may be kept", () => {
  const text = '{"a":[1,"b"]}';
  const value = noted(text);
  forgetJsonText(value);
  assert.equal(knownJsonText(value), undefined);
  assert.equal(jsonText(value), text);
  assert.deepEqual(value, { a: [1, "b"] });
  noteJsonText(value, text);
  assert.equal(knownJsonText(value), text);
  for (const other of [null, "a", 1, {}, []]) forgetJsonText(other);
});

test("whatever text a value came as, its text is that of JSON.stringify", () => {
  const number = fc
    .oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer(), fc.constant(-0))
    .map(formsOf);
  const leaf = fc.oneof(
    number,
    fc.string({ unit: "binary" }).map(textFormsOf),
    fc.constantFrom("null", "true", "false").map((text) => [text]),
  );
  const key = fc.oneof(fc.string(), fc.nat(20).map(String), fc.constantFrom("__proto__", "toJSON", "a"));
  const { value } = fc.letrec<{ value: string[] }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      leaf,
      fc.array(tie("value"), { maxLength: 4 }).map((items) => [`[${items.map(pick).join()}]`]),
      fc
        .array(fc.tuple(key, tie("value")), { maxLength: 4 })
        .map((fields) => [`{${fields.map(([name, item]) => `${JSON.stringify(name)}:${pick(item)}`).join()}}`]),
    ),
  }));
  fc.assert(
    fc.property(value, fc.nat(), (forms, seed) => {
      const text = forms[seed % forms.length] as string;
      const given = noted(text);
      assert.equal(jsonText(given), JSON.stringify(JSON.parse(text)));
      // So long that the number of values does not matter.
      const own = JSON.stringify([JSON.parse(text), "x".repeat(50_000)]);
      assert.equal(knownJsonText(noted(own)), own.includes("\\") ? undefined : own);
    }),
    { numRuns: 1_000 },
  );
});

/** A number as several programs write it. */
function formsOf(number: number): string[] {
  const plain = JSON.stringify(number);
  return [
    plain,
    number.toExponential(),
    Number.isInteger(number) && !/e/.test(plain) ? `${plain}.0` : plain,
    Object.is(number, -0) ? "-0" : plain,
  ];
}

function textFormsOf(text: string): string[] {
  const plain = JSON.stringify(text);
  const ascii = plain.replace(/[\u0080-\uffff]/g, (odd) => `\\u${odd.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return [plain, ascii];
}

function pick(forms: string[]): string {
  return forms[forms.join().length % forms.length] as string;
}
