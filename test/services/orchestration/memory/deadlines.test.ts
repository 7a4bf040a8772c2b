import assert from "node:assert/strict";
import { test } from "node:test";
import { createDeadlines } from "../../../../src/services/orchestration/memory/deadlines.ts";
import { createSteppedClock } from "../../../../src/testing/stepped-clock.ts";

/** Deadlines on a clock that can be set, and what was due. */
function setup() {
  const clock = createSteppedClock(0);
  const setting = { ms: 0 };
  const deadlines = createDeadlines({ sleep: clock.sleep, now: () => clock.now() + setting.ms });
  const due: string[] = [];
  return { clock, setting, due, add: (ms: number, name: string) => deadlines.add(ms, () => due.push(name)) };
}

test("calls are made about when they are due, in that order, and once", async () => {
  const { clock, due, add } = setup();
  add(200, "late");
  add(50, "early");
  await clock.advance(100);
  assert.deepEqual(due, ["early"]);
  await clock.advance(150);
  assert.deepEqual(due, ["early", "late"]);
  await clock.advance(1_000);
  assert.deepEqual(due, ["early", "late"]);
});

test("a cancelled call is not made", async () => {
  const { clock, due, add } = setup();
  const cancel = add(50, "never");
  add(50, "one");
  cancel();
  cancel();
  await clock.advance(1_000);
  assert.deepEqual(due, ["one"]);
});

test("no timer runs while no call is open", async () => {
  const { clock, due, add } = setup();
  add(50, "one");
  await clock.advance(1_000);
  assert.equal(await clock.step(), false);
  add(50, "two");
  await clock.advance(1_000);
  assert.deepEqual(due, ["one", "two"]);
});

test("a call that comes due before all others is made in time, however long the timer sleeps", async () => {
  const { clock, due, add } = setup();
  add(60_000, "far");
  await clock.advance(130);
  add(50, "near");
  add(75, "next");
  await clock.advance(45);
  assert.deepEqual(due, []);
  await clock.advance(30);
  assert.deepEqual(due, ["near"]);
  await clock.advance(30);
  assert.deepEqual(due, ["near", "next"]);
  await clock.advance(59_700);
  assert.deepEqual(due, ["near", "next"]);
  await clock.advance(300);
  assert.deepEqual(due, ["near", "next", "far"]);
});

test("while a call is far away the timer runs four times a second", async () => {
  const { clock, add } = setup();
  let sleeps = 0;
  const counted = createDeadlines({
    now: clock.now,
    sleep: (ms, signal) => {
      sleeps += 1;
      return clock.sleep(ms, signal);
    },
  });
  counted.add(30_000, () => undefined);
  add(30_000, "beside");
  await clock.advance(10_000);
  assert.ok(sleeps <= 41, `${sleeps} timers in ten seconds`);
});

test("a clock that is set forward ends no wait early, a clock that is set back makes no wait longer", async () => {
  const { clock, setting, due, add } = setup();
  add(5_000, "wait");
  await clock.advance(100);
  setting.ms = 3_600_000;
  await clock.advance(1_000);
  assert.deepEqual(due, []);
  setting.ms = -3_600_000;
  await clock.advance(4_000);
  assert.deepEqual(due, ["wait"]);
});

test("a call may add and cancel others", async () => {
  const { clock, due, add } = setup();
  const deadlines = createDeadlines(clock);
  const cancel = add(100, "cancelled");
  deadlines.add(50, () => {
    cancel();
    add(50, "added");
  });
  await clock.advance(500);
  assert.deepEqual(due, ["added"]);
});

test("a call that is added by another one is due after its own time, not after that of the sleep too", async () => {
  const { clock, due, add } = setup();
  const deadlines = createDeadlines(clock);
  deadlines.add(250, () => add(50, "of others"));
  deadlines.add(250, () => deadlines.add(50, () => due.push("its own")));
  await clock.advance(250);
  await clock.advance(100);
  assert.deepEqual(due.sort(), ["its own", "of others"]);
});
