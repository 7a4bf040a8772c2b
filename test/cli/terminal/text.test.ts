import assert from "node:assert/strict";
import { test } from "node:test";
import {
  cleanText,
  fitText,
  formatCount,
  formatDuration,
  jsonText,
  textWidth,
} from "../../../src/cli/terminal/text.ts";

test("durations are short and exact enough at every size", () => {
  const cases: [number, string][] = [
    [0, "0ms"],
    [999.4, "999ms"],
    [999.6, "1.0s"],
    [1_250, "1.3s"],
    [59_949, "59.9s"],
    [59_999, "1m 00s"],
    [125_000, "2m 05s"],
    [3_599_600, "1h 00m"],
    [3_725_000, "1h 02m"],
    [-5, "0ms"],
  ];
  for (const [ms, text] of cases) assert.equal(formatDuration(ms), text);
});

test("counts have their thousands apart", () => {
  assert.deepEqual([0, 999, 1_000, 1_234_567].map(formatCount), ["0", "999", "1,000", "1,234,567"]);
});

test("width counts columns, not characters", () => {
  assert.equal(textWidth("abc"), 3);
  assert.equal(textWidth("步骤"), 4);
  assert.equal(textWidth("e\u0301"), 1);
  assert.equal(textWidth("🚀"), 2);
});

test("text is cut at columns, never within a wide character", () => {
  assert.equal(fitText("abcdef", 6), "abcdef");
  assert.equal(fitText("abcdef", 5), "abcd…");
  assert.equal(fitText("步骤步骤", 5), "步骤…");
  assert.equal(fitText("步骤步骤", 4), "步…");
  assert.equal(fitText("abc", 0), "");
});

test("nothing that moves a cursor survives cleaning", () => {
  assert.equal(cleanText("a\u001b[31mb\u001b[0mc"), "abc");
  assert.equal(cleanText("a\tb\r\nc\u0007"), "a b  c ");
  assert.equal(cleanText("a\u009b31mb"), "ab");
  assert.equal(cleanText("Grüße, 世界"), "Grüße, 世界");
});

test("what is sealed is shown as [secret], in a line and in JSON", () => {
  const sealed = `[sealed:k1:${"A".repeat(80)}]`;
  assert.equal(cleanText(`Bearer ${sealed}, ${sealed}`), "Bearer [secret], [secret]");
  assert.deepEqual(JSON.parse(jsonText({ [sealed]: [`x ${sealed}`] })), { "[secret]": ["x [secret]"] });
});

test("nothing that turns the direction of writing survives cleaning, and emoji made of several stay whole", () => {
  assert.equal(cleanText("a\u202egnp.exe\u202c \u2066b\u2069"), "a gnp.exe   b ");
  assert.equal(cleanText("👩‍👧 שלום"), "👩‍👧 שלום");
});

test("JSON holds no character that a terminal obeys, and reads back as the same value", () => {
  const value = { "k\u009b": "\u001b[2J \u009b31m \u007f \u202e \u2028", list: [1, "世界"] };
  const text = jsonText(value);
  assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e]/);
  assert.deepEqual(JSON.parse(text), value);
  assert.match(text, /^\{\n {2}"k\\u009b": /);
  assert.match(text, /世界/);
});
