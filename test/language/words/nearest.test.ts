import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nearest } from "../../../src/language/words/nearest.ts";

describe("the nearest word", () => {
  const words = ["upper", "lower", "for", "default", "selectattr", "map", "max"];
  const cases: [string, string | undefined][] = [
    ["uper", "upper"],
    ["UPPER", "upper"],
    ["fro", "for"],
    ["defalut", "default"],
    ["select_attr", "selectattr"],
    ["mapp", "map"],
    ["mab", "map"],
    ["banana", undefined],
    ["x", undefined],
    ["", undefined],
    ["a".repeat(100_000), undefined],
  ];
  for (const [word, expected] of cases) {
    it(`to ${JSON.stringify(word.slice(0, 20))} is ${expected ?? "none"}`, () =>
      assert.equal(nearest(word, words), expected));
  }

  it("is the earlier one of two that are as near", () => {
    assert.equal(nearest("mac", ["map", "max"]), "map");
    assert.equal(nearest("mac", ["max", "map"]), "max");
  });
});
