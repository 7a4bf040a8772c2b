import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createSubscriptions } from "../../../../src/services/orchestration/memory/subscriptions.ts";

test("who waits for the first watcher goes on when there is one, and at once while there is one", async () => {
  const { watch, whenWatched } = createSubscriptions();
  const { signal } = new AbortController();
  let gone = 0;
  const noteGone = () => {
    gone += 1;
  };
  void whenWatched(signal).then(noteGone);
  await setImmediate();
  assert.equal(gone, 0);
  const end = watch("1", () => undefined);
  await setImmediate();
  assert.equal(gone, 1);
  await whenWatched(signal);
  end();
  void whenWatched(signal).then(noteGone);
  await setImmediate();
  assert.equal(gone, 1, "the last watcher has left");
});

test("who waits for the first watcher goes on when told to stop, also before it waits", async () => {
  const { whenWatched } = createSubscriptions();
  const stop = new AbortController();
  const waiting = whenWatched(stop.signal);
  stop.abort();
  await waiting;
  await whenWatched(stop.signal);
});
