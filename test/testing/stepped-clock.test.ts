import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createSteppedClock } from "../../src/testing/stepped-clock.ts";
import { workspace } from "./workspace.ts";

test("time stands still until it is moved", async () => {
  const clock = createSteppedClock(1_000);
  let isAwake = false;
  void clock.sleep(10).then(() => {
    isAwake = true;
  });
  await clock.advance(9);
  assert.deepEqual([clock.now(), isAwake], [1_009, false]);
  await clock.advance(1);
  assert.deepEqual([clock.now(), isAwake], [1_010, true]);
});

test("sleepers wake in the order of their times, and of their going to sleep", async () => {
  const clock = createSteppedClock(0);
  const woken: string[] = [];
  for (const [name, ms] of [
    ["c", 30],
    ["a", 10],
    ["b1", 20],
    ["b2", 20],
    ["now", 0],
    ["past", -5],
  ] as const) {
    clock.after(ms, () => woken.push(`${name}@${clock.now()}`));
  }
  await clock.advance(100);
  assert.deepEqual(woken, ["now@0", "past@0", "a@10", "b1@20", "b2@20", "c@30"]);
});

test("work that gives way to the event loop for a turn comes back before time moves on", async () => {
  const clock = createSteppedClock(0);
  clock.after(250, () => undefined);
  const work = async () => {
    await Promise.resolve();
    await nextTurn();
    return clock.now();
  };
  assert.equal(await clock.runUntil(work()), 0);
});

test("what a sleeper does next happens before time moves on", async () => {
  const clock = createSteppedClock(0);
  const seen: number[] = [];
  const walk = async () => {
    for (const ms of [5, 5, 5]) {
      await clock.sleep(ms);
      seen.push(clock.now());
    }
  };
  const walking = walk();
  await clock.advance(12);
  assert.deepEqual(seen, [5, 10]);
  await clock.advance(3);
  await walking;
  assert.deepEqual(seen, [5, 10, 15]);
});

test("an aborted sleep rejects with the signal's reason and holds nothing up", async () => {
  const clock = createSteppedClock(0);
  const controller = new AbortController();
  const sleeping = clock.sleep(1_000, controller.signal);
  controller.abort(new Error("enough"));
  await assert.rejects(sleeping, /enough/);
  await assert.rejects(clock.sleep(1, controller.signal), /enough/);
  assert.equal(await clock.step(), false);
  assert.equal(clock.now(), 0);
});

test("an action that was taken back does not happen", async () => {
  const clock = createSteppedClock(0);
  const takeBack = clock.after(5, () => assert.fail("it was taken back"));
  takeBack();
  await clock.advance(10);
});

test("runUntil jumps over every sleep and gives what the work gives", async () => {
  const clock = createSteppedClock(0);
  const work = async () => {
    for (let round = 0; round < 100; round += 1) await clock.sleep(300_000);
    return "done";
  };
  assert.equal(await clock.runUntil(work()), "done");
  assert.equal(clock.now(), 30_000_000);
  await assert.rejects(clock.runUntil(clock.sleep(5).then(() => Promise.reject(new Error("failed")))), /failed/);
});

test("runUntil waits for what is not on the clock, and for sleeps that begin after it", async () => {
  const clock = createSteppedClock(0);
  const work = async () => {
    await new Promise((resolve) => {
      setImmediate(() => setImmediate(() => setImmediate(resolve)));
    });
    await clock.sleep(10);
    return clock.now();
  };
  assert.equal(await clock.runUntil(work()), 10);
});

test("a thousand sleepers wake in order", async () => {
  const clock = createSteppedClock(0);
  const woken: number[] = [];
  for (let index = 0; index < 1_000; index += 1) {
    const at = (index * 7_919) % 1_000;
    const takeBack = clock.after(at, () => woken.push(at));
    if (index % 3 === 0) takeBack();
  }
  await clock.advance(1_000);
  assert.deepEqual(
    woken,
    [...woken].sort((left, right) => left - right),
  );
  assert.equal(woken.length, 666);
});

test("time stands still while held work is under way", async () => {
  const clock = createSteppedClock(0);
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
  const clock = createSteppedClock(0);
  let readAt = -1;
  const read = readFile(file).then(() => {
    readAt = clock.now();
  });
  await clock.runUntil(Promise.all([clock.sleep(1_000), read]));
  assert.equal(readAt, 0);
});
