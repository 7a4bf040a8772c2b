import assert from "node:assert/strict";
import { test } from "node:test";
import { LOOP_INLINE_BYTES_MAX } from "../../../src/engine/decide/loop.ts";
import { ResultView } from "../../../src/language/views/result-view.ts";
import { given } from "../support/given.ts";
import { done } from "../support/reports.ts";

// Language document, section 8, "Storage"; decisions, "Results": a loop's results beyond the inline limit are a manifest.

const BIG = "x".repeat(20_000);

test("results beyond the inline limit leave the state in parts", () => {
  const run = given("workflow: [{ step: each, loop: { in: 10 } }]");
  for (let index = 0; index < 10; index += 1) run.when(done("each", `${index}${BIG}`));
  run.is({ status: "COMPLETED" });
  const result = run.state.steps["each"]?.result?.loop;
  assert.deepEqual(
    result?.parts.map(({ min, max, count }) => [min, max, count]),
    [
      [0, 3, 4],
      [4, 7, 4],
      // What is left at the end follows, so that the manifest is all there is.
      [8, 9, 2],
    ],
  );
  assert.equal(result?.tail.length, 0);
  assert.deepEqual([...run.stored.keys()], [...(result?.parts ?? []).map(({ ref }) => ref), result?.manifest]);
  assert.ok(result?.parts.every(({ ref }) => ref.startsWith("noetl://execution/1/step/each/task/loop/run/")));
});

test("the results of a loop read the same, wherever they are stored", () => {
  const run = given("workflow: [{ step: each, loop: { in: 10, spec: { mode: parallel } } }]");
  for (const index of [3, 9, 0, 7, 1, 2, 8, 4, 6, 5]) run.when(done("each", `${index}${BIG}`, { iteration: index }));
  const stored = run.state.steps["each"]?.result;
  assert.ok(stored);
  const view = new ResultView(stored, { get: (ref) => run.stored.get(ref) });
  const results = view.get("results") as ResultView;
  const all = results.plain() as ResultView[];
  assert.deepEqual(
    all.map((item) => String(item.plain())[0]),
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
  );
  assert.equal(String((results.get(7) as ResultView).plain())[0], "7");
  assert.equal(String((results.get(-1) as ResultView).plain())[0], "9");
  assert.equal(results.get(10), undefined);
});

test("a step after such a loop reads it in its arcs and its set", () => {
  const run = given(`
workflow:
  - { step: each, loop: { in: 6 }, set: { ctx.n: "{{ result.results | length }}" }, next: { arcs: [{ step: b, when: "{{ output.data[0].k == 0 }}" }] } }
  - { step: b }
`);
  for (let index = 0; index < 6; index += 1) run.when(done("each", { k: index, text: BIG }));
  run.is({ open: ["b"], vars: { n: 6 } });
});

test("a loop's own set and arcs read its results under its name", () => {
  given(`
workflow:
  - step: each
    loop: { in: 2 }
    set: { values: "{{ each.results }}", total: "{{ steps.each.stats.total }}", flat: "{{ ctx.each.data[1] }}" }
    next: { arcs: [{ step: next, when: "each.results | length == 2", set: { last: "{{ each.data[-1] }}" } }] }
  - { step: next }
`)
    .when(done("each", "a"), done("each", "b"))
    .is({ open: ["next"], vars: { values: ["a", "b"], total: 2, flat: "b", last: "b" } });
});

test("the state of a long loop does not grow with its iterations", () => {
  const run = given("workflow: [{ step: each, loop: { in: 3000 } }]");
  const sizes: number[] = [];
  for (let index = 0; index < 300; index += 1) {
    run.when(done("each", "y".repeat(1_000)));
    sizes.push(JSON.stringify(run.state).length);
  }
  assert.ok(Math.max(...sizes) < 2 * LOOP_INLINE_BYTES_MAX, `${Math.max(...sizes)} bytes`);
});

test("a loop of small results keeps them inline", () => {
  const run = given("workflow: [{ step: each, loop: { in: 50 } }]");
  for (let index = 0; index < 50; index += 1) run.when(done("each", { index }));
  assert.equal(run.stored.size, 0);
  assert.equal(run.state.steps["each"]?.result?.loop?.tail.length, 50);
});

test("iterations that overtake each other leave no list behind", () => {
  const run = given("workflow: [{ step: each, loop: { in: 40, spec: { mode: parallel, policy: { exec: local } } } }]");
  for (let index = 39; index > 0; index -= 1) run.when(done("each", index, { iteration: index }));
  const open = Object.values(run.state.commands)[0];
  assert.deepEqual([open?.iterations?.endedBelow, open?.iterations?.endedAbove.length], [0, 39]);
  run.when(done("each", 0, { iteration: 0 })).is({ status: "COMPLETED" });
});
