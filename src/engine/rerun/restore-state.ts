import { FlowError } from "../../schema/words/errors.ts";
import type { FlowEvent, KeptLoop, KeptStep, RestoredStep, ReusedFrom } from "../../schema/words/event.ts";
import { type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import type { Program } from "../program/program.ts";
import { evolve } from "../state/evolve.ts";
import { type ExecutionState, knownStep, type StepState } from "../state/state.ts";
import { type ChosenSteps, type Original, withWaiting } from "./choose-steps.ts";
import { noteMark, type StepMarks } from "./step-marks.ts";

/** What a rerun changes. */
export interface RerunEdits {
  variables: JsonObject;
  /** Replaces keys of the workload, and of the input with which the first step starts. */
  input: JsonObject;
  stepInput: Record<string, JsonObject>;
}

/** Folds the log of an original without what runs again. */
export interface PrefixFold {
  /** Folds an event, or leaves it out. */
  next(event: FlowEvent, eventId: number): void;
  /** Nothing after this event matters, unless a step is still open. */
  readonly lastEventId: number;
  /** A step that is to run again is in a turn of it that stays: that goes on to its end. */
  isOpen(): boolean;
  /** The state in which the rerun begins, with the steps that run again as they were before that, and where that stands in the log. */
  end(): { state: ExecutionState; marks: StepMarks; loops: ReadonlyMap<string, KeptLoop> };
}

/**
 * Folds an original up to where a rerun goes on: its events as they are in the log, without those of the steps that run again from where
 * `chosen` leaves them out. So branches beside them keep what they did, also where they ended later, and the steps that run again stand
 * with the tokens, and the variables, with which they had begun.
 *
 * `state` and `marks` are those of the log before the first event that is given, an event before the first that is left out; they are changed
 * in place.
 */
export function foldPrefix(
  { state, marks: known }: { state: ExecutionState; marks: StepMarks | null },
  original: Original,
  { roots, again }: ChosenSteps,
  keepLoops: boolean,
): PrefixFold {
  const marks: StepMarks = known ?? new Map();
  const out = new Set<string>();
  const loops = new Map<string, KeptLoop>();
  const wanted = keepLoops ? failedLoops(original, roots, again) : new Map<string, StepState>();
  const lastEventId = lastNeeded(original.marks, again, [...wanted.keys()]);
  return {
    lastEventId,
    next(event, eventId) {
      if (!("step" in event)) {
        if (event.type === "playbook.initialized" || event.type === "workflow.restored") evolve(state, event);
        return;
      }
      if (event.type === "workflow.initialized") {
        evolve(state, event);
        return;
      }
      const { step } = event;
      const from = again.get(step);
      if (!out.has(step) && from !== undefined && eventId >= from && knownStep(state, step)?.run == null) out.add(step);
      if (!out.has(step)) {
        evolve(state, event);
        noteMark(marks, event, eventId);
        return;
      }
      const failed = wanted.get(step)?.result?.loop;
      if (event.type !== "loop.started" || failed === undefined || event.max_rows !== undefined) return;
      if (event.step_run_id !== original.marks.get(step)?.run) return;
      const { items = null, count = 0 } = event;
      const { tail, parts, stats } = failed;
      loops.set(step, { items, total: items?.length ?? count, failed: stats.failed, tail, parts });
    },
    isOpen: () => [...again.keys()].some((name) => !out.has(name) && knownStep(state, name)?.run != null),
    end: () => ({ state, marks, loops }),
  };
}

/** Loops that failed, and that begin with what they had: nothing before them runs again. */
function failedLoops(
  { state, marks }: Original,
  roots: readonly string[],
  again: ReadonlyMap<string, number>,
): Map<string, StepState> {
  const found = new Map<string, StepState>();
  for (const name of roots) {
    const step = knownStep(state, name);
    const isFirst = again.get(name) === marks.get(name)?.begun;
    if (isFirst && step?.status === "FAILED" && step.result?.loop !== undefined) found.set(name, step);
  }
  return found;
}

/** The last event that is not left out, as far as it matters: the end of a step that stays, the items of a loop. */
function lastNeeded(marks: StepMarks, again: ReadonlyMap<string, number>, loops: readonly string[]): number {
  let last = 0;
  for (const from of again.values()) if (from !== Number.MAX_SAFE_INTEGER) last = Math.max(last, from);
  for (const [name, { ended, begun }] of marks) if (!again.has(name)) last = Math.max(last, ended ?? begun);
  for (const name of loops) last = Math.max(last, marks.get(name)?.begun ?? 0);
  return last;
}

/** How a rerun begins. */
export interface RerunStart {
  /** Copies of ends, then what stands between the steps. */
  events: FlowEvent[];
  /** Steps that are reused, in the order of their copies. */
  reused: string[];
  /** Steps that have all they need to start. */
  waiting: string[];
  /** Whether a step may run. */
  mayRun(step: string): boolean;
  workload: JsonObject;
}

/**
 * The first events of a rerun, after `playbook.initialized`: the ends of the steps that are reused, each a copy that names its original, and
 * what stands between the steps, with the edits. As many as there are steps, however long the original's log is.
 *
 * Throws `FlowError` INVALID_INPUT for a step that was never reached, for a step that the program does not have as it was, for the input
 * of a step that is not run.
 */
export function restoringEvents(
  { state, marks, loops }: ReturnType<PrefixFold["end"]>,
  original: Original,
  program: Program,
  { roots, led, again: chosen, only }: ChosenSteps & { only: boolean },
  edits: RerunEdits,
  at: number,
): RerunStart {
  const mayRun = (name: string) => (only ? roots.includes(name) : true);
  const waiting = state.waiting.filter(mayRun);
  const again = only ? chosen : withWaiting(original, program, chosen, waiting);
  const entries = Object.entries(state.steps).map(([name]) => ({ name, step: knownStep(state, name) as StepState }));
  const ended = entries.filter(({ name, step }) => !again.has(name) && isEnded(step));
  checkReached(state, program, { roots, led });
  const missing = [...ended.map(({ name }) => name), ...waiting].filter((name) => !program.steps.has(name));
  if (missing.length > 0) throw unmatched(program, missing);
  for (const name of Object.keys(edits.stepInput)) {
    if (again.has(name) && mayRun(name)) continue;
    const message = `step_input names step '${name}', which does not run again`;
    throw new FlowError("INVALID_INPUT", message, { detail: { step: name } });
  }
  const copies = ended
    .map(({ name, step }) => ({ name, step, from: reusedFrom(state, marks, name) }))
    .sort((left, right) => left.from.event_id - right.from.event_id);
  const steps: Record<string, RestoredStep> = {};
  const names = new Set([...again.keys(), ...waiting, ...Object.keys(edits.stepInput)]);
  for (const name of names) {
    if (!program.steps.has(name) || !mayRun(name)) continue;
    const from = reusedFrom(state, marks, name);
    const restored = restoredStep(
      state,
      name,
      { loop: loops.get(name), isWaiting: waiting.includes(name), from },
      edits,
    );
    if (Object.keys(restored).length > 0) setOwn(steps, name, restored);
  }
  const vars: JsonObject = { ...state.vars };
  for (const key of Object.keys(edits.variables)) setOwn(vars, key, own(edits.variables, key));
  const restoring: FlowEvent = {
    type: "workflow.restored",
    at,
    vars,
    steps,
    waiting,
    taken: state.arcs,
    started: state.started,
    ...(state.lastCompleted !== null && { last_completed: state.lastCompleted }),
    // Of some steps alone it is not said that all is well, nor that all is not.
    ...(state.failureAtEnd !== null && !only && { failure_at_end: state.failureAtEnd }),
  };
  return {
    events: [...copies.map(({ name, step, from }) => copyOf(name, step, from, at)), restoring],
    reused: copies.map(({ name }) => name),
    waiting,
    mayRun: (name) => again.has(name) && mayRun(name),
    workload: editedWorkload(original.state, edits.input),
  };
}

/**
 * The first events of a rerun with what it was given in these words instead of those that it was planned with: what is to be sealed of it
 * is sealed by now.
 */
export function withGiven(
  events: readonly FlowEvent[],
  { input, stepInput }: Pick<RerunEdits, "input" | "stepInput">,
): FlowEvent[] {
  const given = ({ token, ...step }: RestoredStep, name: string): RestoredStep => ({
    ...step,
    ...(token !== undefined && {
      token: token.from === null ? { ...token, input: { ...token.input, ...input } } : token,
    }),
    ...(step.given !== undefined && { given: own(stepInput, name) as JsonObject }),
  });
  return events.map((event) => {
    if (event.type !== "workflow.restored") return event;
    const steps: Record<string, RestoredStep> = {};
    for (const name of Object.keys(event.steps))
      setOwn(steps, name, given(own(event.steps, name) as RestoredStep, name));
    return { ...event, steps };
  });
}

/** The workload of the original with the input's keys over it. */
function editedWorkload({ workload }: ExecutionState, input: JsonObject): JsonObject {
  const edited: JsonObject = { ...workload };
  for (const key of Object.keys(input)) setOwn(edited, key, own(input, key));
  return edited;
}

function isEnded({ status, run }: StepState): boolean {
  return run === null && (status === "COMPLETED" || status === "FAILED" || status === "SKIPPED");
}

/** Throws for a step that was asked for and has nothing to start with: nothing had led to it. */
function checkReached(
  state: ExecutionState,
  program: Program,
  { roots, led }: Pick<ChosenSteps, "roots" | "led">,
): void {
  const final = program.playbook.executor.finalStep;
  const unreached = roots.filter((name) => name !== final && !led.has(name) && knownStep(state, name)?.token == null);
  if (unreached.length === 0) return;
  const names = unreached.map((name) => `'${name}'`).join(", ");
  const message = `Execution ${state.executionId} never reached ${names}: what they would start with is not known`;
  throw new FlowError("INVALID_INPUT", `${message}. Name a step that leads there`, {
    detail: { unreached_steps: unreached },
  });
}

function unmatched({ playbook }: Program, steps: readonly string[]): FlowError {
  const names = steps.map((name) => `'${name}'`).join(", ");
  const message = `This version of '${playbook.path}' has no step ${names}, whose results would be reused`;
  return new FlowError("INVALID_INPUT", `${message}. Rerun it from 'start', or with the version of the original`, {
    detail: { unmatched_steps: [...steps] },
  });
}

function restoredStep(
  state: ExecutionState,
  name: string,
  { loop, isWaiting, from }: { loop: KeptLoop | undefined; isWaiting: boolean; from: ReusedFrom },
  { stepInput, input }: RerunEdits,
): RestoredStep {
  const step = knownStep(state, name);
  const restored: RestoredStep = {};
  if (step !== undefined && isEnded(step) && step.status !== "PENDING" && step.status !== "RUNNING") {
    restored.kept = { ...keptOf(step), status: step.status, reused_from: from };
  }
  if (isWaiting && step?.token != null) {
    const { token } = step;
    // The first step starts with the request's input.
    restored.token = token.from === null ? { ...token, input: { ...token.input, ...input } } : token;
  }
  const given = own(stepInput, name) as JsonObject | undefined;
  if (given !== undefined) restored.given = given;
  if (loop !== undefined) restored.loop = loop;
  return restored;
}

function keptOf({ order, runs, attempts, startedAt, endedAt, result, error, loop }: StepState): KeptStep {
  return { order, runs, attempts, started_at: startedAt, ended_at: endedAt, result, error, loop };
}

/** Where a step ran: in this original, or in an earlier one that it was taken over from. */
function reusedFrom(state: ExecutionState, marks: StepMarks, name: string): ReusedFrom {
  const step = knownStep(state, name);
  if (step?.reusedFrom !== undefined) return step.reusedFrom;
  const created_at = new Date(step?.endedAt ?? state.startedAt).toISOString();
  return { execution_id: state.executionId, event_id: marks.get(name)?.ended ?? 0, created_at };
}

function copyOf(name: string, step: StepState, from: ReusedFrom, at: number): FlowEvent {
  const copied = { at, step: name, set: [], next: [], reused_from: from, kept: keptOf(step) };
  const duration_ms = Math.max(0, (step.endedAt ?? 0) - (step.startedAt ?? 0));
  if (step.status === "SKIPPED")
    return { type: "step.skipped", ...copied, reason: step.runs > 0 ? "when" : "unreached" };
  if (step.status === "COMPLETED") return { type: "step.completed", ...copied, step_run_id: "", duration_ms };
  const error = step.error ?? { kind: "unknown", code: "UNKNOWN", message: "", retryable: false };
  return { type: "step.failed", ...copied, step_run_id: "", duration_ms, error, handled: "yes" };
}
