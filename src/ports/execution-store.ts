import type { EventRecord, LogEntry, LogOwner } from "../schema/rules/event-record.ts";
import type { Origin } from "../schema/rules/origin.ts";
import type { ApprovalDecision, ApprovalOutcome, ApprovalRequest, People } from "../schema/words/approval.ts";
import type { AuditEntry } from "../schema/words/audit-entry.ts";
import type { Command, Wait } from "../schema/words/command.ts";
import type { Json, JsonObject } from "../schema/words/json.ts";
import type { TaskError } from "../schema/words/outcome.ts";

/*
 * What advancing executions needs from its store. Two implementations: PostgreSQL for the service, memory for the
 * simulator, which loses, delays and crashes it.
 *
 * Ids of executions, commands and batches are text; ids of events are numbers, as they stand in JSON (below 2^53).
 */

/** Status of an execution row. */
export type StoredStatus = "PENDING" | "RUNNING" | "PAUSED" | "COMPLETED" | "FAILED" | "CANCELLED";
/** Status of a command row. PAUSED: not claimed, in an execution that is paused. PARKED: it waits, and no worker holds it. */
export type CommandStatus =
  | "PENDING"
  | "PAUSED"
  | "PARKED"
  | "CLAIMED"
  | "RUNNING"
  | "COMPLETED"
  | "FAILED"
  | "CANCELLED";

/** Keeps executions, their events and commands. Every promise rejects with the store's own error when it cannot answer. */
export interface ExecutionStore {
  /** `count` fresh ids, ahead of every id that was given before: the last of them. */
  reserveIds(count: number): Promise<number>;
  /** The row of an execution with its newest snapshot; undefined if not found. */
  find(executionId: string): Promise<StoredExecution | undefined>;
  /**
   * The newest snapshot of this format up to an event; null if not found. Of the older ones some are kept, closer together the younger
   * they are.
   */
  snapshotUpTo(executionId: string, eventId: number, format: number): Promise<Snapshot | null>;
  /** Events after `after`, in order, at most `limit`. */
  eventsAfter(executionId: string, after: number, limit: number): Promise<EventRecord[]>;
  /**
   * Writes all changes in one transaction, each only if its execution is still at `expectedEventId` (a new one: if its id
   * is free). Those that were not are left out as a whole, and are not in `moved`: reload and decide again. A rejection
   * says nothing about what was written when it comes from the connection.
   */
  flush(flush: Flush): Promise<FlushOutcome>;
  /** What PENDING commands require, each requirement once, in an order of the store's own; those after `after`, at most `limit`. */
  pendingRequirements(after: Requirement | undefined, limit: number): Promise<Requirement[]>;
  /** PENDING commands of these requirements, each once: of each the oldest after the id `after`, in order, at most its `limit`. */
  pendingCommands(wanted: readonly PendingWanted[]): Promise<ReadyCommand[]>;
  /**
   * Those of these commands that may be claimed now: PENDING ones, and held ones that the claim policy gives up (decisions,
   * "Worker protocol"). Held ones of `abandoned.worker` count as given up, whatever their lease.
   */
  claimableCommands(commandIds: readonly string[], abandoned?: Abandoning): Promise<ReadyCommand[]>;
  /** Held commands that may be claimed now because their worker has signed off, or is not known; at most `limit`. */
  returnedCommands(limit: number): Promise<ReadyCommand[]>;
  /** The commands with these ids as they were issued. */
  commandBodies(commandIds: readonly string[]): Promise<Command[]>;
  /** Batches that were accepted and not processed, by a process that is gone or slow: not touched for `idleMs`. */
  unprocessedBatches(idleMs: number, limit: number): Promise<AcceptedBatch[]>;
  /** The execution of each of these commands; unknown ones are left out. */
  executionsOf(commandIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** The batch that a caller sent under this key. */
  findBatch(caller: string, idempotencyKey: string): Promise<KnownBatch | undefined>;
  /** The execution that a caller started under this key. */
  findStart(caller: string, idempotencyKey: string): Promise<KnownStart | undefined>;
  /** Executions that are open past their deadline, by the store's clock. */
  overdueExecutions(limit: number): Promise<string[]>;
  /**
   * Parked commands whose time has come by the store's clock, the most overdue first; no other call takes them for `leaseMs`, unless they
   * are parked anew.
   */
  takeDueWaits(leaseMs: number, limit: number): Promise<DueWait[]>;
}

/** A parked command whose time has come. */
export interface DueWait {
  commandId: string;
  executionId: string;
  /** Milliseconds since 1970. */
  dueAt: number;
  /** The store's clock when it was taken. */
  takenAt: number;
}

/** A command that is parked from now on. */
export interface ParkedCommand {
  commandId: string;
  kind: Wait["kind"];
  /** When it goes on by itself, milliseconds since 1970; null: never. */
  dueAt: number | null;
  /** Of a wait for a signal: its name, and its key, which is empty where it takes those without. */
  signal?: { name: string; key: string };
}

/** An approval that is opened, or what changes of one. */
export interface ApprovalChange {
  approvalId: string;
  /** Present exactly when it is opened. */
  opened?: {
    commandId: string;
    step: string;
    iteration?: number;
    request: ApprovalRequest;
    /** When it expires, milliseconds since 1970; absent: never. */
    dueAt?: number;
  };
  /** What people have said, in its order. */
  decisions: ApprovalDecision[];
  /** Who may decide besides, from now on. */
  escalatedTo?: People;
  /** Present when it is closed. */
  outcome?: ApprovalOutcome;
}

/** A playbook that is to be run to tell people of an approval. */
export interface ApprovalMessage {
  approvalId: string;
  /** Of the approval, from 1. */
  number: number;
  /** Who alone has its link; absent: everybody who gets it. */
  to?: string;
  playbook: string;
  /** With `messageLink` in the place of the link. */
  input: JsonObject;
}

/** What to read of the PENDING commands with one requirement. Default of `after`: from the oldest on. */
export interface PendingWanted {
  requirement: Requirement;
  after?: string;
  limit: number;
}

/** An execution as it is stored: its row, and the state to start folding from. */
export interface StoredExecution {
  executionId: string;
  catalogId: string;
  path: string;
  version: number;
  status: StoredStatus;
  lastEventId: number;
  parentExecutionId: string | null;
  rootExecutionId: string;
  /** Id of the user in whose name it runs; null: an operator's. */
  startedBy: number | string | null;
  /** Where folding may begin; null: with the first event. */
  snapshot: Snapshot | null;
}

/** A state after the events up to `eventId`. */
export interface Snapshot {
  eventId: number;
  /** Version of the state's shape: a snapshot of another version is ignored, and the events are folded instead. */
  format: number;
  /** JSON text. */
  state: string;
}

/** Everything that one transaction writes. */
export interface Flush {
  executions: ExecutionChange[];
  batches: BatchChange[];
  /** Some trigger watches ends of executions: they are noted. */
  watchesEnds?: boolean;
}

/** What became of a {@link Flush}. */
export interface FlushOutcome {
  /** Ids of the executions whose change was written. */
  moved: ReadonlySet<string>;
  /** The store's clock when it wrote, milliseconds since 1970: leases count from there. */
  at: number;
}

/** What one round changes of one execution. */
export interface ExecutionChange extends LogOwner {
  /** The newest event that the decision knew; null for an execution that begins. */
  expectedEventId: number | null;
  /** The newest event after the change; that of the last of `events`. */
  lastEventId: number;
  /** Present exactly when the execution begins. */
  start?: ExecutionStart;
  status: StoredStatus;
  /** Percent. */
  progress: number;
  /** Set when the execution ended with a result: what the API shows. */
  result?: Json;
  error?: TaskError;
  /** What it came to, for statistics; present exactly when it ended. */
  tally?: EndTally;
  /** In order; empty never. */
  events: LogEntry[];
  /** Large results of its events that are stored with them, each reference once. */
  payloads?: readonly AttachedPayload[];
  /** Commands that begin, in the state that they have at the end of the change; without those that have ended by then. */
  issued: IssuedCommand[];
  /** Commands of earlier changes, in the state that they have now. */
  commands: CommandChange[];
  /** Iterations that people have ended in commands that workers have; each command is in `issued` or `commands` too. */
  stopped?: StoppedIteration[];
  /** Commands of earlier changes that have ended, and of which no worker will ask: nothing is kept of them but the log. */
  ended: string[];
  /** Commands that are parked, in the state that they have at the end of the change. */
  parked?: readonly ParkedCommand[];
  /** Commands that wait no longer, or not while the execution is paused. Those for signals wait on, without a time. */
  unparked?: readonly string[];
  /** What changes of approvals, each once. */
  approvals?: readonly ApprovalChange[];
  /** Messages about approvals that are to be sent. */
  messages?: readonly ApprovalMessage[];
  snapshot?: Snapshot;
}

/** What an execution that has ended came to, for statistics. Durations are counts by the buckets of `platform/telemetry/histogram`. */
export interface EndTally {
  /** From its first event to its last, in milliseconds. */
  durationMs: number;
  /** How long its commands waited for a worker. */
  waited: Record<number, number>;
  /** Its steps that ran here: how often they ended, how often of these they failed, and how long they took. */
  steps: [name: string, runs: number, failed: number, took: Record<number, number>][];
}

/** A large result that came with its event and is written with it, in place of one that is stored under its reference. */
export interface AttachedPayload {
  ref: string;
  /** As it is to be stored. */
  payload: Uint8Array<ArrayBuffer>;
  /** Before compression. */
  bytes: number;
  sha256: string;
  compression: "gzip" | null;
  isSealed: boolean;
  /** Milliseconds since 1970. */
  expiresAt: number;
}

/** A fire of a trigger that is written with the execution that it starts. Times in milliseconds since 1970. */
export interface StartedFire {
  fireId: string;
  triggerId: string;
  key: string;
  dueAt: number;
  firedAt: number;
  always: boolean;
  /** The execution whose end it is for. */
  causeId: string | null;
}

/** What an execution's row says from its beginning. */
export interface ExecutionStart {
  catalogId: string;
  path: string;
  version: number;
  /** It is written only if this entry is the newest of its path at that moment. Default false. */
  mustBeNewest?: boolean;
  parentExecutionId: string | null;
  parentStep: string | null;
  rootExecutionId: string;
  /** The user in whose name it runs; absent: an operator's. */
  startedBy?: number | null;
  /** Of a rerun and what it calls: its line of reruns. A rerun is written only if its original is there. */
  line?: { sealed_under: string; rerun_of?: string; refers_to?: readonly string[]; request?: JsonObject };
  /** What started it; absent: its parent, or else the user in whose name it runs. */
  origin?: Origin | null;
  /** Words of people by which lists are filtered. */
  labels?: Readonly<Record<string, string>>;
  /** The caller that started it with an idempotency key; all three fields or none. */
  idempotency: { caller: string; key: string; bodySha256: string } | null;
  /** The queued fire of a trigger that it is the outcome of: that is written with it. */
  fireId?: string;
  /** The same of a fire that is not written yet. If its trigger has fired for its key, nothing is written (23505, `trigger_fire_key`). */
  newFire?: StartedFire;
  /** When its first event happened, milliseconds since 1970; absent: when it is written. */
  startedAt?: number;
  /** When it is to fail if it is still open, milliseconds since 1970. */
  deadlineAt: number | null;
  /** Rows of the audit log that are written with it: who started it, and why they may. */
  audit?: readonly AuditEntry[];
}

/** A command that begins. */
export interface IssuedCommand extends CommandChange {
  catalogId: string;
  step: string;
  /** Kinds of its tasks: a worker claims what it has all kinds of. */
  kinds: string[];
  /** Labels that the worker must have; null: any. */
  labels: JsonObject | null;
  body: Command;
}

/** State of a command after a change. */
export interface CommandChange {
  commandId: string;
  status: CommandStatus;
  /** Number of claims so far. Of a cancelled command it may be too low: the row keeps the greater one. */
  attempt: number;
  /** Holder, exactly while it is CLAIMED or RUNNING. */
  worker: string | null;
  /** Milliseconds from the store's now to the end of the lease, where a claim is part of the change. */
  leaseMs: number | null;
}

/** An iteration that a person has ended while a worker had its command. */
export interface StoppedIteration {
  commandId: string;
  iteration: number;
}

/** What a worker must have for a command: commands with the same requirement form one group of the ready queue. */
export interface Requirement {
  kinds: string[];
  /** Null: any. */
  labels: JsonObject | null;
}

/** A command that a worker may claim. */
export interface ReadyCommand extends Requirement {
  commandId: string;
  executionId: string;
  /** Number of claims so far: more than 0 for a command that was taken from a worker. */
  attempt: number;
  /** The worker that lost the last claim; null or absent if it gave the command back, or there was no claim. */
  lostBy?: string | null;
}

/** The holder of commands that may be claimed whatever their leases. */
export interface Abandoning {
  worker: string;
  /** Its process is gone; otherwise it gave them back, or the answer to its claim was lost. */
  isGone: boolean;
}

/** Row of a batch, written with the events that it brought. */
export interface BatchChange {
  requestId: string;
  /** Present when the batch begins with this flush. */
  accept?: {
    caller: string;
    idempotencyKey: string | null;
    bodySha256: string;
    executionIds: string[];
    eventIds: number[];
  };
  state: "accepted" | "completed" | "failed";
  code?: string;
  message?: string;
  commandsGenerated: number;
  /** Written only if the changes of all these executions were; executions that the flush does not change are ignored. */
  executionIds: string[];
}

/** A batch that waits for its processing. */
export interface AcceptedBatch {
  requestId: string;
  executionIds: string[];
  eventIds: number[];
  /** A server that still lives took it over before: it was not lost with the batch. Default false. */
  isHeld?: boolean;
}

/** A batch that was sent before. */
export interface KnownBatch {
  requestId: string;
  bodySha256: string;
  eventIds: number[];
  commandsGenerated: number;
}

/** An execution that was started before. */
export interface KnownStart {
  executionId: string;
  bodySha256: string;
  status: StoredStatus;
}
