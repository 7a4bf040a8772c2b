import assert from "node:assert/strict";
import { test } from "node:test";
import { createTreeProgress } from "../../../src/cli/progress/live-tree.ts";
import type { Progress } from "../../../src/cli/progress/progress.ts";
import { createLiveRegion } from "../../../src/cli/terminal/live-region.ts";
import { PLAIN } from "../../../src/cli/terminal/style.ts";
import { FakeTerminal } from "../fake-terminal.ts";
import {
  BEGIN,
  begun,
  completed,
  ended,
  iterated,
  iterationsIssued,
  loopStarted,
  started,
  watchedRun,
} from "../watched-run.ts";

/** A tree on a fake terminal, drawn when `tick` is called. */
function setup(width = 60, height = 10, address?: string) {
  const terminal = new FakeTerminal(width, height);
  const timer = { tick: () => {}, isRunning: true };
  const clock = { now: BEGIN };
  let progress: Progress | undefined;
  const run = watchedRun((model) => {
    progress = createTreeProgress(model, {
      terminal,
      style: PLAIN,
      verbose: false,
      ...(address !== undefined && { address }),
      now: () => clock.now,
      every(_ms, task) {
        timer.tick = task;
        return () => {
          timer.isRunning = false;
        };
      },
    });
    return progress;
  });
  assert.ok(progress !== undefined);
  return { terminal, timer, clock, run, progress };
}

test("the tree is drawn in place: each drawing replaces the one before", () => {
  const { terminal, timer, clock, run, progress } = setup();
  run.happen("1", begun("1", "demo", 0), started("start", 0));
  timer.tick();
  assert.deepEqual(terminal.text(), ["demo", "⠋ start      0ms"]);
  assert.equal(terminal.isCursorShown, false);
  clock.now += 100;
  run.happen("1", completed("start", 100), started("next", 100));
  timer.tick();
  assert.deepEqual(terminal.text(), ["demo", "✓ start    100ms", "⠙ next       0ms"]);
  run.happen("1", completed("next", 150), ended(150));
  progress.stop();
  assert.deepEqual(terminal.text(), ["✓ start    100ms", "✓ next      50ms"]);
  assert.equal(terminal.isCursorShown, true);
  assert.equal(timer.isRunning, false);
});

test("output of tools goes above the tree and stays there", () => {
  const { terminal, timer, run, progress } = setup();
  run.happen("1", begun("1", "demo", 0), started("start", 0));
  timer.tick();
  progress.log({ executionId: "1", commandId: "2", step: "start", task: "start", text: "one" });
  progress.log({
    executionId: "1",
    commandId: "2",
    step: "start",
    task: "start",
    iteration: 4,
    text: `two \u001b[31mred${"!".repeat(80)}`,
  });
  timer.tick();
  timer.tick();
  const [first, second, third, name, fourth] = terminal.text();
  assert.equal(first, "start │ one");
  assert.equal(`${second}${third}`, `start[4] │ two red${"!".repeat(80)}`);
  assert.deepEqual([name, fourth], ["demo", "⠋ start      0ms"]);
  assert.equal(terminal.text().length, 5);
});

test("events draw nothing by themselves: a loop of many iterations is drawn by the timer alone", () => {
  const { terminal, timer, run } = setup();
  run.happen("1", begun("1", "demo", 0), loopStarted("many", 0, 20_000), iterationsIssued("many", 0, 0, 20_000));
  for (let index = 0; index < 20_000; index += 1) run.happen("1", iterated("many", 1, index));
  assert.equal(terminal.writes, 0);
  timer.tick();
  assert.equal(terminal.writes, 1);
  assert.match(terminal.text()[1] ?? "", /20,000\/20,000$/);
});

test("a tree higher than the terminal stays within it while it runs, and is whole when it has ended", () => {
  const { terminal, timer, run, progress } = setup(60, 6);
  run.happen("1", begun("1", "demo", 0));
  for (let index = 0; index < 20; index += 1) {
    run.happen("1", started(`step_${index}`, index), completed(`step_${index}`, index + 1));
    timer.tick();
    assert.ok(terminal.text().length <= 5, `${terminal.text().length} lines after ${index}`);
  }
  run.happen("1", ended(30));
  progress.stop();
  assert.equal(terminal.text().length, 20);
  assert.match(terminal.text()[0] ?? "", /^✓ step_0 /);
});

test("a run on a server is shown with its page's address, which stays when it is over", () => {
  const { terminal, timer, run, progress } = setup(60, 10, "http://127.0.0.1:8082/executions/1");
  run.happen("1", begun("1", "etl/\u001b[2Jload", 0), started("start", 0));
  timer.tick();
  const head = ["etl/load", "http://127.0.0.1:8082/executions/1"];
  assert.deepEqual(terminal.text(), [...head, "⠋ start      0ms"]);
  run.happen("1", completed("start", 10), ended(10));
  progress.stop();
  assert.deepEqual(terminal.text(), [...head, "✓ start     10ms"]);
});

test("a terminal that becomes narrower leaves no remains of the wider tree", () => {
  const terminal = new FakeTerminal(40, 10);
  const screen = createLiveRegion(terminal);
  screen.draw(["a".repeat(39), "b".repeat(39)]);
  // The terminal wraps what stands on it: two lines of 39 are four rows of 20.
  const narrow = new FakeTerminal(20, 10);
  narrow.write(`${"a".repeat(39)}\n${"b".repeat(39)}\n`);
  terminal.write = (text) => narrow.write(text);
  terminal.width = 20;
  screen.draw(["c", "d"]);
  assert.deepEqual(narrow.text(), ["c", "d"]);
});

test("stopping twice, or before the first event, writes nothing more", () => {
  const { terminal, run, progress } = setup();
  progress.stop();
  assert.equal(terminal.writes, 0);
  run.happen("1", begun("1", "demo", 0));
  progress.stop();
  progress.cancelling();
  assert.equal(terminal.writes, 0);
});

test("a Ctrl-C is answered at once, without waiting for the next drawing", () => {
  const { terminal, run, progress } = setup();
  run.happen("1", begun("1", "demo", 0), started("start", 0));
  progress.cancelling();
  assert.match(terminal.text().at(-1) ?? "", /^cancelling: /);
});
