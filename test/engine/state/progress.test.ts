import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyState, progressOf, type StepState, stepState } from "../../../src/engine/state/state.ts";

function stateWith(steps: Readonly<Record<string, Partial<StepState>>>) {
  const state = emptyState();
  state.status = "RUNNING";
  for (const [name, changes] of Object.entries(steps)) Object.assign(stepState(state, name), changes);
  return state;
}

const running = { stepRunId: "1", input: {}, from: null, loop: null, ended: null };

test("a loop counts its iterations", () => {
  const at = (done: number) =>
    progressOf(
      stateWith({
        first: { status: "COMPLETED" },
        each: { status: "RUNNING", run: running, loop: { total: 1_000, done, failed: 1 } },
      }),
      4,
    );
  assert.deepEqual([at(0), at(1), at(500), at(999), at(1_000)], [25, 25, 37, 49, 50]);
});

test("an empty loop and a loop of unknown length count as 0, and a loop that has ended as a step", () => {
  const loop = (total: number | null, done: number) => ({ total, done, failed: 0 });
  assert.equal(progressOf(stateWith({ each: { status: "RUNNING", run: running, loop: loop(null, 70) } }), 2), 0);
  assert.equal(progressOf(stateWith({ each: { status: "RUNNING", run: running, loop: loop(0, 0) } }), 2), 0);
  assert.equal(progressOf(stateWith({ each: { status: "FAILED", loop: loop(10, 3) } }), 2), 50);
});

test("only a completed run is at 100 percent", () => {
  const state = stateWith({ only: { status: "COMPLETED" } });
  assert.equal(progressOf(state, 1), 99);
  state.status = "FAILED";
  assert.equal(progressOf(state, 1), 99);
  state.status = "COMPLETED";
  assert.equal(progressOf(state, 1), 100);
});
