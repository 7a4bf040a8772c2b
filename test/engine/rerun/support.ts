import assert from "node:assert/strict";
import { type Advance, advanceOf, continueAdvance } from "../../../src/engine/decide/advance.ts";
import { startExecution } from "../../../src/engine/decide/start.ts";
import type { EngineEnv } from "../../../src/engine/env.ts";
import type { Program } from "../../../src/engine/program/program.ts";
import { chooseSteps, type Original } from "../../../src/engine/rerun/choose-steps.ts";
import {
  foldPrefix,
  type RerunEdits,
  type RerunStart,
  restoringEvents,
} from "../../../src/engine/rerun/restore-state.ts";
import { noteMark, type StepMarks } from "../../../src/engine/rerun/step-marks.ts";
import { accept } from "../../../src/engine/state/accept.ts";
import { evolve } from "../../../src/engine/state/evolve.ts";
import { type ExecutionState, emptyState, isTerminal, knownStep } from "../../../src/engine/state/state.ts";
import type { FlowEvent, RerunRef } from "../../../src/schema/words/event.ts";
import type { Json, JsonObject } from "../../../src/schema/words/json.ts";
import { countingEnv } from "../support/given.ts";

/** What a tool comes to, given all that it can depend on. */
export type Tool = (call: { step: string; iteration: number; item: Json; input: JsonObject; vars: JsonObject }) => {
  value: Json;
  fails?: boolean;
  set?: [string, Json][];
};

/** A run: its log, its state, and the calls that were made, `step` or `step[i]`. */
export interface Run {
  log: FlowEvent[];
  state: ExecutionState;
  calls: string[];
  stored: Map<string, Json>;
}

const MOVES_MAX = 20_000;

/** Runs from the first events to the end; one command after the other, in the order of their issue, or as `pick` says. */
export function runOn(
  program: Program,
  first: FlowEvent[],
  tool: Tool,
  stored = new Map<string, Json>(),
  pick: (open: number) => number = () => 0,
  stopAfter = Number.POSITIVE_INFINITY,
): Run {
  const state = emptyState();
  const env: EngineEnv = countingEnv(stored);
  const log: FlowEvent[] = [];
  const calls: string[] = [];
  const settle = (progress: Advance) => {
    continueAdvance(progress, state, program, env);
    for (const { ref, value } of progress.writes) stored.set(ref, value);
    log.push(...progress.events);
  };
  for (const event of first) evolve(state, event);
  settle(advanceOf(first));
  const take = (event: FlowEvent) => {
    assert.equal(accept(state, event), "accepted", JSON.stringify(event));
    evolve(state, event);
    settle(advanceOf([event]));
  };
  for (let moves = 0; !isTerminal(state.status); moves += 1) {
    assert.ok(moves < MOVES_MAX);
    if (moves >= stopAfter) {
      take({ type: "execution.cancelled", at: env.now, reason: "enough" });
      break;
    }
    env.now += 10;
    const open = Object.entries(state.commands);
    assert.ok(open.length > 0, `nothing goes on: active ${state.active}, waiting ${state.waiting}`);
    const [command_id, { step, iterations, attempt }] = open[pick(open.length)] as (typeof open)[number];
    if (attempt === 0) {
      take({ type: "command.claimed", at: env.now, command_id, step, attempt: 1, worker: "w" });
      continue;
    }
    const run = knownStep(state, step)?.run;
    const ref = { at: env.now, command_id, step, attempt, worker: "w" };
    const call = (iteration: number): FlowEvent[] => {
      const item = run?.loop?.items?.[iteration] ?? iteration;
      const { value, fails = false, set } = tool({ step, iteration, item, input: run?.input ?? {}, vars: state.vars });
      calls.push(iterations === null ? step : `${step}[${iteration}]`);
      const index = iterations === null ? {} : { iteration };
      const error = { kind: "unknown", code: "X", message: `${step} failed`, retryable: false } as const;
      const done: FlowEvent = {
        ...{ type: "task.done", ...ref, ...index, task: step, task_run_id: `${command_id}-${iteration}` },
        ...{
          status: fails ? "error" : "ok",
          run: 1,
          final: true,
          result: { value },
          bytes: JSON.stringify(value).length,
        },
        duration_ms: 1,
      };
      const body = { ...ref, tasks: [step], ...(set !== undefined && { set }) };
      if (iterations === null) {
        return [done, fails ? { type: "command.failed", ...body, error } : { type: "command.completed", ...body }];
      }
      if (fails) return [done, { type: "loop.iteration.failed", ...body, iteration, error }];
      return [done, { type: "loop.iteration.completed", ...body, iteration }];
    };
    if (iterations === null) {
      for (const event of call(0)) take(event);
      continue;
    }
    const { from, to } = iterations;
    for (let index = from; index < to && !isTerminal(state.status); index += 1)
      for (const event of call(index)) take(event);
    if (!isTerminal(state.status)) take({ type: "command.completed", ...ref, iterations: to - from });
  }
  assert.deepEqual((JSON.parse(JSON.stringify(log)) as FlowEvent[]).reduce(evolve, emptyState()), state);
  return { log, state, calls, stored };
}

/** A run from the beginning. */
export function runAll(
  program: Program,
  tool: Tool,
  input: JsonObject = {},
  more: { stopAfter?: number; pick?: (open: number) => number } = {},
): Run {
  const first = startExecution({ executionId: "1", catalogId: "2", input }, program, countingEnv());
  return runOn(program, [first], tool, new Map(), more.pick, more.stopAfter);
}

/** A log as a rerun reads it; the ids of its events are their places. */
export function originalOf(log: readonly FlowEvent[]): Original {
  const marks: StepMarks = new Map();
  for (const [index, event] of log.entries()) noteMark(marks, event, index + 1);
  return { state: (JSON.parse(JSON.stringify(log)) as FlowEvent[]).reduce(evolve, emptyState()), marks };
}

export const NO_EDITS: RerunEdits = { variables: {}, input: {}, stepInput: {} };

/** How a rerun of a log would begin. */
export function restored(
  log: readonly FlowEvent[],
  program: Program,
  from: readonly string[] | "failed",
  options: { only?: boolean; edits?: Partial<RerunEdits>; reuseIterations?: boolean } = {},
): { start: RerunStart; first: FlowEvent[] } {
  const { only = false, reuseIterations = true } = options;
  const edits = { ...NO_EDITS, ...options.edits };
  const original = originalOf(log);
  const chosen = chooseSteps(original, program, { from, only });
  const fold = foldPrefix({ state: emptyState(), marks: new Map() }, original, chosen, reuseIterations);
  for (const [index, event] of (JSON.parse(JSON.stringify(log)) as FlowEvent[]).entries()) {
    if (index + 1 > fold.lastEventId && !fold.isOpen()) break;
    fold.next(event, index + 1);
  }
  const start = restoringEvents(fold.end(), original, program, { ...chosen, only }, edits, 5_000_000);
  const { state } = original;
  const rerun: RerunRef = { execution_id: state.executionId, from: chosen.roots, ...(only && { only }) };
  const initialized: FlowEvent = {
    type: "playbook.initialized",
    at: 5_000_000,
    execution_id: String(Number(state.executionId) + 6),
    catalog_id: state.catalogId,
    path: state.path,
    workload: start.workload,
    input: state.input,
    rerun,
  };
  return { start, first: [initialized, ...start.events] };
}
