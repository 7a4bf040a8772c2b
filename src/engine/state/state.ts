import type { OpenApproval } from "../../schema/words/approval.ts";
import type { ParkedWork, Signal, TraceRef, Woken } from "../../schema/words/command.ts";
import type { KeptLoop, Overridden, ParentRef, ReusedFrom, Steered, TaskResult } from "../../schema/words/event.ts";
import { type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import type { Accumulate } from "../../schema/words/manifest.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { LoopPart, StoredResult } from "../../schema/words/result.ts";

/*
 * The state of an execution after its events: the fold of the log, and nothing else. Plain data that survives JSON. Only
 * `engine/state/evolve.ts` changes it, in place, because a copy for each event would make the cost of a step grow with the
 * number of steps before it.
 */

/** `PENDING → RUNNING ⇄ PAUSED → COMPLETED | FAILED | CANCELLED`. */
export type ExecutionStatus = "PENDING" | "RUNNING" | "PAUSED" | "COMPLETED" | "FAILED" | "CANCELLED";
/**
 * `PENDING → RUNNING → COMPLETED | FAILED`, or SKIPPED; a loop-back arc starts it again. When the execution is cancelled, a
 * step that runs is FAILED with an error of kind `cancelled`, and one whose work has not begun is SKIPPED.
 */
export type StepStatus = "PENDING" | "RUNNING" | "COMPLETED" | "FAILED" | "SKIPPED";

/** State of one execution. */
export interface ExecutionState {
  executionId: string;
  catalogId: string;
  path: string;
  status: ExecutionStatus;
  startedAt: number;
  endedAt: number | null;
  /** Since when it is PAUSED, by whom and why; absent unless it is. */
  paused?: { at: number; cascade?: true } & Steered;
  parent: ParentRef | null;
  /** The execution that it repeats; absent: it is no rerun. */
  rerunOf?: string;
  /** A rerun of these steps alone: their arcs lead to no other. */
  only?: string[];
  /** Whose key seals its secrets; absent: that of the root of its tree. */
  sealedUnder?: string;
  /** The last step to run (`--target`). */
  target: string | null;
  /** The trace that it belongs to; absent for most. */
  trace?: TraceRef;
  workload: JsonObject;
  /** The request's inputs. */
  input: JsonObject;
  /** Variables set by `ctx`. */
  vars: JsonObject;
  /** Steps that got a token or were skipped, by name; any other step is PENDING. */
  steps: Record<string, StepState>;
  /** Number of steps started so far, repeats not counted: the last {@link StepState.order} assigned. */
  started: number;
  /** Names of the steps that run, in the order they were started. */
  active: string[];
  /** Names of the steps that have a token and wait. */
  waiting: string[];
  /** How often each arc was taken, by its source step and its target step. */
  arcs: Record<string, Record<string, number>>;
  /** Commands without a terminal event, by id. */
  commands: Record<string, OpenCommand>;
  /** Set by an unhandled failure: nothing new starts, running steps are drained. */
  failure: TaskError | null;
  /** The error of a failed loop that no arc handled by name: later steps run, but the execution ends FAILED. */
  failureAtEnd: TaskError | null;
  /** The step that completed last; its result is the execution's unless `end` or the final step ran. */
  lastCompleted: string | null;
  resultStep: string | null;
  error: TaskError | null;
  /** What it was sent; absent: nothing. */
  signals?: Signals;
  /** `workflow.completed` or `workflow.failed` is written: the end follows, and nothing else. */
  ending?: true;
}

/** What an execution was sent, in the order in which it came. */
export interface Signals {
  /** Those that no wait has used up. */
  kept: KeptSignal[];
  /** Size of their data as JSON. */
  bytes: number;
  /** The senders' ids of the last {@link SIGNAL_IDS_MAX}. */
  ids: string[];
}

/** A signal that no wait has used up; `at` is when it came, milliseconds since 1970. */
export interface KeptSignal extends Signal {
  signalId: string;
  at: number;
  /** Of one that was sent to everyone: so many of those that waited for it then have not gone on with it yet. It is for no later wait. */
  wakes?: number;
}

/** Ids of signals by which an execution knows one that is sent again. */
export const SIGNAL_IDS_MAX = 10_000;

/** State of one step. */
export interface StepState {
  status: StepStatus;
  /** Place in the order of first starts, from 1; 0 for a step that never ran. */
  order: number;
  /** How often it was started. */
  runs: number;
  /** Claims of its commands in its last run: more than one means a worker was lost. */
  attempts: number;
  startedAt: number | null;
  endedAt: number | null;
  /** The request to run, until the step starts. */
  token: Token | null;
  run: StepRun | null;
  result: StoredResult | null;
  error: TaskError | null;
  /** Counters of its last loop. */
  loop: LoopCounters | null;
  /** How it is to end when it is reached: a person has said so before it began. */
  override?: Override;
  /** Who has ended it by hand and why, for people: in its last run, or for the one to come. */
  overridden?: ByHand;
  /** The same of single iterations of its loop, the newest {@link ITERATIONS_BY_HAND_MAX}, in the order in which they were ended. */
  iterationsByHand?: (ByHand & { iteration: number })[];
  /** Where it ran, if not in this execution. */
  reusedFrom?: ReusedFrom;
  /** Replaces its input, by key, when it starts. */
  given?: JsonObject;
  /** What its loop takes over from an earlier run, until that is looked through. */
  kept?: KeptLoop;
}

/** Of how many iterations that people ended the state has who and why. The log has all. */
export const ITERATIONS_BY_HAND_MAX = 100;

/** Who has ended something by hand, when, how and why. */
export type ByHand = Pick<Override, "at" | "action" | "by" | "reason">;

/** What is known of ends by hand is that of an earlier run. */
export function forgetByHand(step: StepState): void {
  delete step.overridden;
  delete step.iterationsByHand;
}

/** The end that a person has given to a step, and when. */
export type Override = { at: number } & Overridden;

/** Counters of a loop, as shown to people. `total` is null while it is unknown, for a cursor. */
export interface LoopCounters {
  total: number | null;
  done: number;
  failed: number;
}

/** A step's token: one or several arcs have fired into it. */
export interface Token {
  input: JsonObject;
  /** The step that led here last. */
  from: string | null;
  /** Came over a back arc: does not wait for other steps. */
  back: boolean;
}

/** A running step. */
export interface StepRun {
  stepRunId: string;
  input: JsonObject;
  from: string | null;
  /** Keys of `input` that were given for a rerun: the step's own `input` does not replace them. */
  given?: string[];
  loop: LoopState | null;
  /** How the only command of a step without a loop ended; null while it runs. */
  ended: { error: TaskError | null } | null;
  /** A person has ended it: its commands are cancelled, and nothing more of it is issued. */
  override?: Override;
}

/** A running loop. It keeps counters and a window, never its history: results beyond the inline limit are in `parts`. */
export interface LoopState {
  /** The items; null when the collection is a number, and for a cursor, whose rows are in its frames. */
  items: Json[] | null;
  total: number | null;
  /** Iterations at a time; for a cursor, those of one frame. */
  maxInFlight: number;
  /** Next iteration to issue; for a cursor, the number issued. */
  next: number;
  /** Iterations issued and not ended. */
  open: number;
  /** Commands issued and not ended: the last report of an iteration comes before that of its command. */
  commands: number;
  success: number;
  failed: number;
  firstError: TaskError | null;
  /** Iterations that a worker left out of a command which it completed. */
  unrun: number;
  /** Iterations that a person skipped. */
  skipped?: number;
  /** Iterations of a collection that a person ended before they were issued, in ascending order, all above `next`. */
  endedAhead?: number[];
  tail: [number, StoredResult][];
  tailBytes: number;
  parts: LoopPart[];
  /** Iterations whose results were taken over, in order, each range without its end: they are not issued. */
  reused?: [from: number, to: number][];
  /** Stored parts of the run before in which there may be results to take over. */
  unchecked?: LoopPart[];
  /** Reference of the manifest of the parts, after it is written. */
  manifest?: string;
  /** How the results are combined; absent: as a list. */
  accumulate?: Accumulate;
  cursor: CursorState | null;
  /** `loop.done` was written. */
  done: boolean;
}

/** The additional state of a loop over claimed rows: its frames, each the rows of one claim. */
export interface CursorState {
  /** Most rows of a claim. */
  maxRows: number;
  /** Most frames at a time, including those that are being claimed. */
  maxFrames: number;
  /** Longest duration of a frame from the moment its rows were known, in milliseconds; null: no limit. */
  frameMs: number | null;
  /** Claims under way. */
  claims: number;
  /** Rows claimed so far: the index of the next one. */
  rows: number;
  /** Frames that have not ended, in the order of their rows. */
  frames: Frame[];
  /** A claim returned no rows or failed: there will be no further claims. */
  exhausted: boolean;
  /** Error of the first claim that failed. */
  error: TaskError | null;
}

/** The rows of one claim; they leave the state when all of them have ended. */
export interface Frame {
  /** Index of its first row among all. */
  from: number;
  items: Json[];
  /** Next row to issue, an index among all. */
  next: number;
  /** Rows issued and not ended. */
  open: number;
  /** When its rows were known, milliseconds since 1970. */
  at: number;
}

/** A command that has no terminal event yet. */
export interface OpenCommand {
  step: string;
  /** 0 until the first claim. */
  attempt: number;
  worker: string | null;
  /** When it was issued. */
  issuedAt: number;
  startedAt: number | null;
  /** The current claim has reported `command.started`. */
  running?: true;
  /** The workers that lost earlier claims, one entry for each lost claim. A claim that was given back is not among them. */
  lostBy?: string[];
  /**
   * Iterations of a loop command; null outside loops. Those below `endedBelow` and those in `endedAbove` have ended: a
   * second report of one changes nothing.
   */
  iterations: {
    from: number;
    to: number;
    endedBelow: number;
    endedAbove: number[];
    /** Those that a person has ended, in ascending order. */
    overridden?: number[];
  } | null;
  claim: boolean;
  /** Results of finished tasks by iteration (0 outside loops) and label, until the step or iteration ends. */
  values: Record<number, TaskResult[]>;
  /** Tasks that will run again, by iteration (0 outside loops). */
  retries?: Record<number, Retry>;
  /** What it waits for, and since when: no worker holds it. */
  parked?: Parked;
  /** What it waited for last has come. */
  woken?: Woken;
  /** How often it was parked. */
  parks?: number;
  /** Its last claim ended when it was parked: reports of that claim change nothing. */
  released?: true;
}

/** What a command waits for; `since`: milliseconds since 1970. */
export interface Parked extends ParkedWork {
  since: number;
  /** Of a wait for people, once it is open. */
  approval?: OpenApproval;
}

/** The next run of a task. */
export interface Retry {
  task: string;
  /** The run that has ended, from 1. */
  run: number;
  /** When the next one begins, RFC 3339, by the worker's clock. */
  at: string;
  /** The reason; null if its policy requests another run after a success. */
  error: { code: string; message: string } | null;
}

/** True if no event can change this state anymore. */
export function isTerminal(status: ExecutionStatus): boolean {
  return status === "COMPLETED" || status === "FAILED" || status === "CANCELLED";
}

/** The state before the first event. */
export function emptyState(): ExecutionState {
  return {
    executionId: "",
    catalogId: "",
    path: "",
    status: "PENDING",
    startedAt: 0,
    endedAt: null,
    parent: null,
    target: null,
    workload: {},
    input: {},
    vars: {},
    steps: {},
    started: 0,
    active: [],
    waiting: [],
    arcs: {},
    commands: {},
    failure: null,
    failureAtEnd: null,
    lastCompleted: null,
    resultStep: null,
    error: null,
  };
}

/** The step's state; created as PENDING if it had none. */
export function stepState(state: ExecutionState, name: string): StepState {
  const known = knownStep(state, name);
  if (known !== undefined) return known;
  const fresh: StepState = {
    status: "PENDING",
    order: 0,
    runs: 0,
    attempts: 0,
    startedAt: null,
    endedAt: null,
    token: null,
    run: null,
    result: null,
    error: null,
    loop: null,
  };
  setOwn(state.steps, name, fresh);
  return fresh;
}

/** The step's state, or undefined when nothing has happened to it. */
export function knownStep(state: ExecutionState, name: string): StepState | undefined {
  return own(state.steps, name) as StepState | undefined;
}

/** The command, or undefined when it is unknown or has ended. */
export function openCommand(state: ExecutionState, id: string): OpenCommand | undefined {
  return own(state.commands, id) as OpenCommand | undefined;
}

/** Takes one name out of a list, in place. */
export function removeName(names: string[], name: string): void {
  const index = names.indexOf(name);
  if (index >= 0) names.splice(index, 1);
}

/**
 * Progress of an execution in percent: the share of its steps that have ended. A running loop counts with the share of its
 * iterations that have ended (with 0 while a cursor does not know their number). 100 only for a completed execution; for one
 * that ended otherwise it is the progress reached.
 */
export function progressOf(state: ExecutionState, stepsTotal: number): number {
  if (state.status === "COMPLETED") return 100;
  let done = 0;
  for (const name of Object.keys(state.steps)) {
    const step = state.steps[name];
    if (step === undefined) continue;
    if (step.status === "COMPLETED" || step.status === "SKIPPED" || step.status === "FAILED") done += 1;
    else if (step.run !== null && step.loop?.total) done += Math.min(1, step.loop.done / step.loop.total);
  }
  return Math.min(99, Math.floor((100 * done) / stepsTotal));
}
