import assert from "node:assert/strict";
import { test } from "node:test";
import { createStops } from "../../../../src/services/orchestration/rounds/cancel-notices.ts";

const NEVER = new AbortController().signal;
/** Far beyond what a test takes. */
const LONG_MS = 60_000;

function setup(cancelled: (ids: readonly string[]) => Promise<string[]> = async (ids) => [...ids]) {
  const asked: string[][] = [];
  const faults: unknown[] = [];
  const stops = createStops({
    cancelled: (ids) => {
      asked.push([...ids]);
      return cancelled(ids);
    },
    onFault: (error) => void faults.push(error),
  });
  return { stops, asked, faults };
}

test("a worker that listens hears of its own commands at once, and of nobody else's", async () => {
  const { stops, asked } = setup();
  const listener = stops.listen("w");
  const heard = listener.next(LONG_MS, NEVER);
  await stops.tell([
    { commandId: "1", worker: "w" },
    { commandId: "2", worker: "other" },
    { commandId: "3", worker: "w" },
  ]);
  assert.deepEqual(await heard, ["1", "3"]);
  assert.deepEqual(asked, [["1", "3"]], "what nobody listens for is not looked up");
  listener.close();
});

test("what is told between listening and waiting is heard", async () => {
  const { stops } = setup();
  const listener = stops.listen("w");
  await stops.tell([{ commandId: "1", worker: "w" }]);
  assert.deepEqual(await listener.next(LONG_MS, NEVER), ["1"]);
  listener.close();
});

test("a command that is not cancelled is not told, whoever says so", async () => {
  const { stops } = setup(async (ids) => ids.filter((id) => id !== "forged"));
  const listener = stops.listen("w");
  await stops.tell([
    { commandId: "forged", worker: "w" },
    { commandId: "1", worker: "w" },
  ]);
  assert.deepEqual(await listener.next(LONG_MS, NEVER), ["1"]);
  await stops.tell([{ commandId: "forged", worker: "w" }]);
  assert.deepEqual(await listener.next(1, NEVER), []);
  listener.close();
});

test("who waits in vain is answered when the time is over or the signal is aborted", async () => {
  const { stops } = setup();
  const listener = stops.listen("w");
  assert.deepEqual(await listener.next(1, NEVER), []);
  const left = new AbortController();
  const waiting = listener.next(LONG_MS, left.signal);
  left.abort();
  assert.deepEqual(await waiting, []);
  listener.close();
  const { asked } = setup();
  await stops.tell([{ commandId: "1", worker: "w" }]);
  assert.deepEqual(asked, []);
});

test("a database that cannot be asked is a fault that is told, and no worker stops anything", async () => {
  const { stops, faults } = setup(() => Promise.reject(new Error("no database")));
  const listener = stops.listen("w");
  await stops.tell([{ commandId: "1", worker: "w" }]);
  assert.deepEqual(await listener.next(1, NEVER), []);
  assert.equal(faults.length, 1);
  listener.close();
});
