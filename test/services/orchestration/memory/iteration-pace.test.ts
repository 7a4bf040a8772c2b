import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventOf } from "../../../../src/schema/words/event.ts";
import type { Step } from "../../../../src/schema/words/playbook.ts";
import { createIterationPace } from "../../../../src/services/orchestration/memory/iteration-pace.ts";
import { compile } from "../../../engine/support/playbook.ts";

function stepOf(tool: string): Step {
  const program = compile(`
workflow:
  - { step: each, loop: { in: 9, spec: { mode: parallel } }, tool: ${tool} }
`);
  const step = program.steps.get("each")?.step;
  assert.ok(step);
  return step;
}

const NOOP = "{ kind: noop }";

function done(durationMs: number, more: Partial<EventOf<"task.done">> = {}): EventOf<"task.done"> {
  const ref = { command_id: "1", attempt: 1, step: "each", task: "each", step_run_id: "2", task_run_id: "1-0-0" };
  const run = { status: "ok", run: 1, final: true, iteration: 0 } as const;
  return { type: "task.done", at: 1_000_000, ...ref, ...run, duration_ms: durationMs, ...more };
}

/** A pace that has seen these task runs, each so often. */
function seen(step: Step, ...runs: [times: number, event: EventOf<"task.done">][]) {
  const pace = createIterationPace();
  for (const [times, event] of runs) for (let time = 0; time < times; time += 1) pace.note(step, event);
  return pace.atOnce(step);
}

test("a step that was never seen, or hardly ever, has a command for each iteration", () => {
  const step = stepOf(NOOP);
  assert.equal(seen(step), 1);
  assert.equal(seen(step, [31, done(0)]), 1);
  assert.equal(seen(step, [32, done(0)]), 16);
});

for (const [ms, count] of [
  [0, 16],
  [3, 16],
  [4, 12],
  [15, 4],
  [31, 2],
  [32, 1],
  [60_000, 1],
] as const) {
  test(`iterations of ${ms} ms share a command: ${count}`, () =>
    assert.equal(seen(stepOf(NOOP), [40, done(ms)]), count));
}

test("one long run among short ones is enough for commands of their own, until many short ones have followed", () => {
  const step = stepOf(NOOP);
  assert.equal(seen(step, [1_000, done(1)], [1, done(2_000)]), 1);
  assert.equal(seen(step, [1_000, done(1)], [1, done(2_000)], [200, done(1)]), 16);
});

test("the wait for a retry counts", () => {
  const retried = done(1, { final: false, next_run_at: new Date(1_002_000).toISOString() });
  assert.equal(seen(stepOf(NOOP), [100, done(1)], [1, retried]), 1);
});

test("the tasks of a pipeline count together", () => {
  assert.equal(seen(stepOf("[{ a: { kind: noop } }, { b: { kind: noop } }]"), [40, done(15)]), 2);
});

test("what waits for a child is never shared", () => {
  assert.equal(seen(stepOf("{ kind: playbook, path: other }"), [40, done(0)]), 1);
});
