import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { test } from "node:test";
import { closedLoop, openLoop, timesWithin } from "../../bench/service/load.ts";

test("a closed loop runs as often as asked and never more at a time than allowed", async () => {
  let running = 0;
  let most = 0;
  const { latencies } = await closedLoop(50, 4, async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise(setImmediate);
    running -= 1;
  });
  assert.equal(latencies.length, 50);
  assert.equal(most, 4);
});

test("a loop that fails starts nothing further, and fails when all it started has ended", async () => {
  let started = 0;
  let ended = 0;
  const run = async () => {
    started += 1;
    if (started === 2) throw new Error("refused");
    await new Promise(setImmediate);
    ended += 1;
  };
  await assert.rejects(closedLoop(100, 2, run), /refused/);
  assert.deepEqual({ started, ended }, { started: 2, ended: 1 });
  const refuse = () => Promise.reject(new Error("refused"));
  await assert.rejects(openLoop(100, 60, refuse), /refused/);
});

test("an open loop counts from when a start was due, so that a stall shows in all that it delayed", async () => {
  let runs = 0;
  const { latencies, overrun } = await openLoop(100, 0.2, async () => {
    runs += 1;
    // The machine stalls for a tenth of a second while the third is started: nine more become due meanwhile.
    const end = performance.now() + (runs === 3 ? 100 : 0);
    while (performance.now() < end);
  });
  assert.equal(runs, 20);
  assert.equal(overrun, false);
  assert.ok(latencies.filter((ms) => ms >= 10).length >= 9, `${latencies}`);
});

test("an open loop stops once its queue only grows, and waits for what it started", async () => {
  const waiting: (() => void)[] = [];
  const run = () =>
    new Promise<void>((resolve) => {
      waiting.push(resolve);
      // One more than may be open: no further one comes, so these may end.
      if (waiting.length > 50) for (const end of waiting) end();
    });
  const { overrun, latencies } = await openLoop(2_000, 60, run, 50);
  assert.equal(overrun, true);
  assert.equal(latencies.length, 51);
});

test("runs one after the other: one to warm up, and as many as asked", async () => {
  let runs = 0;
  const run = async () => {
    runs += 1;
  };
  assert.equal((await timesWithin(3, 60_000, run)).length, 3);
  assert.equal(runs, 4);
});

test("runs that take too long are fewer, and a first one that takes all the time counts", async () => {
  let runs = 0;
  const run = async () => {
    runs += 1;
    const end = performance.now() + 10;
    while (performance.now() < end);
  };
  assert.equal((await timesWithin(3, 0, run)).length, 1);
  assert.equal(runs, 1);
  const two = await timesWithin(50, 15, run);
  assert.equal(two.length, 1, "the second, and not the one that warmed up");
});
