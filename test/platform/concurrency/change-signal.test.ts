import assert from "node:assert/strict";
import { test } from "node:test";
import { createWaiter } from "../../../src/platform/concurrency/change-signal.ts";

function told() {
  const listeners = new Set<() => void>();
  const waiter = createWaiter((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  });
  const tell = () => {
    for (const listener of listeners) listener();
  };
  return { waiter, tell, listeners };
}

test("a change that came before the wait ends it at once, and only that one", async () => {
  const { waiter, tell } = told();
  tell();
  tell();
  assert.equal(await waiter.wait(60_000), true);
  assert.equal(await waiter.wait(0), false);
});

test("a wait ends with the change, with its time, or with the signal", async () => {
  const { waiter, tell } = told();
  const waiting = waiter.wait(60_000);
  tell();
  assert.equal(await waiting, true);
  assert.equal(await waiter.wait(1), false);
  const stop = new AbortController();
  const stopped = waiter.wait(60_000, stop.signal);
  stop.abort();
  assert.equal(await stopped, false);
  assert.equal(await waiter.wait(60_000, stop.signal), false);
});

test("a waiter that is closed hears nothing any more", () => {
  const { waiter, listeners } = told();
  waiter.close();
  assert.equal(listeners.size, 0);
});
