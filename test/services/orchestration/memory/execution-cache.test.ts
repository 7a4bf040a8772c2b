import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyState } from "../../../../src/engine/state/state.ts";
import { createExecutionCache } from "../../../../src/services/orchestration/memory/execution-cache.ts";
import type { LiveExecution } from "../../../../src/services/orchestration/memory/load-execution.ts";

/** A cache of executions that are loaded by hand. */
function setup(known: readonly string[] = ["1"]) {
  const time = { now: 0 };
  const loads: string[] = [];
  const cache = createExecutionCache(
    async (executionId) => {
      loads.push(executionId);
      if (executionId === "broken") throw new Error("away");
      return known.includes(executionId) ? live(executionId) : undefined;
    },
    () => time.now,
  );
  return { cache, loads, time };
}

function live(executionId: string): LiveExecution {
  return { state: { ...emptyState(), executionId }, lastEventId: 1 } as LiveExecution;
}

test("an execution is loaded once, however many callers request it", async () => {
  const { cache, loads } = setup();
  const cached = cache.entry("1");
  await Promise.all([cache.load(cached), cache.load(cached)]);
  await cache.load(cached);
  assert.equal(cached.live?.state.executionId, "1");
  assert.deepEqual(loads, ["1"]);
  assert.equal(cache.entry("1"), cached);
});

test("a missing execution is looked up again after its round", async () => {
  const { cache, loads } = setup([]);
  const cached = cache.entry("1");
  await cache.load(cached);
  assert.equal(cached.missing, true);
  cache.free(cached);
  assert.equal(cached.missing, false);
  await cache.load(cached);
  assert.deepEqual(loads, ["1", "1"]);
});

test("a failed load rejects, and the next one tries again", async () => {
  const { cache, loads } = setup();
  const cached = cache.entry("broken");
  await assert.rejects(cache.load(cached), /away/);
  await assert.rejects(cache.load(cached), /away/);
  assert.deepEqual(loads, ["broken", "broken"]);
});

test("a sweep evicts executions that are idle, ended, missing or not loaded, and none in use", async () => {
  const { cache, time } = setup(["idle", "busy", "marked", "ended"]);
  for (const id of ["idle", "busy", "marked", "ended", "missing"]) await cache.load(cache.entry(id));
  cache.entry("unloaded");
  cache.entry("busy").busy = true;
  cache.entry("marked").markers.push({ type: "batch.completed", at: 0, context: {} });
  const ended = cache.entry("ended").live;
  assert.ok(ended);
  ended.state.status = "COMPLETED";
  time.now = 2_000;
  cache.sweep(() => false);
  assert.deepEqual(
    [...cache.all()].map(({ executionId }) => executionId),
    ["idle", "busy", "marked"],
  );
  time.now = 60_000;
  cache.sweep(() => false);
  assert.deepEqual(
    [...cache.all()].map(({ executionId }) => executionId),
    ["busy", "marked"],
  );
});

test("the limit of kept executions holds, however recently they were used", async () => {
  const ids = Array.from({ length: 2_100 }, (_, index) => String(index));
  const { cache } = setup(ids);
  for (const id of ids) await cache.load(cache.entry(id));
  cache.sweep(() => false);
  assert.equal([...cache.all()].length, 2_000);
});

test("of those that end within a moment the last 256 are kept, and those in use", async () => {
  const ids = Array.from({ length: 259 }, (_, index) => String(index));
  const { cache } = setup(ids);
  for (const id of ids) {
    const cached = cache.entry(id);
    await cache.load(cached);
    assert.ok(cached.live);
    cached.live.state.status = "COMPLETED";
    cache.free(cached);
    if (id === "1") cached.busy = true;
  }
  assert.deepEqual(
    ["0", "1", "2", "3"].map((id) => cache.peek(id) !== undefined),
    [false, true, false, true],
  );
});

test("one that goes on is kept, however many end beside it", async () => {
  const ids = Array.from({ length: 400 }, (_, index) => String(index));
  const { cache } = setup(ids);
  for (const id of ids) {
    const cached = cache.entry(id);
    await cache.load(cached);
    assert.ok(cached.live);
    if (id !== "0") cached.live.state.status = "FAILED";
    cache.free(cached);
  }
  assert.notEqual(cache.peek("0"), undefined);
});
