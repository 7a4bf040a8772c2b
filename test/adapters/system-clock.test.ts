import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { systemClock } from "../../src/adapters/system-clock.ts";

test("now is the time of the machine in milliseconds", () => {
  const before = Date.now();
  const now = systemClock.now();
  assert.ok(now >= before && now <= Date.now());
  assert.ok(Number.isInteger(now));
});

test("a sleep of nothing ends at once and leaves no listener behind", async () => {
  const stop = new AbortController();
  await systemClock.sleep(0, stop.signal);
  await systemClock.sleep(-5);
  assert.equal(getEventListeners(stop.signal, "abort").length, 0);
});

test("a sleep that is aborted rejects with the signal's reason and leaves no timer behind", async () => {
  const stop = new AbortController();
  const reason = new Error("stop");
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  const sleep = systemClock.sleep(3_600_000, stop.signal);
  assert.equal(timers(), before + 1);
  stop.abort(reason);
  await assert.rejects(sleep, (error) => error === reason);
  assert.equal(timers(), before);
});

test("a sleep whose signal is aborted already rejects without a timer", async () => {
  await assert.rejects(systemClock.sleep(3_600_000, AbortSignal.abort("done")), (error) => error === "done");
});

test("a sleep longer than the longest timer does not end at once", async () => {
  const stop = new AbortController();
  let ended = false;
  const sleep = systemClock.sleep(Number.POSITIVE_INFINITY, stop.signal).then(
    () => {
      ended = true;
    },
    () => undefined,
  );
  // A timer that overflowed would fire after one millisecond, before this one.
  await systemClock.sleep(5);
  assert.equal(ended, false);
  stop.abort();
  await sleep;
});

test("a timer calls its action once; one that is cancelled never does and leaves nothing behind", async () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const { timer } = systemClock;
  assert.ok(timer !== undefined);
  let calls = 0;
  const cancel = await new Promise<() => void>((resolve) => {
    const late = timer(0, () => {
      calls += 1;
      resolve(late);
    });
  });
  cancel();
  const before = timers();
  const never = timer(Number.POSITIVE_INFINITY, () => assert.fail("it was cancelled"));
  assert.equal(timers(), before + 1);
  never();
  never();
  assert.equal(timers(), before);
  assert.equal(calls, 1);
});
