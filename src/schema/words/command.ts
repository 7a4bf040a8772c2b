import type { ApprovalRequest, OpenApproval } from "./approval.ts";
import type { Json, JsonObject } from "./json.ts";
import type { TaskError } from "./outcome.ts";
import type { ResultAbout, StoredResult } from "./result.ts";

/** One piece of work for a worker: a step, some iterations of its loop, or a cursor's claim. */
export interface Command {
  command_id: string;
  execution_id: string;
  catalog_id: string;
  step: string;
  step_run_id: string;
  /** When the step began, milliseconds since 1970: its time-out counts from there, whichever iteration this is. */
  step_started_at: number;
  /** Present in loops. */
  loop?: CommandLoop;
  /** Present on a cursor's claim: the most rows to take. */
  claim?: { max_rows: number };
  /** Present where it was parked: it goes on with the task that waited. */
  woken?: Woken;
  /** Whose code it runs and in whose name, as its claim says; absent where one person runs everything. */
  trust_domain?: string;
  /** `traceparent` of the trace that it belongs to. */
  trace?: string;
  context: CommandContext;
}

/** The iterations of a command. */
export interface CommandLoop {
  /** First iteration, 0-based. */
  from: number;
  /** The items of iterations `from`, `from + 1`, … */
  items: Json[];
  /** How many the whole loop has; undefined while a cursor may claim more. */
  total?: number;
  /** How many of this command's iterations may run at a time. */
  max_in_flight: number;
  /** They are short and begin side by side, as those of commands of their own would. What that takes: `rules/iteration-slots`. */
  at_once?: true;
  /** Iterations that ended under an earlier claim of the command: all below `below`, and those of `above`. */
  ended?: { below: number; above: number[] };
  /** Start no further iteration after one has failed. */
  stop_on_error: boolean;
  /** When the frame that these rows are of must have ended, milliseconds since 1970. */
  frame_ends_at?: number;
}

/**
 * What the templates of a step may read: only what they name, so that a command stays small however much the execution
 * has gathered.
 */
export interface CommandContext {
  workload: JsonObject;
  /** Execution variables. */
  vars: JsonObject;
  /** Results of earlier steps, by step name. */
  steps: Record<string, StoredResult>;
  /** What arrived over the arc; the request's inputs at the first step. */
  input: JsonObject;
  /** Keys of `input` that were given for a rerun: the step's own `input` does not replace them. */
  given?: string[];
  /** Step whose arc led here; its result is `result`. */
  from?: string;
  parent_execution_id?: string;
  /** The execution at the top of the tree, where the parent is not it. */
  root_execution_id?: string;
  /** Iteration names of the parent that called this execution. */
  parent_iter?: JsonObject;
  /** Present where templates read the keychain: whose entries they may be, and since when the execution runs. */
  keychain?: { root_execution_id: string; root_catalog_id: string; execution_started_at: number };
}

/** One write of an execution variable: `[name, value]`. */
export type Write = [name: string, value: Json];

/** An execution's place in a distributed trace, in the formats of W3C Trace Context. */
export interface TraceRef {
  /** `traceparent` under which the execution's commands run. */
  context: string;
  /** Span id of the caller; present if the execution has a separate span, whose parent it is. */
  parent?: string;
}

/** What a parked command waits for. */
export type Wait = TimerWait | SignalWait | ApprovalWait | RetryWait;

/** It waits for a time alone: `due`, RFC 3339. */
export interface TimerWait extends WaitLimit {
  kind: "timer";
  due: string;
}

/** It waits for a signal of this name and key. */
export interface SignalWait extends WaitLimit {
  kind: "signal";
  name: string;
  /** Absent: for signals without a key. */
  key?: string;
}

/** It waits for people. */
export type ApprovalWait = ApprovalRequest & WaitLimit;

/** It waits for the next run of a task that has failed: `due`, RFC 3339. */
interface RetryWait {
  kind: "retry";
  due: string;
  expires?: never;
  timeout_ms?: never;
}

/** What ends a wait before what it waits for has come. */
interface WaitLimit {
  /** When the task's time-out does, RFC 3339. */
  expires?: string;
  /** The task's time-out in milliseconds, with `expires`. */
  timeout_ms?: number;
}

/** A message to an execution, for a step that waits for it (control, section 2). */
export interface Signal {
  name: string;
  key?: string;
  /** The sender's name for it: a signal that is sent again under it changes nothing. */
  id?: string;
  data: Json;
  /** Who sent it, as the audit log names the caller. */
  by?: string;
}

/** Where the work of a parked command goes on: its task, as it was when it was parked. */
export interface ResumePoint {
  task: string;
  /** Absent outside loops. */
  iteration?: number;
  /** Run of this task by its retry policy, from 1: the one that waits, or that comes after a {@link RetryWait}. */
  run: number;
  /** Place of the task run in the pipeline's course. */
  serial: number;
  /** When the first run of the task began, RFC 3339. */
  started_at: string;
  /** With a {@link RetryWait}: what the tasks before have come to. */
  pipeline?: KeptPipeline;
}

/** Where a pipeline stands between two runs of a task. What is empty is absent. */
export interface KeptPipeline {
  /** Task runs so far. */
  runs: number;
  /** How often it has come to each task, by label. */
  pages: Record<string, number>;
  /** Execution variables written, in order. */
  set?: Write[];
  /** Results by label, in order of completion. */
  tasks?: [label: string, result: StoredResult][];
  /** The outcome of the task before, and the last good result. */
  previous?: KeptOutcome;
  last_good?: StoredResult | ResultOf;
  /** What tasks have written: for later ones, as execution variables, to `iter`. */
  locals?: JsonObject;
  pending?: JsonObject;
  iter?: JsonObject;
}

/** The outcome of a task that has ended. */
interface KeptOutcome extends Partial<ResultAbout> {
  status: "ok" | "error";
  result: StoredResult | ResultOf;
  error?: TaskError;
}

/** The result that stands under this label already. */
export interface ResultOf {
  of: string;
}

/** A command that no worker holds, until what it waits for has come. */
export interface ParkedWork {
  wait: Wait;
  resume: ResumePoint;
  /** When it goes on whatever else comes, RFC 3339; absent: never by itself. */
  wake_at?: string;
  /** At `wake_at` the time of its step is over. */
  limit?: true;
}

/** What has come of a {@link Wait}, as the command is given it when it goes on. */
export interface Woken extends ParkedWork {
  /** Since when it had waited, milliseconds since 1970. */
  since: number;
  /** When it was woken, milliseconds since 1970. */
  at: number;
  /** The signal that it waited for, and when that came, RFC 3339; absent: its time has come. */
  signal?: Signal & { at: string };
  /** The approval that it waited for, with what people have said. */
  approval?: OpenApproval;
}

/** The result of a task that waited: `at` is when that was over. */
export type WaitResult = {
  outcome: "elapsed" | "received" | "approved" | "rejected" | "timeout";
  at: string;
} & Record<string, Json>;
