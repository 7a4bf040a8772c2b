import assert from "node:assert/strict";
import { test } from "node:test";
import type { StoppedWork } from "../../../src/repositories/workers/workers.ts";
import { createCancelNotices } from "../../../src/services/workers/cancel-notices.ts";

const NEVER = new AbortController().signal;
/** Far beyond what a test takes. */
const LONG_MS = 60_000;

const cancelledWork = (commandId: string): StoppedWork => ({ commandId, isCancelled: true, iterations: [] });
const commandsOf = (...commands: string[]) => ({ commands, iterations: [] });

function setup(
  cancelled: (ids: readonly string[]) => Promise<string[]> = async (ids) => [...ids],
  parts: readonly StoppedWork[] = [],
) {
  const asked: string[][] = [];
  const faults: unknown[] = [];
  const notices = createCancelNotices({
    async stopped(ids) {
      asked.push([...ids]);
      return [...parts, ...(await cancelled(ids)).map(cancelledWork)];
    },
    onFault: (error) => void faults.push(error),
  });
  return { notices, asked, faults };
}

test("a listening worker is notified of its own commands at once, and not of others'", async () => {
  const { notices, asked } = setup();
  const listener = notices.listen("w");
  const heard = listener.next(LONG_MS, NEVER);
  await notices.tell([
    { commandId: "1", worker: "w" },
    { commandId: "2", worker: "other" },
    { commandId: "3", worker: "w" },
  ]);
  assert.deepEqual(await heard, commandsOf("1", "3"));
  assert.deepEqual(asked, [["1", "3"]], "what nobody listens for is not looked up");
  listener.close();
});

test("of a command that goes on, the iterations that were ended by hand are told apart from cancelled commands", async () => {
  const ended = { commandId: "2", iterations: [4, 7] };
  const { notices } = setup(async () => ["1"], [{ ...ended, isCancelled: false }]);
  const listener = notices.listen("w");
  await notices.tell(["1", "2"].map((commandId) => ({ commandId, worker: "w" })));
  assert.deepEqual(await listener.next(LONG_MS, NEVER), { commands: ["1"], iterations: [ended] });
  assert.deepEqual(await listener.next(1, NEVER), commandsOf(), "each is told once");
  listener.close();
});

test("notices between listening and waiting are not lost", async () => {
  const { notices } = setup();
  const listener = notices.listen("w");
  await notices.tell([{ commandId: "1", worker: "w" }]);
  assert.deepEqual(await listener.next(LONG_MS, NEVER), commandsOf("1"));
  listener.close();
});

test("a notice about a command that is not cancelled is ignored", async () => {
  const { notices } = setup(async (ids) => ids.filter((id) => id !== "forged"));
  const listener = notices.listen("w");
  await notices.tell([
    { commandId: "forged", worker: "w" },
    { commandId: "1", worker: "w" },
  ]);
  assert.deepEqual(await listener.next(LONG_MS, NEVER), commandsOf("1"));
  await notices.tell([{ commandId: "forged", worker: "w" }]);
  assert.deepEqual(await listener.next(1, NEVER), commandsOf());
  listener.close();
});

test("who waits in vain is answered when the time is over or the signal is aborted", async () => {
  const { notices } = setup();
  const listener = notices.listen("w");
  assert.deepEqual(await listener.next(1, NEVER), commandsOf());
  const left = new AbortController();
  const waiting = listener.next(LONG_MS, left.signal);
  left.abort();
  assert.deepEqual(await waiting, commandsOf());
  listener.close();
  const { asked } = setup();
  await notices.tell([{ commandId: "1", worker: "w" }]);
  assert.deepEqual(asked, []);
});

test("an unavailable database is reported, and workers are not notified", async () => {
  const { notices, faults } = setup(() => Promise.reject(new Error("no database")));
  const listener = notices.listen("w");
  await notices.tell([{ commandId: "1", worker: "w" }]);
  assert.deepEqual(await listener.next(1, NEVER), commandsOf());
  assert.equal(faults.length, 1);
  listener.close();
});
