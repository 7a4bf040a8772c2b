import assert from "node:assert/strict";
import { test } from "node:test";
import { tableOf } from "../../bench/report/table.ts";

test("the table has a column for each peer, and says which targets are reached", () => {
  const text = tableOf([
    {
      name: "B1",
      value: 6_100,
      unit: "steps/s",
      beside: { DBOS: 1_200, Restate: 1_700 },
      target: 6_000,
      better: "more",
    },
    { name: "B2", value: 81.5, unit: "ms", beside: { DBOS: 90 }, target: 80, better: "less" },
  ]);
  assert.deepEqual(text.split("\n"), [
    "     flow            DBOS  Restate   target",
    "B1  6,100  steps/s  1,200    1,700  ≥ 6,000  reached",
    "B2   81.5  ms          90              ≤ 80  MISSED",
    "",
  ]);
});

test("a figure that could not be measured is said to have failed, and its target missed", () => {
  const text = tableOf([{ name: "B1", value: Number.NaN, unit: "steps/s", target: 6_000, better: "more" }]);
  assert.equal(text, "B1  failed  steps/s  ≥ 6,000  MISSED\n");
});
