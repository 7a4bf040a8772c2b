import assert from "node:assert/strict";
import { test } from "node:test";
import { backOffMs } from "../../src/worker/backoff.ts";
import { createSlots } from "../../src/worker/slots.ts";

const never = new AbortController().signal;

test("slots are free, promised or taken", () => {
  const slots = createSlots(3);
  slots.promise(2);
  slots.take();
  assert.deepEqual([slots.free(), slots.taken()], [0, 1]);
  slots.unpromise(2);
  slots.giveBack();
  assert.deepEqual([slots.free(), slots.taken()], [3, 0]);
});

test("a command that takes its slot back may be one too many; until one ends no slot is free", async () => {
  const slots = createSlots(1);
  slots.take();
  slots.giveBack();
  slots.take();
  slots.take();
  assert.equal(slots.free(), -1);
  let isFree = false;
  const waiting = slots.untilFree(never).then(() => {
    isFree = true;
  });
  slots.giveBack();
  await Promise.resolve();
  assert.equal(isFree, false);
  slots.giveBack();
  await waiting;
});

test("waiting for a slot ends with the signal's reason", async () => {
  const slots = createSlots(1);
  slots.take();
  const stop = new AbortController();
  const waiting = slots.untilFree(stop.signal);
  stop.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  await assert.rejects(slots.untilFree(stop.signal), /enough/);
});

test("delays between tries double from a tenth of a second to ten, less a random half, and never undercut what the server asked", () => {
  const least = [1, 2, 3, 4, 8, 9, 1_000].map((tries) => backOffMs(tries, () => 1));
  assert.deepEqual(least, [50, 100, 200, 400, 5_000, 5_000, 5_000]);
  assert.equal(
    backOffMs(3, () => 0),
    400,
  );
  assert.equal(
    backOffMs(1, () => 0, 7_000),
    7_000,
  );
});
