import type { Json, JsonObject } from "./json.ts";
import type { StoredResult } from "./result.ts";

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
