import assert from "node:assert/strict";
import { test } from "node:test";
import { type TreeView, treeLines } from "../../../src/cli/progress/tree.ts";
import { COLORS, PLAIN } from "../../../src/cli/terminal/style.ts";
import { textWidth } from "../../../src/cli/terminal/text.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import {
  BEGIN,
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
  type WatchedRun,
  watchedRun,
} from "../watched-run.ts";

test("steps are listed in order of their start with mark, name, duration and details", () => {
  const run = watchedRun();
  run.happen("1", begun("1", "demo", 0), started("start", 0), completed("start", 12), skipped("never", 12));
  run.happen("1", started("fetch", 12), retried("fetch", 500, 1, "connection refused\nsecond line"));
  assert.deepEqual(draw(run, { now: BEGIN + 1_212 }), [
    "✓ start     12ms",
    "− never           skipped: its guard says no",
    "⠹ fetch     1.2s  attempt 2 after: connection refused",
  ]);
  run.happen("1", failed("fetch", 2_012, "gave up"));
  assert.equal(draw(run, {})[2], "✗ fetch     2.0s  gave up");
});

test("a step that a person has ended says who and why", () => {
  const run = watchedRun();
  const error = { kind: "unknown", code: "OVERRIDDEN", message: "by hand", retryable: false } as const;
  const byHand = (step: string, action: "skip" | "fail"): FlowEvent => ({
    ...{ type: "step.overridden", at: BEGIN + 5, step, action, by: "olga", reason: "the source is gone\nfor good" },
    ...(action === "fail" && { error }),
  });
  run.happen("1", begun("1", "demo", 0), started("load", 0), byHand("load", "skip"), skipped("load", 10, "overridden"));
  run.happen("1", started("check", 12), byHand("check", "fail"));
  run.happen("1", { ...failed("check", 2_012, ""), error } as FlowEvent);
  assert.deepEqual(draw(run, { now: BEGIN + 3_000 }), [
    "− load            skipped by olga: the source is gone",
    "✗ check     2.0s  failed by olga: the source is gone",
  ]);
});

test("a loop of which a person has ended iterations says who and why of one, and how many of several", () => {
  const run = watchedRun();
  const byHand = (iteration: number): FlowEvent => ({
    ...{
      type: "step.overridden",
      at: BEGIN + 5,
      step: "load",
      iteration,
      action: "skip",
      by: "olga",
      reason: "broken",
    },
  });
  run.happen("1", begun("1", "demo", 0), loopStarted("load", 0, 9), iterationsIssued("load", 0, 0, 9), byHand(7));
  assert.match(draw(run, { now: BEGIN + 1_000 })[0] ?? "", / {2}iteration 7 skipped by olga: broken$/);
  run.happen("1", byHand(2));
  assert.match(draw(run, { now: BEGIN + 1_000 })[0] ?? "", / {2}2 iterations ended by hand$/);
});

test("a step whose task reports progress shows it while the task runs", () => {
  const run = watchedRun();
  run.happen("1", begun("1", "demo", 0), started("copy", 0), progressed("copy", 500, { rows_written: 1, chunks: 1 }));
  run.happen("1", progressed("copy", 2_500, { rows_read: 12_500, rows_written: 12_000, chunks: 12 }));
  assert.deepEqual(draw(run, { now: BEGIN + 3_000 }), ["⠋ copy     3.0s  12,000 rows"]);
  run.happen("1", retried("copy", 3_000, 1, "refused"), progressed("copy", 3_500, { share: 0.25, files_read: 1_000 }));
  const both = "attempt 2 after: refused  0.25 share, 1,000 files read";
  assert.deepEqual(draw(run, { now: BEGIN + 4_000 }), [`⠋ copy     4.0s  ${both}`]);
  run.happen("1", completed("copy", 5_000));
  assert.deepEqual(draw(run, {}), ["✓ copy     5.0s"]);
});

test("of a loop's iterations no progress is shown but how many have ended", () => {
  const run = watchedRun();
  run.happen("1", begun("1", "demo", 0), loopStarted("load", 0, 3), iterationsIssued("load", 0, 0, 3));
  run.happen("1", progressed("load", 500, { rows_written: 5 }, 1));
  assert.deepEqual(draw(run, { now: BEGIN + 1_000 }), ["⠋ load     1.0s  0/3"]);
});

test("a loop shows its counters, and a cursor those without a total", () => {
  const run = watchedRun();
  run.happen("1", begun("1", "demo", 0), loopStarted("load", 0, 100_000), iterationsIssued("load", 0, 0, 100_000));
  for (let index = 0; index < 1_234; index += 1)
    run.happen("1", iterated("load", 10, index, index < 3 ? "no" : undefined));
  assert.deepEqual(draw(run, { now: BEGIN + 61_000 }), [
    "⠋ load   1m 01s  1,234/100,000 (3 failed)  20/s  about 1h 21m left",
  ]);
  const slow = watchedRun();
  slow.happen("1", begun("1", "demo", 0), loopStarted("load", 0, 3), iterationsIssued("load", 0, 0, 3));
  assert.deepEqual(draw(slow, { now: BEGIN + 61_000 }), ["⠋ load   1m 01s  0/3"], "of nothing there is no rate");
  slow.happen("1", iterated("load", 30_000, 0));
  assert.deepEqual(draw(slow, { now: BEGIN + 61_000 }), ["⠋ load   1m 01s  1/3  1.0/min  about 2m 02s left"]);
  assert.deepEqual(draw(slow, { now: BEGIN + 1_000 }), ["⠋ load     1.0s  1/3"], "too soon to tell");
});

test("a step that no worker has says why, until one has it; and a retry when it comes", () => {
  const run = watchedRun();
  run.happen("1", begun("1", "demo", 0), started("get", 0));
  const row = run.model.root()?.byName.get("get");
  assert.ok(row !== undefined);
  row.waits = { commandId: "get", text: "no worker that is ready has the label gpu=true" };
  assert.deepEqual(draw(run, { now: BEGIN + 1_000 }), [
    "⠋ get     1.0s  waits: no worker that is ready has the label gpu=true",
  ]);
  row.waits = { commandId: "another", text: "of a run before" };
  assert.deepEqual(draw(run, { now: BEGIN + 1_000 }), ["⠋ get     1.0s"]);
  const again = retried("get", 10, 1, "refused");
  run.happen("1", { ...again, next_run_at: new Date(BEGIN + 13_000).toISOString() } as FlowEvent);
  assert.deepEqual(draw(run, { now: BEGIN + 1_000 }), ["⠋ get     1.0s  attempt 2 in 12.0s after: refused"]);
  assert.deepEqual(draw(run, { now: BEGIN + 14_000 }), ["⠋ get    14.0s  attempt 2 after: refused"]);
});

test("the steps of a sub-playbook stand beneath the step that called it, also when it has ended", () => {
  const run = watchedRun();
  run.happen("1", begun("1", "demo", 0), started("call", 0));
  run.happen("2", begun("2", "child", 5, { execution_id: "1", step: "call" }), started("inner", 5));
  assert.deepEqual(draw(run, { now: BEGIN + 105 }), ["⠙ call       105ms", "  ⠙ inner    100ms"]);
  run.happen("2", completed("inner", 205), ended(205));
  run.happen("1", completed("call", 206));
  assert.deepEqual(draw(run, {}), ["✓ call       206ms", "  ✓ inner    200ms"]);
});

test("of the sub-playbooks of a loop those that run are shown, four at a time", () => {
  const run = watchedRun();
  run.happen("1", begun("1", "demo", 0), loopStarted("each", 0, 9), iterationsIssued("each", 0, 0, 9));
  for (let index = 0; index < 6; index += 1) {
    const id = String(index + 2);
    run.happen(id, begun(id, "child", 0, { execution_id: "1", step: "each", iter: { index } }), started("inner", 0));
  }
  run.happen("2", completed("inner", 50), ended(50));
  const lines = draw(run, { now: BEGIN + 100 });
  assert.equal(lines.length, 10);
  assert.equal(lines[1], "  ⠙ [1] child    100ms");
  assert.equal(lines[2], "    ⠙ inner      100ms");
  assert.equal(lines[9], "    and 1 more at a time");
});

test("a tree higher than the terminal loses first what is beneath finished steps, then finished steps, then its end", () => {
  const run = watchedRun();
  run.happen("1", begun("1", "demo", 0), started("call", 0));
  run.happen("2", begun("2", "child", 0, { execution_id: "1", step: "call" }), started("inner", 0), ended(1));
  run.happen("1", completed("call", 1), started("bad", 1), failed("bad", 2, "no"), skipped("quiet", 2));
  for (const name of ["a", "b", "c"]) run.happen("1", started(name, 3));
  const names = (lines: number) => draw(run, { lines }).map((line) => line.trim().split(/ {2,}/)[0]);
  const rest = ["✗ bad", "⠋ a", "⠋ b", "⠋ c"];
  assert.deepEqual(names(7), ["✓ call", "⠋ inner", "✗ bad", "− quiet", ...rest.slice(1)]);
  assert.deepEqual(names(6), ["✓ call", "✗ bad", "− quiet", ...rest.slice(1)]);
  assert.deepEqual(names(5), ["✓ 1 step completed, 1 skipped", ...rest]);
  assert.deepEqual(names(3), ["✓ 1 step completed, 1 skipped", "✗ bad", "… 3 more lines"]);
  assert.equal(draw(run, { lines: 1 }).length, 1);
});

test("no line is wider than the terminal, however narrow it is and whatever the names are", () => {
  const run = watchedRun();
  const wide = "步骤".repeat(30);
  run.happen(
    "1",
    begun("1", "demo", 0),
    started(wide, 0),
    started("e\u0301tape 🚀", 0),
    retried(wide, 1, 1, "x".repeat(500)),
  );
  run.happen("1", skipped("y".repeat(200), 2));
  for (const columns of [3, 10, 20, 40, 79, 200]) {
    for (const line of draw(run, { columns })) assert.ok(textWidth(line) <= columns, `${columns}: ${line}`);
  }
});

test("names and messages cannot smuggle escape sequences onto the screen", () => {
  const run = watchedRun();
  run.happen(
    "1",
    begun("1", "demo", 0),
    started("a\u001b[2Jb\nc", 0),
    failed("a\u001b[2Jb\nc", 1, "\u001b]0;title\u0007x\u009b1m"),
  );
  assert.doesNotMatch(draw(run, {}).join("\n"), /[\u001b\u0007\u009b]/);
});

test("colours change nothing but colours", () => {
  const run = watchedRun();
  run.happen("1", begun("1", "demo", 0), started("a", 0), completed("a", 1), skipped("b", 1), started("c", 1));
  run.happen("1", failed("c", 2, "no"), started("d", 2), failed("d", 3, "stop", "cancelled"));
  const colored = draw(run, { style: COLORS });
  assert.deepEqual(
    colored.map((line) => line.replace(/\u001b\[\d+m/g, "")),
    draw(run, {}),
  );
  assert.ok(colored.every((line) => line.includes("\u001b[")));
});

test("while it is being cancelled the last line says so", () => {
  const run = watchedRun();
  run.happen("1", begun("1", "demo", 0), started("a", 0));
  assert.match(draw(run, { cancelling: true }).at(-1) ?? "", /^cancelling: .*Ctrl-C again/);
});

function draw(run: WatchedRun, view: Partial<TreeView>): string[] {
  const root = run.model.root();
  assert.ok(root !== undefined);
  return treeLines(root, { now: BEGIN, columns: 100, lines: 50, style: PLAIN, cancelling: false, ...view });
}
