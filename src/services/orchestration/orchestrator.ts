import type { Acceptance } from "../../engine/state/accept.ts";
import type { ExecutionState } from "../../engine/state/state.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ExecutionStore, StoredStatus } from "../../ports/execution-store.ts";
import type { ReportedEvent } from "../../schema/api/event-input.ts";
import type { FlowError } from "../../schema/words/errors.ts";
import type { FlowEvent, ParentRef } from "../../schema/words/event.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import type { Sealer } from "../../schema/words/sealed.ts";
import type { TraceRef } from "../../schema/words/trace.ts";
import type { CachedExecution } from "./memory/execution-cache.ts";
import type { CommandProgram } from "./memory/program-cache.ts";
import type { Watched } from "./memory/subscriptions.ts";
import type { ReadyOptions } from "./rounds/ready-queue.ts";
import type { ClaimedCommand, ClaimInput, Commit } from "./rounds/types.ts";

/** Starts an execution. */
export interface StartInput {
  /** The catalog entry to run. */
  entry: { catalogId: string; path: string; version: number };
  /** Inputs: they replace top-level keys of the playbook's workload. */
  input: JsonObject;
  parent?: ParentRef;
  /** Root of the tree that the parent belongs to. */
  rootExecutionId?: string;
  /** The user in whose name it runs. */
  startedBy?: number;
  /** Run no further than this step. */
  target?: string;
  /** The step whose result the caller will ask for: it must be one. */
  returnStep?: string;
  /** W3C `traceparent` of the caller. */
  traceparent?: string;
  idempotency?: { caller: string; key: string; bodySha256: string };
}

/** A request's events, as a worker sent them. Events may leave out their execution: that of their command is meant. */
export interface ReportRequest extends Omit<ReportInput, "events"> {
  events: { executionId: string | undefined; event: ReportedEvent }[];
}

/** The events of a request, each with its execution. */
export interface ReportInput {
  /** Whose idempotency keys these are: the name of the worker, or of the role. */
  caller: string;
  idempotencyKey: string | null;
  /** SHA-256 of the body, in hex. */
  bodySha256: string;
  events: { executionId: string; event: ReportedEvent }[];
  /** Wants commands with the answer, which then comes when the events were processed, not only accepted. */
  claim?: ClaimInput;
  /** Answered when the events were processed, also without a claim. */
  isAwaited?: boolean;
}

/** What became of a {@link ReportInput}. */
export interface ReportOutcome {
  requestId: string;
  eventIds: number[];
  commandsGenerated: number;
  queueDepth: number;
  duplicate: boolean;
  commands: ClaimedCommand[];
}

/**
 * The only way in which executions of the service go forward: events are accepted, folded, followed up, written in one
 * transaction with the projections, and told to others after its commit.
 */
export interface Orchestrator {
  /**
   * Starts an execution; resolves when that is durable. Throws `FlowError` INVALID_INPUT where a default of the workload
   * cannot be rendered, NOT_FOUND for a target or a return step that is none, CONFLICT for an idempotency key that was used with another body, UNAVAILABLE.
   */
  start(input: StartInput): Promise<{ executionId: string; status: StoredStatus; duplicate: boolean }>;
  /**
   * Takes a batch of events. Throws `FlowError` CONFLICT with `detail.events` when one of them is not acceptable (nothing is
   * written then), INVALID_INPUT for a key that was used with another body, queue_unavailable, ack_timeout, and `enqueue_error`
   * while the store is away: nobody knows then whether it was written, and the same request under its key tells.
   */
  report(request: ReportRequest): Promise<ReportOutcome>;
  /** Folds one event from outside into an execution, such as its cancellation. Throws `FlowError` NOT_FOUND, UNAVAILABLE. */
  inject(executionId: string, event: FlowEvent): Promise<Acceptance>;
  /**
   * Commands for a worker, oldest first; empty when there was none in time, or the signal was aborted. `left` says that nobody
   * is there to take the answer: what is in it is then offered to others. Default: the same signal.
   */
  claim(input: ClaimInput, signal?: AbortSignal, left?: AbortSignal): Promise<ClaimedCommand[]>;
  /** A worker wants no more: its claims that wait are answered, with what was claimed for them already or with none. */
  dismiss(worker: string): void;
  /** One command by its id, which {@link offer} has found claimable. Undefined when somebody else was faster. */
  claimOne(commandId: string, worker: string): Promise<ClaimedCommand | undefined>;
  /** Others say that these commands may be claimed: looks them up and offers them to who waits. Never throws. */
  offer(commandIds: readonly string[], abandonedBy?: string): Promise<void>;
  /**
   * Calls the listener after each commit that moved the execution, of this process or (as told by the broker) of another; for
   * `end` only after those with which it may have ended.
   */
  watch(executionId: string, listener: () => void, watched?: Watched): () => void;
  /**
   * Tells the watchers of an execution that another process moved it, up to the event `lastEventId`. Nothing happens where the
   * state in memory is as new: this process wrote that event, or has read it.
   */
  moved(executionId: string, move: { lastEventId: number; hasEnded: boolean }): void;
  /** Executions that somebody watches. */
  watched(): string[];
  recovery: Recovery;
  /** Executions in memory that are loaded. Where a round works on one, it is ahead of what is committed. */
  inMemory(): CachedExecution[];
  /** Batches and starts that wait to be written. */
  queueDepth(): number;
  /** Takes nothing new, answers who waits for commands, and ends when all that was taken is written. */
  close(): Promise<void>;
}

/** What advancing needs. */
export interface OrchestratorDeps {
  store: ExecutionStore;
  programs: (catalogId: string) => Promise<CommandProgram>;
  /** Payloads that are not inline. */
  results: { load(ref: string): Promise<Json>; save(ref: string, json: string): Promise<unknown> };
  /**
   * Seals for the tree below a root: with it arcs read sensitive results, and what they pass on is sealed. Default: such
   * payloads stay closed.
   */
  sealerOf?(rootExecutionId: string): Sealer;
  clock: Clock;
  /** Calls later, when what arrived together has been queued: `setImmediate`. */
  defer(call: () => void): void;
  /** The allow-listed environment, readable as `env` in templates. */
  env: JsonObject;
  /** The place of a new execution in a trace; default: directly under its caller, where that has one. */
  traceOf?(executionId: string, traceparent: string | undefined): TraceRef | undefined;
  limits: OrchestratorLimits;
  /** The result of an execution as it is shown. */
  resultOf(state: ExecutionState): Json;
  isRetryable(error: unknown): boolean;
  /** True for the error of a store that knows an idempotency key already. */
  isDuplicateKey(error: unknown): boolean;
  unavailable(error: unknown): FlowError | undefined;
  observer: OrchestratorObserver;
}

/** Limits of advancing; times in milliseconds. */
export interface OrchestratorLimits {
  leaseMs: number;
  /** `FLOW_BATCH_ACCEPT_ENQUEUE_TIMEOUT_SECONDS`. */
  ackMs: number;
  /** `FLOW_BATCH_ACCEPT_QUEUE_MAXSIZE`. */
  queueMax: number;
  /** `FLOW_BATCH_PROCESSING_TIMEOUT_SECONDS`. */
  processingMs: number;
  /** `FLOW_BATCH_ACCEPT_WORKERS`: rounds that are written at a time, while the next one is decided. */
  processors: number;
  /** Commands that wait in memory; default: those of `services/orchestration/rounds/ready-queue`. */
  ready?: Pick<ReadyOptions, "groupMax" | "readyMax" | "groupMin">;
}

/** What is told of, for metrics, logs and other processes. Nothing here may throw. */
export interface OrchestratorObserver {
  /** After a commit. */
  committed(commit: Commit): void;
  /** A batch is in the log, so long after it came. */
  batchAccepted(seconds: number): void;
  /** A batch was not taken in time. */
  ackTimedOut(): void;
  /** A command of a batch was claimed, the first one, so long after the batch came. */
  firstClaim(seconds: number): void;
  /** A command was claimed that had been ready for so long. */
  claimed(queuedSeconds: number): void;
  /** Commands were given back by a worker that signed off, and may be claimed. */
  returned(commandIds: readonly string[]): void;
  /** A fault of this program. */
  fault(error: unknown, executionIds: readonly string[]): void;
}

/** What is looked after beside the requests; each call is one run and says how much it found. */
export interface Recovery {
  /**
   * Finds PENDING commands that this process was not told of: issued by another server, or before this one began. The safety
   * net under every notification.
   */
  poll(): Promise<number>;
  /** Works out what follows from batches that were accepted and then left alone for `idleMs`: their server died. */
  recover(idleMs: number): Promise<number>;
  /** Ends executions that are past their deadline. */
  expire(): Promise<number>;
  /** Forgets executions that nothing happens to. */
  sweep(): void;
}
