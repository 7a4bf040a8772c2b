import assert from "node:assert/strict";
import type { Program } from "../../../src/engine/program/program.ts";
import type { ExecutionState, OpenCommand } from "../../../src/engine/state/state.ts";
import type { Write } from "../../../src/schema/words/command.ts";
import type { CommandRef, FlowEvent, Overridden, OverrideAction } from "../../../src/schema/words/event.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import type { TaskError } from "../../../src/schema/words/outcome.ts";

/** What a report is made from. */
export interface Reported {
  state: ExecutionState;
  program: Program;
  now: number;
}

/** Something that a worker or a caller tells the engine: the events, made when it is the report's turn. */
export type Report = (run: Reported) => FlowEvent[];

/** What may be said besides. */
export interface ReportOptions {
  /** Which iteration; default the first that is open. */
  iteration?: number;
  set?: Write[];
  /** Results of the tasks of a pipeline; default: the value, under the step's first label. */
  tasks?: [label: string, value: Json][];
}

/** A worker claims the oldest open command of a step (or the one of `iteration`) and completes it. */
export function done(step: string, value: Json = { status: "ok" }, options: ReportOptions = {}): Report {
  return (run) => ended(run, step, value, null, options);
}

/** The same, and the work failed. */
export function failed(step: string, error: Partial<TaskError> | string = "boom", options: ReportOptions = {}): Report {
  const partial = typeof error === "string" ? { message: error } : error;
  const full: TaskError = { kind: "unknown", code: "BOOM", message: "boom", retryable: false, ...partial };
  return (run) => ended(run, step, { status: "error" }, full, options);
}

/** A worker claims the oldest open command of a step; `attempt` defaults to one more than before. */
export function claimed(step: string, attempt?: number, iteration?: number): Report {
  return ({ state, now }) => {
    const [command_id, command] = openCommandOf(state, step, iteration);
    return [
      { type: "command.claimed", at: now, command_id, step, attempt: attempt ?? command.attempt + 1, worker: "w" },
    ];
  };
}

/** The claim of a cursor loop gave these rows. */
export function rows(step: string, list: Json[]): Report {
  return ({ state, now }) => {
    const { ref, claim } = claimOf(state, step, undefined, now);
    return [...claim, { type: "command.completed", at: now, ...ref, rows: list }];
  };
}

/** Events as they are, for reports that no proper worker makes. */
export function raw(...events: FlowEvent[]): Report {
  return () => events;
}

/** A person cancels the execution. */
export function cancelled(reason = "asked to"): Report {
  return ({ now }) => [{ type: "execution.cancelled", at: now, reason }];
}

/** A person pauses the execution, or resumes it. */
export function paused(reason?: string): Report {
  return ({ now }) => [{ type: "execution.paused", at: now, ...(reason !== undefined && { reason }) }];
}

/** A person ends a step, or an iteration of its loop. */
export function overridden(
  step: string,
  action: OverrideAction,
  { iteration, ...end }: Pick<Overridden, "result" | "error"> & { iteration?: number | undefined } = {},
): Report {
  const place = iteration === undefined ? { step } : { step, iteration };
  return ({ now }) => [{ type: "step.overridden", at: now, ...place, action, reason: "stuck", ...end }];
}

export function resumed(): Report {
  return ({ now }) => [{ type: "execution.resumed", at: now }];
}

/** The run's own time is over: told from outside, since the engine has no clock. */
export function timedOut(): Report {
  const error: TaskError = { kind: "timeout", code: "TIMEOUT", message: "the run took too long", retryable: false };
  return ({ now }) => [{ type: "workflow.failed", at: now, error }];
}

function ended(
  { state, program, now }: Reported,
  step: string,
  value: Json,
  error: TaskError | null,
  { iteration, set, tasks }: ReportOptions,
): FlowEvent[] {
  const { ref, command, claim } = claimOf(state, step, iteration, now);
  const label = program.steps.get(step)?.tasks[0]?.task.label ?? step;
  const results = tasks ?? [[label, value]];
  const place = command.iterations === null ? {} : { iteration: iteration ?? command.iterations.endedBelow };
  const body = {
    tasks: results.map(([name]) => name),
    ...(results.length > 1 && { pipeline: true as const }),
    ...(set !== undefined && { set }),
  };
  const dones = results.map(
    ([task, result]): FlowEvent => ({
      type: "task.done",
      at: now,
      ...ref,
      ...place,
      task,
      task_run_id: `${ref.command_id}-${place.iteration ?? 0}-${task}`,
      status: error === null ? "ok" : "error",
      run: 1,
      final: true,
      result: { value: result },
      bytes: JSON.stringify(result).length,
      duration_ms: 1,
    }),
  );
  const work = [...claim, ...dones];
  if (place.iteration === undefined) {
    if (error === null) return [...work, { type: "command.completed", at: now, ...ref, ...body }];
    return [...work, { type: "command.failed", at: now, ...ref, ...body, error }];
  }
  const end = { at: now, ...ref, iteration: place.iteration, ...body };
  work.push(
    error === null ? { type: "loop.iteration.completed", ...end } : { type: "loop.iteration.failed", ...end, error },
  );
  return isLast(command)
    ? [...work, { type: "command.completed", at: now, ...ref, iterations: countOf(command) }]
    : work;
}

function isLast(command: OpenCommand): boolean {
  if (command.iterations === null) return true;
  const { to, endedBelow, endedAbove } = command.iterations;
  return to - endedBelow - endedAbove.length === 1;
}

function countOf({ iterations }: OpenCommand): number {
  return iterations === null ? 0 : iterations.to - iterations.from;
}

/** The open command, and the event that claims it if it is unclaimed. */
function claimOf(state: ExecutionState, step: string, iteration: number | undefined, now: number) {
  const [command_id, command] = openCommandOf(state, step, iteration);
  const ref: CommandRef = { command_id, step, attempt: Math.max(1, command.attempt), worker: "w" };
  const claim: FlowEvent[] = command.attempt > 0 ? [] : [{ type: "command.claimed", at: now, ...ref }];
  return { ref, command, claim };
}

/** The oldest open command of a step, or the one that runs the iteration. */
export function openCommandOf(state: ExecutionState, step: string, iteration?: number): [string, OpenCommand] {
  const found = Object.entries(state.commands).find(
    ([, { step: name, iterations }]) =>
      name === step &&
      (iteration === undefined || (iterations !== null && iterations.from <= iteration && iteration < iterations.to)),
  );
  const open = Object.values(state.commands).map(({ step: name }) => name);
  assert.ok(
    found,
    `Step '${step}' has no open command${iteration === undefined ? "" : ` for iteration ${iteration}`}; open: ${open}`,
  );
  return found;
}
