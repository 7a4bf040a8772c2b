import assert from "node:assert/strict";
import { test } from "node:test";
import { createSteppedClock } from "../../src/testing/stepped-clock.ts";
import { createEventLoopTurns } from "../../src/worker/yield-to-event-loop.ts";
import { setup } from "./support/bench.ts";
import { bad } from "./support/scripted-tools.ts";

/** Keeps the process busy for longer than a turn. */
function work(): void {
  const until = performance.now() + 25;
  while (performance.now() < until);
}

test("a turn is over after 20 ms of work, and the next begins with the event loop's next round", async () => {
  let busyMs = 1_000;
  const turns = createEventLoopTurns({ busy: () => busyMs });
  busyMs += 20;
  assert.equal(turns.isOver(), false);
  busyMs += 1;
  assert.equal(turns.isOver(), true);
  await turns.next();
  assert.equal(turns.isOver(), false);
});

test("without a clock that says so, work is measured by the system's", () => {
  const turns = createEventLoopTurns({});
  work();
  assert.equal(turns.isOver(), true);
});

test("in stepped time no work takes any, however slow the machine is: nothing gives way, and time does not move", async (t) => {
  const turns = createEventLoopTurns(createSteppedClock(0));
  work();
  assert.equal(turns.isOver(), false);
  const calls: number[] = [];
  const bench = setup(t, {
    tools: { ask: [bad("timeout", "T")] },
    onCall: () => calls.push(bench.clock.now()),
    observe: work,
  });
  await bench.failed("workflow: [{ step: s, tool: { kind: http, name: ask, retry: true } }]");
  assert.equal(calls.length, 3);
  assert.deepEqual(new Set(calls).size, 1, `Runs without a delay at ${calls.join(", ")}`);
});
