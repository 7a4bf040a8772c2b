import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { type BackgroundWork, repeatWhileFull, startBackground } from "../../../src/services/maintenance/background.ts";

const INTERVAL_MS = 60_000;

/** Runs work until so many pauses have come, and gives them and what failed. */
async function pausesOf(work: BackgroundWork, count: number): Promise<{ pauses: number[]; failed: string[] }> {
  const pauses: number[] = [];
  const failed: string[] = [];
  let resolve = () => {};
  const enough = new Promise<void>((resolved) => {
    resolve = resolved;
  });
  const sleep = async (milliseconds: number) => {
    pauses.push(milliseconds);
    if (pauses.length === count) resolve();
    await setImmediate();
  };
  const onError = (_: string, error: unknown) => failed.push(String(error));
  const stop = startBackground([work], { clock: { now: Date.now, sleep }, random: () => 0.5, onError });
  await enough;
  await stop();
  assert.equal(pauses.length, count, "nothing more once it was told to stop");
  return { pauses, failed };
}

/** Work that has so many rows left; every run asks for three. */
function rows(left: number): BackgroundWork {
  return repeatWhileFull("rows", INTERVAL_MS, 3, async (limit) => {
    const done = Math.min(left, limit);
    left -= done;
    return done;
  });
}

test("work that is not behind rests for its interval", async () => {
  assert.deepEqual((await pausesOf(rows(0), 2)).pauses, [INTERVAL_MS, INTERVAL_MS]);
  assert.deepEqual((await pausesOf(rows(2), 2)).pauses, [INTERVAL_MS, INTERVAL_MS]);
});

test("full runs follow each other soon, until one is not", async () => {
  assert.deepEqual((await pausesOf(rows(3), 2)).pauses, [100, INTERVAL_MS]);
  assert.deepEqual((await pausesOf(rows(7), 3)).pauses, [100, 100, INTERVAL_MS]);
});

test("work that fails rests for its interval, also where it was behind", async () => {
  let runs = 0;
  const work = repeatWhileFull("rows", INTERVAL_MS, 3, async () => {
    runs += 1;
    if (runs === 2) throw new Error("away");
    return 3;
  });
  assert.deepEqual(await pausesOf(work, 3), { pauses: [100, INTERVAL_MS, 100], failed: ["Error: away"] });
});

test("work with nothing to do waits for a cause, without a timer, and ends when it is told to stop", async () => {
  const sleeps: number[] = [];
  const runs: string[] = [];
  let cause = () => {};
  const work: BackgroundWork = {
    name: "look",
    intervalMs: 25,
    until: (signal) =>
      new Promise((resolve) => {
        cause = resolve;
        signal.addEventListener("abort", () => resolve());
      }),
    runOnce: () => runs.push("run"),
  };
  const sleep = async (ms: number) => void sleeps.push(ms);
  const stop = startBackground([work], {
    clock: { now: Date.now, sleep },
    random: () => 0.5,
    onError: (_, error) => assert.fail(String(error)),
  });
  await setImmediate();
  assert.deepEqual([runs, sleeps], [[], []], "nothing to do");
  cause();
  await setImmediate();
  assert.deepEqual([runs, sleeps], [["run"], [25]], "one run, and it waits again");
  await stop();
  assert.deepEqual(runs, ["run"], "told to stop, it does not run once more");
});
