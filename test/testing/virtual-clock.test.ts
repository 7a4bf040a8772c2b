import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createVirtualClock } from "../../src/testing/virtual-clock.ts";
import { workspace } from "./workspace.ts";

test("five minutes of sleep take no real time", { timeout: 30_000 }, async () => {
  const clock = createVirtualClock(1_000);
  await clock.runUntil(clock.sleep(300_000));
  assert.equal(clock.now(), 301_000);
});

test("sleepers wake in the order of their times, not in that of their calls", async () => {
  const clock = createVirtualClock(0);
  const woke: string[] = [];
  const sleep = async (name: string, ms: number) => {
    await clock.sleep(ms);
    woke.push(`${name} at ${clock.now()}`);
  };
  await clock.runUntil(Promise.all([sleep("late", 20), sleep("early", 10), sleep("also early", 10)]));
  assert.deepEqual(woke, ["early at 10", "also early at 10", "late at 20"]);
});

test("time stands still while held work is under way", async () => {
  const clock = createVirtualClock(0);
  const seen: number[] = [];
  const real = clock.hold(async () => {
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    seen.push(clock.now());
  });
  await clock.runUntil(Promise.all([clock.sleep(1_000), real]));
  assert.deepEqual(seen, [0]);
  assert.equal(clock.now(), 1_000);
});

test("time stands still while a file is read", async (t) => {
  const file = join(workspace(t, {}), "large");
  writeFileSync(file, Buffer.alloc(4 * 1024 * 1024));
  const clock = createVirtualClock(0);
  let readAt = -1;
  const read = readFile(file).then(() => {
    readAt = clock.now();
  });
  await clock.runUntil(Promise.all([clock.sleep(1_000), read]));
  assert.equal(readAt, 0);
});

test("an aborted sleep rejects with the signal's reason and time does not pass for it", async () => {
  const clock = createVirtualClock(0);
  const controller = new AbortController();
  const slept = clock.sleep(1_000, controller.signal);
  controller.abort(new Error("enough"));
  await assert.rejects(clock.runUntil(slept), /enough/);
  assert.equal(clock.now(), 0);
});

test("a failure of the work is the failure of the run", async () => {
  const clock = createVirtualClock(0);
  const work = async () => {
    await clock.sleep(10);
    throw new Error("broken");
  };
  await assert.rejects(clock.runUntil(work()), /broken/);
});
