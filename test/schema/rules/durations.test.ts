import assert from "node:assert/strict";
import { test } from "node:test";
import { DURATION_MS_MAX, durationMs, lifetimeMs } from "../../../src/schema/rules/durations.ts";
import type { Json } from "../../../src/schema/words/json.ts";

const DURATIONS: [Json, number | undefined][] = [
  ["250ms", 250],
  ["30s", 30_000],
  ["1h30m", 5_400_000],
  ["2d", 172_800_000],
  ["1.5h", 5_400_000],
  [" 5m ", 300_000],
  [30, 30_000],
  [0.25, 250],
  ["30", 30_000],
  [0, 0],
  ["36500d", DURATION_MS_MAX],
  ["36501d", undefined],
  [-1, undefined],
  ["-1s", undefined],
  ["", undefined],
  ["soon", undefined],
  ["1w", undefined],
  ["1h 30m", undefined],
  ["m30", undefined],
  [null, undefined],
  [true, undefined],
  [[30], undefined],
  [Number.NaN, undefined],
];

for (const [value, ms] of DURATIONS) {
  test(`a duration of ${JSON.stringify(value)}`, () => assert.equal(durationMs(value), ms));
}

test("how long something is kept is a duration with a unit, from a millisecond to a century", () => {
  for (const [text, ms] of [
    ["500ms", 500],
    ["90s", 90_000],
    ["1.5h", 5_400_000],
    ["1h30m", 5_400_000],
    [" 30d ", 2_592_000_000],
  ] as const) {
    assert.equal(lifetimeMs(text), ms);
  }
  for (const text of ["", "1", "1y", "-1s", "0s", "0.1ms", "1e3s", "36501d", "1 h", "h"]) {
    assert.equal(lifetimeMs(text), undefined, text);
  }
});
