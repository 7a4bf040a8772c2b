import type { ExecutionState } from "../../../engine/state/state.ts";
import type { IssuedCommand } from "../../../ports/execution-store.ts";
import type { Command } from "../../../schema/words/command.ts";
import type { Json, JsonObject } from "../../../schema/words/json.ts";
import type { Ending } from "../memory/subscriptions.ts";

/** A worker that wants work. */
export interface ClaimInput {
  worker: string;
  /** Most commands; one with several iterations at once counts as more. The last may exceed it. */
  limit: number;
  /** Kinds of task that it runs; undefined: all. */
  kinds: readonly string[] | undefined;
  labels: JsonObject;
  /** Whether it runs the commands of this pool, of none: undefined. Absent: of all. */
  isOfPool?(pool: string | undefined): boolean;
  /** Whether it runs playbooks of this path, whatever the command's labels say. Absent: all. */
  runsPath?(path: string): boolean;
  /** How long to wait for the first command; 0: do not wait. */
  waitMs: number;
}

/** A command with its claim. */
export interface ClaimedCommand {
  command: Command;
  /** Fencing token. */
  attempt: number;
  /** What it takes of the limit that was asked for. */
  slots: number;
  trustDomain: string;
  /** Milliseconds since 1970, by the store's clock. */
  leaseExpiresAt: number;
  /** The step's tasks, in normal form. */
  tool: Json;
  /** Further settings of the document for running the step. */
  spec: JsonObject;
}

/** The content of a commit. */
export interface Commit {
  /** Executions that changed, each with its newest event. */
  moved: ReadonlyMap<string, number>;
  /** Commands that were issued, and are neither claimed nor held. */
  unclaimed: readonly string[];
  /** Commands that this server goes on with itself, by execution, in the order in which it does so. */
  held: ReadonlyMap<string, readonly IssuedCommand[]>;
  /** Executions of which commands were woken that no worker knows of yet. */
  woken: readonly string[];
  /** When something may first be done for a command that it parks, milliseconds since 1970; undefined: it parks none. */
  soonest: number | undefined;
  /** Steps that ended. */
  steps: readonly EndedStep[];
  /** Commands that were cancelled while workers held them, by execution. */
  cancelled: readonly { executionId: string; commands: readonly CancelledCommand[] }[];
  /** Executions that ended; read them at once, because they may be evicted. */
  ended: readonly ExecutionState[];
  /** The ends of those, as their rows have them, by execution. */
  endings: ReadonlyMap<string, Ending>;
  /** The store's clock, milliseconds since 1970. */
  at: number;
  timings: RoundTimings;
}

/** Times of one round in milliseconds, and what it wrote. */
export interface RoundTimings {
  engineMs: number;
  flushMs: number;
  executions: number;
  events: number;
}

/** A step that ended. */
export interface EndedStep {
  executionId: string;
  step: string;
  status: "COMPLETED" | "FAILED";
  durationMs: number;
}

/** A command that a worker held when it was cancelled, or one of its iterations was ended by hand. */
export interface CancelledCommand {
  commandId: string;
  worker: string;
}
