import type { Progress } from "../../src/cli/progress/progress.ts";
import { createRunModel, type RunModel } from "../../src/cli/progress/run-model.ts";
import { evolve } from "../../src/engine/state/evolve.ts";
import { type ExecutionState, emptyState } from "../../src/engine/state/state.ts";
import type { FlowEvent, ParentRef, ProgressNumbers } from "../../src/schema/words/event.ts";
import type { TaskError } from "../../src/schema/words/outcome.ts";

/** When the runs of these tests begin. */
export const BEGIN = Date.UTC(2026, 0, 31, 12, 0, 0);

/** Executions that are told event by event, as the local runtime tells its observer. */
export interface WatchedRun {
  model: RunModel;
  /** Folds events into an execution and shows them; times are milliseconds after the begin. */
  happen(executionId: string, ...events: FlowEvent[]): void;
}

/** A run without events. `progress`, if given, is called with each. */
export function watchedRun(progress?: (model: RunModel) => Progress): WatchedRun {
  const model = createRunModel();
  const shown = progress?.(model);
  const states = new Map<string, ExecutionState>();
  return {
    model,
    happen(executionId, ...events) {
      const state = states.get(executionId) ?? emptyState();
      states.set(executionId, state);
      for (const event of events) evolve(state, event);
      const execution = model.observe(state, events);
      shown?.observe(execution, events);
    },
  };
}

/** The first event of an execution. */
export function begun(executionId: string, path: string, at: number, parent?: ParentRef): FlowEvent {
  return {
    type: "playbook.initialized",
    at: BEGIN + at,
    execution_id: executionId,
    catalog_id: path,
    path,
    workload: {},
    input: {},
    ...(parent !== undefined && { parent }),
  };
}

/** A step without a loop starts; its command has the step's name. */
export function started(step: string, at: number): FlowEvent {
  return { type: "command.issued", at: BEGIN + at, command_id: step, step, step_run_id: `${step}-${at}` };
}

/** A step ends well. */
export function completed(step: string, at: number, duration_ms = 0): FlowEvent {
  return { type: "step.completed", at: BEGIN + at, step, step_run_id: "", set: [], next: [], duration_ms };
}

/** A step fails. */
export function failed(step: string, at: number, message: string, kind: TaskError["kind"] = "connection"): FlowEvent {
  const error: TaskError = { kind, code: "", message, retryable: false, step };
  return {
    type: "step.failed",
    at: BEGIN + at,
    step,
    step_run_id: "",
    error,
    handled: "no",
    set: [],
    next: [],
    duration_ms: 0,
  };
}

/** A step is not run. */
export function skipped(step: string, at: number, reason: "when" | "overridden" = "when"): FlowEvent {
  return { type: "step.skipped", at: BEGIN + at, step, reason, set: [], next: [] };
}

/** A loop over a number starts. */
export function loopStarted(step: string, at: number, count: number): FlowEvent {
  const step_run_id = `${step}-${at}`;
  return { type: "loop.started", at: BEGIN + at, step, step_run_id, count, max_in_flight: 10 };
}

/** Iterations are handed out as one command, named after the step. */
export function iterationsIssued(step: string, at: number, loopAt: number, count: number): FlowEvent {
  const iterations = { from: 0, to: count };
  return {
    type: "command.issued",
    at: BEGIN + at,
    command_id: step,
    step,
    step_run_id: `${step}-${loopAt}`,
    iterations,
  };
}

/** One iteration ends, with an error when there is a message. */
export function iterated(step: string, at: number, iteration: number, message?: string): FlowEvent {
  const body = { at: BEGIN + at, command_id: step, attempt: 0, step, iteration, tasks: [] };
  if (message === undefined) return { type: "loop.iteration.completed", ...body };
  const error: TaskError = { kind: "connection", code: "", message, retryable: true };
  return { type: "loop.iteration.failed", ...body, error };
}

/** A task tells how far it is. */
export function progressed(step: string, at: number, numbers: ProgressNumbers, iteration?: number): FlowEvent {
  const ref = { command_id: step, attempt: 0, step, ...(iteration !== undefined && { iteration }) };
  return { type: "task.progress", at: BEGIN + at, ...ref, task: "copy", task_run_id: "", run: 1, progress: numbers };
}

/** A task has failed and is about to run again. */
export function retried(step: string, at: number, run: number, message: string): FlowEvent {
  const error: TaskError = { kind: "connection", code: "", message, retryable: true };
  const ref = { command_id: step, attempt: 0, step };
  return {
    ...{ type: "task.done", at: BEGIN + at, ...ref, task: "get", task_run_id: "", status: "error" },
    ...{ run, final: false, error, duration_ms: 5 },
  };
}

/** The whole run ends well. */
export function ended(at: number): FlowEvent {
  return { type: "playbook.completed", at: BEGIN + at };
}
