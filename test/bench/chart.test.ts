import assert from "node:assert/strict";
import { test } from "node:test";
import { chartOf } from "../../bench/report/chart.ts";

const B1 = {
  name: "B1 10 steps each, 64 in flight",
  value: 2_000,
  unit: "steps/s",
  beside: { "flow, pure": 4_000, DBOS: 1_000, Restate: Number.NaN },
};

test("bars of a panel are as long as their figures, the longest fills it, and each has its figure beside it", () => {
  const svg = chartOf([B1], "two cores & one run");
  const bars = [...svg.matchAll(/<rect class="(own|pure|peer)"[^>]* width="([\d.]+)"/g)];
  assert.deepEqual(
    bars.map(([, kind, width]) => [kind, Number(width)]),
    [
      ["own", 75],
      ["pure", 150],
      ["peer", 37.5],
    ],
  );
  for (const words of ["2,000", "4,000", "1,000", "steps/s, more is better", "two cores &#38; one run"]) {
    assert.ok(svg.includes(`>${words}</text>`), words);
  }
});

test("who has failed has no bar, and what the run lacks no panel", () => {
  const svg = chartOf([B1, { name: "B4 chain", value: 1, unit: "×" }], "");
  assert.ok(!svg.includes("Restate</text>"));
  assert.equal([...svg.matchAll(/class="title"/g)].length, 1);
  assert.ok(!/NaN|Infinity|undefined/.test(svg));
  const none = chartOf([], "nothing");
  assert.ok(!/NaN|Infinity|undefined/.test(none));
});
