import assert from "node:assert/strict";
import { test } from "node:test";
import { createLineProgress } from "../../../src/cli/progress/lines.ts";
import {
  begun,
  completed,
  ended,
  failed,
  iterated,
  iterationsIssued,
  loopStarted,
  progressed,
  retried,
  skipped,
  started,
  watchedRun,
} from "../watched-run.ts";

function setup(verbose = false) {
  const lines: string[] = [];
  const run = watchedRun((model) => createLineProgress(model, verbose, (line) => lines.push(line)));
  return { run, lines };
}

test("each thing that happens is one line", () => {
  const { run, lines } = setup();
  run.happen("1", begun("1", "demo", 0), started("fetch", 0), retried("fetch", 5, 1, "refused\nmore"));
  run.happen("1", completed("fetch", 1_200, 1_200), skipped("never", 1_200), started("last", 1_200));
  run.happen("1", failed("last", 1_300, "no such\nhost"), ended(1_300));
  assert.deepEqual(lines, [
    "demo: execution 1 started",
    "fetch: started",
    "fetch: task get, attempt 2 follows: refused",
    "fetch: completed in 1.2s",
    "never: skipped, its guard says no",
    "last: started",
    "last: failed after 0ms: no such",
  ]);
});

test("a loop's progress is printed at each tenth, at most once a second, and after ten seconds of silence", () => {
  const { run, lines } = setup();
  run.happen("1", begun("1", "demo", 0), loopStarted("many", 0, 100), iterationsIssued("many", 0, 0, 100));
  // How many iterations have ended by when.
  const counted: [number, number][] = [
    [1, 0],
    [10, 500],
    [20, 1_100],
    [21, 2_500],
    [22, 11_200],
    [100, 30_000],
  ];
  let done = 0;
  for (const [until, at] of counted) for (; done < until; done += 1) run.happen("1", iterated("many", at, done));
  run.happen("1", completed("many", 30_000, 30_000));
  assert.deepEqual(lines.slice(1), [
    "many: started, 100 iterations",
    "many: 11/100", // the first after a second, in the next tenth
    "many: 21/100", // the next tenth
    "many: 23/100", // the same tenth, after a long silence
    "many: completed in 30.0s, 100 iterations",
  ]);
});

test("a task's progress is printed at once, then after ten seconds of silence", () => {
  const { run, lines } = setup();
  run.happen("1", begun("1", "demo", 0), started("copy", 0));
  for (const second of [0.5, 2, 4, 6, 8, 10, 12, 14]) {
    run.happen("1", progressed("copy", second * 1_000, { rows_written: second * 1_000 }));
  }
  run.happen("1", completed("copy", 15_000, 15_000), started("copy", 15_000));
  run.happen("1", progressed("copy", 15_500, { rows_read: 1 }));
  assert.deepEqual(lines.slice(2), [
    "copy: 500 rows",
    "copy: 12,000 rows",
    "copy: completed in 15.0s",
    "copy: started",
    "copy: 1 rows read",
  ]);
});

test("the steps of a sub-playbook are named with the way to them", () => {
  const { run, lines } = setup();
  run.happen("1", begun("1", "demo", 0), started("call", 0));
  run.happen("2", begun("2", "child", 0, { execution_id: "1", step: "call" }), started("inner", 0));
  run.happen("2", completed("inner", 5, 5), ended(5));
  assert.deepEqual(lines.slice(2), ["call › inner: started", "call › inner: completed in 5ms"]);
});

test("of a loop's sub-playbooks only failures are printed, unless --verbose is given", () => {
  for (const verbose of [false, true]) {
    const { run, lines } = setup(verbose);
    run.happen("1", begun("1", "demo", 0), loopStarted("each", 0, 2), iterationsIssued("each", 0, 0, 2));
    const parent = { execution_id: "1", step: "each", iter: { index: 1 } };
    run.happen("2", begun("2", "child", 0, parent), started("inner", 0), failed("inner", 1, "broken"));
    const failure = "each[1] › inner: failed after 0ms: broken";
    assert.deepEqual(lines.slice(2), verbose ? ["each[1] › inner: started", failure] : [failure]);
  }
});
