import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyState } from "../../../../src/engine/state/state.ts";
import { createLanes } from "../../../../src/services/orchestration/memory/execution-cache.ts";
import type { LiveExecution } from "../../../../src/services/orchestration/memory/load-execution.ts";

/** Lanes over executions that are loaded by hand. */
function setup(known: readonly string[] = ["1"]) {
  const time = { now: 0 };
  const loads: string[] = [];
  const lanes = createLanes(
    async (executionId) => {
      loads.push(executionId);
      if (executionId === "broken") throw new Error("away");
      return known.includes(executionId) ? live(executionId) : undefined;
    },
    () => time.now,
  );
  return { lanes, loads, time };
}

function live(executionId: string): LiveExecution {
  return { state: { ...emptyState(), executionId }, lastEventId: 1 } as LiveExecution;
}

test("an execution is loaded once, however many ask", async () => {
  const { lanes, loads } = setup();
  const lane = lanes.of("1");
  await Promise.all([lanes.load(lane), lanes.load(lane)]);
  await lanes.load(lane);
  assert.equal(lane.live?.state.executionId, "1");
  assert.deepEqual(loads, ["1"]);
  assert.equal(lanes.of("1"), lane);
});

test("what there is not is looked for again after its round", async () => {
  const { lanes, loads } = setup([]);
  const lane = lanes.of("1");
  await lanes.load(lane);
  assert.equal(lane.missing, true);
  lanes.free(lane);
  assert.equal(lane.missing, false);
  await lanes.load(lane);
  assert.deepEqual(loads, ["1", "1"]);
});

test("a load that fails says so, and the next one tries again", async () => {
  const { lanes, loads } = setup();
  const lane = lanes.of("broken");
  await assert.rejects(lanes.load(lane), /away/);
  await assert.rejects(lanes.load(lane), /away/);
  assert.deepEqual(loads, ["broken", "broken"]);
});

test("who waits for an execution goes on when its round has ended, not before", async () => {
  const { lanes } = setup();
  const lane = lanes.of("1");
  lane.busy = true;
  let isFree = false;
  const waiting = lanes.whenFree(lane).then(() => {
    isFree = true;
  });
  await Promise.resolve();
  assert.equal(isFree, false);
  lanes.free(lane);
  await waiting;
  await lanes.whenFree(lane);
  assert.equal(isFree, true);
});

test("a sweep forgets what is idle, ended, missing or not loaded, and nothing that is in use", async () => {
  const { lanes, time } = setup(["idle", "busy", "marked", "ended"]);
  for (const id of ["idle", "busy", "marked", "ended", "missing"]) await lanes.load(lanes.of(id));
  lanes.of("unloaded");
  lanes.of("busy").busy = true;
  lanes.of("marked").markers.push({ type: "batch.completed", at: 0, context: {} });
  const ended = lanes.of("ended").live;
  assert.ok(ended);
  ended.state.status = "COMPLETED";
  time.now = 2_000;
  lanes.sweep();
  assert.deepEqual(
    [...lanes.all()].map(({ executionId }) => executionId),
    ["idle", "busy", "marked"],
  );
  time.now = 60_000;
  lanes.sweep();
  assert.deepEqual(
    [...lanes.all()].map(({ executionId }) => executionId),
    ["busy", "marked"],
  );
});

test("no more are kept than there is room for, however lately they were used", async () => {
  const ids = Array.from({ length: 2_100 }, (_, index) => String(index));
  const { lanes } = setup(ids);
  for (const id of ids) await lanes.load(lanes.of(id));
  lanes.sweep();
  assert.equal([...lanes.all()].length, 2_000);
});
