import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJsonKeepingDigits } from "../../../src/tools/contract/parse-big-integers.ts";

for (const [text, expected] of [
  ["9007199254740991", 9007199254740991],
  ["9007199254740992", "9007199254740992"],
  ["-12345678901234567890", "-12345678901234567890"],
  ["[1234567890123456789, 1]", ["1234567890123456789", 1]],
  ['{"1234567890123456789": "1234567890123456789"}', { "1234567890123456789": "1234567890123456789" }],
  ['"\\"1234567890123456789"', '"1234567890123456789'],
  ["12345678901234567890.5", 12345678901234567000],
  ["12345678901234567890e2", 1.2345678901234568e21],
] as [string, unknown][]) {
  test(`${text} is read as ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(parseJsonKeepingDigits(text), expected);
  });
}

test("text that is no JSON stays an error, with long digits too", () => {
  for (const text of ["", "{", "1234567890123456789,", '"1234567890123456789']) {
    assert.throws(() => parseJsonKeepingDigits(text), SyntaxError);
  }
});

test("a string of megabytes beside a long number overflows nothing", () => {
  const text = JSON.stringify({ long: 'a"\\'.repeat(2_000_000) }).replace("}", ',"id":12345678901234567890}');
  assert.equal((parseJsonKeepingDigits(text) as { id: string }).id, "12345678901234567890");
});
