import type { ApprovalEvents } from "./approval.ts";
import type { ParkedWork, Signal, TraceRef, Write } from "./command.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Accumulate } from "./manifest.ts";
import type { TaskError } from "./outcome.ts";
import type { LoopPart, StoredResult } from "./result.ts";

/*
 * What happened, in the past tense. The log of these is the truth: `engine/state/evolve.ts` folds them into the state, and nothing else
 * changes it. Field names follow the specification where it has a name for the thing.
 */

/** An arc that fired: its target is to run, with this input. */
export interface Fired {
  step: string;
  input: JsonObject;
  /** The arc leads back to a step that comes before: it does not wait, and runs its target again. */
  back: boolean;
}

/** How one arc was judged, for the question "why did it go there". */
export interface ArcVerdict {
  step: string;
  /** Undefined: not looked at, because an earlier arc had matched. */
  matched?: boolean;
  fired: boolean;
  /** Why its condition could not be evaluated; it then counts as no match. */
  error?: string;
}

/** Which claim of which command an event of a worker speaks of. */
export interface CommandRef {
  command_id: string;
  /** The claim's fencing token: a report with an old one changes nothing. */
  attempt: number;
  step: string;
  worker?: string;
}

/** What several runs of a task came to (`spec.result.accumulate`), by its label, with its bytes in the state. It replaces the last run's result. */
export type TaskResult = [label: string, result: StoredResult, bytes: number];

/**
 * How far a task is, in numbers of the tool's own: `{rows_read: 12000}`. At most {@link PROGRESS_NUMBERS_MAX} of them, named in
 * lower case (`a-z`, `0-9`, `_`, at most 64 characters).
 */
export type ProgressNumbers = Readonly<Record<string, number>>;
/** Most numbers of one `task.progress`: a person is to read them. */
export const PROGRESS_NUMBERS_MAX = 16;

/**
 * Lines that a run of a task wrote, with no secret in them: the last {@link LOG_LINES_MAX} of them and at most
 * {@link LOG_BYTES_MAX} bytes as JSON, each cut off at {@link LOG_LINE_CHARS_MAX} characters.
 */
export type TaskLog = {
  lines: string[];
  /** In `task.progress`: lines of the run before the first of these, most of them reported before. Absent: 0. */
  from?: number;
  /**
   * In `task.done`: lines of the run that are not kept here, those before the first of these. Absent: 0. Of a task whose result
   * is sensitive no line is kept.
   */
  dropped?: number;
};
/** Most lines of one {@link TaskLog}. */
export const LOG_LINES_MAX = 200;
/** Most bytes of its lines, as JSON. */
export const LOG_BYTES_MAX = 8_192;
/** Longest line of it, in characters. */
export const LOG_LINE_CHARS_MAX = 1_000;

/** Where a child execution comes from. */
export interface ParentRef {
  execution_id: string;
  /** The execution at the top of the tree; absent: the parent is it. */
  root_execution_id?: string;
  /** The playbook of that execution: the tree shares its keychain entries under it. */
  root_catalog_id?: string;
  /** The step that called; absent where the caller did not say. */
  step?: string;
  /** The parent's iteration names, readable as `iter.parent` in the child. */
  iter?: JsonObject;
}

/** The place of an event in the log of another execution. */
export interface ReusedFrom {
  execution_id: string;
  /** The event with which the step ended there. */
  event_id: number;
  /** When that was, RFC 3339. */
  created_at: string;
}

/** What is known of a step that is not run again: that of its last run, times in milliseconds since 1970. */
export interface KeptStep {
  order: number;
  runs: number;
  attempts: number;
  started_at: number | null;
  ended_at: number | null;
  result: StoredResult | null;
  error: TaskError | null;
  loop: { total: number | null; done: number; failed: number } | null;
}

/** What a loop that failed leaves to its next run: results of iterations, whose items are compared with the new ones. */
export interface KeptLoop {
  /** Null where the collection was a number. */
  items: Json[] | null;
  total: number;
  failed: number;
  tail: [index: number, result: StoredResult][];
  parts: LoopPart[];
}

/** A step of a rerun that is to run, or that waits: what stood between the steps. */
export interface RestoredStep {
  /** Earlier runs, where a loop of arcs has led here before. */
  kept?: KeptStep & { status: "COMPLETED" | "FAILED" | "SKIPPED"; reused_from?: ReusedFrom };
  token?: { input: JsonObject; from: string | null; back: boolean };
  /** Replaces its input, by key, when it starts. */
  given?: JsonObject;
  loop?: KeptLoop;
}

/** What a rerun was asked for. */
export interface RerunRef {
  execution_id: string;
  /** The steps that run again, and what follows them; `start`: all. */
  from: string[] | "start";
  /** Nothing after these steps runs. */
  only?: true;
  /** Keys of the workload that were replaced. */
  input?: string[];
  variables?: JsonObject;
  step_input?: Record<string, JsonObject>;
  /** Of the playbook, where it is another than that of the original. */
  version?: number;
  reason?: string;
  by?: string;
}

/** Every event, by type. All have `at`, milliseconds since 1970 (UTC). */
export interface EventBodies extends ApprovalEvents {
  "playbook.initialized": {
    execution_id: string;
    catalog_id: string;
    path: string;
    /** Rendered defaults with the request's inputs merged over them. */
    workload: JsonObject;
    /** The request's inputs alone. */
    input: JsonObject;
    parent?: ParentRef;
    /** Run no further than this step: its arcs do not fire (`--target`). */
    target?: string;
    /** Present when the caller, or a sampling server, has begun a trace. */
    trace?: TraceRef;
    /** It repeats another execution. Unless all of it: copies of ended steps follow, then `workflow.restored`. */
    rerun?: RerunRef;
    /** Whose key seals its secrets; absent: that of the root of its tree. */
    sealed_under?: string;
  };
  "workflow.initialized": { step: string };
  /** What stands between the steps of a rerun, in place of `workflow.initialized`: it goes on from here. */
  "workflow.restored": {
    vars: JsonObject;
    /** Steps that have a token, or ran before in a loop of arcs, or are given something when they start. */
    steps: Record<string, RestoredStep>;
    /** Those with a token, in the order in which they got it. */
    waiting: string[];
    /** How often each arc had been taken, by its source and its target. */
    taken: Record<string, Record<string, number>>;
    /** Number of steps that had been started. */
    started: number;
    last_completed?: string;
    failure_at_end?: TaskError;
  };
  "command.issued": {
    command_id: string;
    step: string;
    step_run_id: string;
    /** Iterations this command runs, `from` inclusive and `to` exclusive; absent outside loops. */
    iterations?: { from: number; to: number };
    /** Present on a command that claims rows for a cursor loop. */
    claim?: true;
  };
  "command.claimed": CommandRef & {
    /** The worker that lost the claim before this one: its lease ran out, or its process was gone. Absent: nothing was lost. */
    lost_by?: string;
  };
  "command.started": CommandRef;
  /** Its task waits for something that no worker has to wait for: the claim is over, and no worker has it until `command.woken`. */
  "command.parked": CommandRef & ParkedWork & { task: string; iteration?: number };
  /** What it waited for has come: it may be claimed again. `signal`, `approval`: the id of what that is; without: its time. */
  "command.woken": { command_id: string; step: string; signal?: string; approval?: string };
  /** It is kept until a wait uses it up; with `wakes`, until as many waits have as were there for it when it came. */
  "signal.received": Signal & { signal_id: string; wakes?: number };
  "task.done": CommandRef & {
    task: string;
    /** The run of the step that it is part of. */
    step_run_id?: string;
    task_run_id: string;
    iteration?: number;
    /** Names the iteration of this run of the step. */
    iteration_id?: string;
    /** How often the pipeline has come to this task by now, from 1: present on tasks whose results are joined. */
    page?: number;
    status: "ok" | "error";
    /** Run of this task by its retry policy, from 1. */
    run: number;
    /** The task is over: no retry follows. Only then is its result kept. */
    final: boolean;
    result?: StoredResult;
    /** Size of the result as JSON. */
    bytes?: number;
    error?: TaskError;
    duration_ms: number;
    /** References of the files that the run has left (`FLOW_ARTIFACTS`); absent without any. */
    files?: string[];
    /** Present where another run follows: when, RFC 3339, by the worker's clock. */
    next_run_at?: string;
    /** What the run wrote; absent when it wrote nothing. */
    log?: TaskLog;
  };
  /**
   * Progress of a running task, and its new output since the last event of this type. For people; it decides nothing. A
   * short task has none.
   */
  "task.progress": CommandRef & {
    task: string;
    step_run_id?: string;
    task_run_id: string;
    iteration?: number;
    /** Run of this task by its retry policy, from 1. */
    run: number;
    /** The newest numbers; without any where the tool only writes lines. */
    progress: ProgressNumbers;
    log?: TaskLog;
  };
  "call.done": CommandRef & { task: string; iteration?: number; child_execution_id?: string };
  "call.error": CommandRef & {
    task: string;
    iteration?: number;
    run: number;
    error: TaskError;
    /** Present where another run follows: when, RFC 3339, by the worker's clock. */
    next_run_at?: string;
  };
  "command.completed": CommandRef & {
    /** Labels whose `task.done` make up the result, in order of completion; absent on loop commands. */
    tasks?: string[];
    /** The step has several tasks: its result is the merge of theirs. */
    pipeline?: true;
    /** On loop commands: how many iterations were reported. */
    iterations?: number;
    results?: TaskResult[];
    set?: Write[];
    /** Rows claimed by a cursor's claim. */
    rows?: Json[];
  };
  "command.failed": CommandRef & {
    tasks?: string[];
    pipeline?: true;
    results?: TaskResult[];
    set?: Write[];
    error: TaskError;
  };
  /** `worker`: who held it. */
  "command.cancelled": { command_id: string; step: string; reason: string; worker?: string };
  "loop.started": {
    step: string;
    step_run_id: string;
    /** The items, or their number when the collection is a number; absent for a cursor. */
    items?: Json[];
    count?: number;
    /** Iterations at a time; for a cursor those of one frame. */
    max_in_flight: number;
    /** For a cursor: rows per claim. */
    max_rows?: number;
    /** For a cursor: frames at a time, where more than one, and how long each may take. */
    max_frames?: number;
    frame_ms?: number;
    /** What the iterations' results come to; absent: the list of them. */
    accumulate?: Accumulate;
  };
  "loop.iteration.completed": CommandRef & {
    iteration: number;
    tasks: string[];
    pipeline?: true;
    results?: TaskResult[];
    set?: Write[];
  };
  "loop.iteration.failed": CommandRef & {
    iteration: number;
    tasks: string[];
    pipeline?: true;
    results?: TaskResult[];
    set?: Write[];
    error: TaskError;
  };
  /** Results of finished iterations went to the store as one part; they leave the state. */
  "loop.results.stored": { step: string; step_run_id: string; part: LoopPart };
  /** Results of iterations that a rerun takes over, of one stored part: `part` has them alone. */
  "loop.results.kept": {
    step: string;
    step_run_id: string;
    /** The part as it was. */
    ref: string;
    /** Absent: none of it is taken over. */
    part?: LoopPart;
    /** The iterations, each range without its end. */
    iterations: [from: number, to: number][];
  };
  "loop.done": {
    step: string;
    step_run_id: string;
    stats: { total: number; success: number; failed: number };
    /** Reference of the manifest, where results went to the store. */
    manifest?: string;
  };
  "step.completed": Copied & {
    step: string;
    step_run_id: string;
    set: Write[];
    next: Fired[];
    duration_ms: number;
  };
  "step.failed": Copied & {
    step: string;
    step_run_id: string;
    error: TaskError;
    /**
     * Whether an arc took the failure: `no`; `yes`; or only as a loop's end, so that later steps run and the execution
     * still ends FAILED.
     */
    handled: "no" | "yes" | "loop.done";
    set: Write[];
    next: Fired[];
    duration_ms: number;
  };
  "step.skipped": Copied & {
    step: string;
    /**
     * `when`: its guard was false; `admission`: a rule of `admit` refused; `unreached`: no path leads to it any more;
     * `cancelled`: the run was cancelled before the step started; `overridden`: a person skipped it.
     */
    reason: "when" | "admission" | "unreached" | "cancelled" | "overridden";
    set: Write[];
    next: Fired[];
  };
  "next.evaluated": { step: string; event: string; arcs: ArcVerdict[] };
  "workflow.completed": Record<never, never>;
  "workflow.failed": { error: TaskError };
  "playbook.completed": { result_step?: string };
  "playbook.failed": { error: TaskError };
  "execution.cancelled": { reason: string };
  /**
   * Nothing further is issued or claimed until `execution.resumed`; what workers have goes on (control, rule 1). `cascade`: so are the
   * executions that it has called, and those that it calls yet.
   */
  "execution.paused": Steered & { cascade?: true };
  "execution.resumed": Steered;
  /** A person says how a step ends, or an iteration of its loop (control, rule 14). On a step not begun it counts when that is reached. */
  "step.overridden": Overridden & { step: string; iteration?: number };
}

/** The end that a person has given to a step or an iteration: `result` of `complete`, `error` of `fail`. */
export interface Overridden extends Steered {
  action: OverrideAction;
  reason: string;
  result?: StoredResult;
  error?: TaskError;
}

/** How a person ends a step. */
export type OverrideAction = "skip" | "complete" | "fail";

/** In a rerun: the step did not run here. Then this alone counts of the event, and it sets and starts nothing. */
export interface Copied {
  reused_from?: ReusedFrom;
  kept?: KeptStep;
}

/** Who asked for a change of the run, and why. */
export interface Steered {
  reason?: string;
  /** The caller as the audit log names it. */
  by?: string;
}

/** Name of an event type. */
export type EventType = keyof EventBodies;

/** One event: its type, when it happened, and its body. */
export type FlowEvent = { [T in EventType]: { type: T; at: number } & EventBodies[T] }[EventType];

/** The event of one type. */
export type EventOf<T extends EventType> = { type: T; at: number } & EventBodies[T];
