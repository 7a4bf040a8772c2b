import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createLeftWorkLooks } from "../../../src/services/maintenance/left-work.ts";

type Found = Record<"commands" | "pools", boolean>;

function setup(...answers: (Found | Error)[]) {
  const looks = createLeftWorkLooks<keyof Found>(async () => {
    const answer = answers.shift() ?? assert.fail();
    if (answer instanceof Error) throw answer;
    return answer;
  }, ["pools"]);
  const stopping = new AbortController();
  const went: string[] = [];
  const wait = (reason: keyof Found) => void looks.until(reason, stopping.signal).then(() => went.push(reason));
  const look = async () => {
    await looks.look();
    await setImmediate();
  };
  return { look, wait, went, stopping };
}

const NONE: Found = { commands: false, pools: false };

test("work waits for its reason alone, and for each run anew", async () => {
  const { look, wait, went } = setup(NONE, { ...NONE, commands: true }, NONE);
  wait("commands");
  await look();
  assert.deepEqual(went, []);
  await look();
  assert.deepEqual(went, ["commands"]);
  wait("commands");
  await look();
  assert.deepEqual(went, ["commands"]);
});

test("a reason that was found while its work was under way is not lost", async () => {
  const { look, wait, went } = setup({ ...NONE, commands: true }, { ...NONE, commands: true });
  await look();
  await look();
  wait("commands");
  await setImmediate();
  assert.deepEqual(went, ["commands"]);
  wait("commands");
  await setImmediate();
  assert.deepEqual(went, ["commands"], "once, however often it was found");
});

test("a reason whose end counts is looked at at first, and once more when it is gone", async () => {
  const { look, wait, went } = setup(NONE, NONE, { ...NONE, pools: true }, NONE, NONE);
  const ran: number[] = [];
  for (let count = 0; count < 5; count += 1) {
    wait("pools");
    await look();
    ran.push(went.length);
  }
  assert.deepEqual(ran, [1, 1, 2, 3, 3]);
});

test("a look that fails says so, wakes nothing, and loses nothing", async () => {
  const { look, wait, went } = setup({ ...NONE, pools: true }, new Error("away"), NONE);
  wait("commands");
  await look();
  await assert.rejects(look(), /away/);
  wait("pools");
  await setImmediate();
  assert.deepEqual(went, ["pools"]);
  wait("pools");
  await look();
  assert.deepEqual(went, ["pools", "pools"], "gone since the last look that succeeded");
});

test("what waits goes on when the process stops, and so does what comes later", async () => {
  const { wait, went, stopping } = setup();
  wait("commands");
  stopping.abort();
  wait("pools");
  await setImmediate();
  assert.deepEqual(went.sort(), ["commands", "pools"]);
});

/** Looks with timers that the test fires. */
function timed(...next: (number | null)[]) {
  let now = 0;
  let count = 0;
  const timers: { at: number; action: () => void }[] = [];
  const looks = createLeftWorkLooks<"waits">(
    async () => {
      count += 1;
      return { waits: false, nextMs: next.shift() ?? null };
    },
    [],
    {
      after(ms, action) {
        const timer = { at: now + ms, action };
        timers.push(timer);
        return () => void timers.splice(timers.indexOf(timer), 1);
      },
      now: () => now,
      everyMs: 700,
      onError: assert.fail,
    },
  );
  return {
    ...looks,
    count: () => count,
    times: () => timers.map(({ at }) => at),
    async fire() {
      const [timer] = timers.splice(0, 1);
      now = timer?.at ?? now;
      timer?.action();
      await setImmediate();
    },
  };
}

test("what is due before the next look has one of its own, at its time", async () => {
  const { look, fire, times, count } = timed(250, 3, null);
  await look();
  assert.deepEqual(times(), [250]);
  await fire();
  assert.deepEqual([count(), times()], [2, [270]], "no sooner than 20 ms after it");
  await fire();
  assert.deepEqual([count(), times()], [3, []]);
});

test("what is due later is left to the next look; of several moments the soonest counts", async () => {
  const { look, lookIn, times, end } = timed(700, 699);
  await look();
  assert.deepEqual(times(), []);
  await look();
  assert.deepEqual(times(), [699]);
  lookIn(400);
  lookIn(500);
  assert.deepEqual(times(), [400]);
  lookIn(-1_000);
  assert.deepEqual(times(), [20]);
  end();
  lookIn(5);
  assert.deepEqual(times(), []);
});
