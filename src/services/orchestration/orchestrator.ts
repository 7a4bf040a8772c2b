import type { GivenDecision } from "../../engine/decide/approvals.ts";
import type { InputProblem } from "../../engine/program/check-inputs.ts";
import type { Program } from "../../engine/program/program.ts";
import type { RerunEdits } from "../../engine/rerun/restore-state.ts";
import type { Acceptance } from "../../engine/state/accept.ts";
import type { ExecutionState, StepStatus } from "../../engine/state/state.ts";
import type { Clock } from "../../ports/clock.ts";
import type {
  Abandoning,
  AttachedPayload,
  ExecutionStore,
  StartedFire,
  StoredStatus,
} from "../../ports/execution-store.ts";
import type { ReportedEvent } from "../../schema/api/event-input.ts";
import type { Origin } from "../../schema/rules/origin.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import type { Signal, TraceRef } from "../../schema/words/command.ts";
import type { FlowError } from "../../schema/words/errors.ts";
import type { EventOf, FlowEvent, ParentRef, RerunRef } from "../../schema/words/event.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import type { Sealer } from "../../schema/words/sealed.ts";
import type { CachedExecution } from "./memory/execution-cache.ts";
import type { IterationPace } from "./memory/iteration-pace.ts";
import type { LoadDeps, OrchestratorResults } from "./memory/load-execution.ts";
import type { CommandProgram } from "./memory/program-cache.ts";
import type { MoveListener, Watched } from "./memory/subscriptions.ts";
import type { PureSteps } from "./rounds/pure-steps.ts";
import type { Ability, ReadyOptions } from "./rounds/ready-queue.ts";
import type { ClaimedCommand, ClaimInput, Commit } from "./rounds/types.ts";

/** The input for starting an execution. */
export interface StartInput {
  /** The catalog entry to run. */
  entry: { catalogId: string; path: string; version: number };
  /** The entry comes from memory: rejects with {@link NotNewest} if it may not be the newest of its path. Default false. */
  mustBeNewest?: boolean;
  /** Inputs: they replace top-level keys of the playbook's workload. */
  input: JsonObject;
  parent?: ParentRef;
  /** Root of the tree that the parent belongs to. */
  rootExecutionId?: string;
  /** Whose key seals the parent's secrets, where that is not the root. */
  sealedUnder?: string;
  /** It repeats another execution. */
  rerun?: RerunInput;
  /** The user in whose name it runs. */
  startedBy?: number;
  /** What started it. Default: its parent, or else that user. */
  origin?: Origin;
  /** Words of people, by which lists are filtered. */
  labels?: Readonly<Record<string, string>>;
  /** Run no further than this step. */
  target?: string;
  /** The step whose result the caller will request: it must be a step of the playbook. */
  returnStep?: string;
  /** W3C `traceparent` of the caller. */
  traceparent?: string;
  idempotency?: StartKey;
  /** The queued fire of a trigger that it is the outcome of, or the one that is written with it. */
  fireId?: string;
  newFire?: StartedFire;
  log?: StartLog;
  /** Length of the request, in bytes. Default 0. */
  bytes?: number;
}

/** Under which an execution is started once. */
export interface StartKey {
  caller: string;
  key: string;
  bodySha256: string;
  /**
   * The key has just been made, so that an execution under it is not looked for before the start. If there is one all the same, it is found as
   * it always is. Default false.
   */
  isNew?: boolean;
}

/** What a start would begin with. */
export interface StartPreview {
  /** Rendered, with its secrets sealed. */
  workload: JsonObject;
  /** Why its inputs would be refused; empty if they would not. */
  problems: InputProblem[];
}

/** How a rerun begins. */
export interface RerunInput {
  ref: RerunRef;
  sealedUnder: string;
  /** Executions whose stored results it refers to. */
  refersTo: readonly string[];
  /** What lineage says of it. */
  request: JsonObject;
  /** What is taken over; absent: it begins with its first step. */
  restored?: {
    workload: JsonObject;
    /** Its events after the first, as of a moment, with what it was given, sealed. */
    events(at: number, given: Pick<RerunEdits, "input" | "stepInput">): FlowEvent[];
  };
}

/** What the audit log says about a start: in the transaction that writes the execution, so that neither is there without the other. */
export interface StartLog {
  /** The rows to be written with the execution of this id. Not asked for one that was started before. */
  rows(executionId: string): readonly AuditEntry[];
  /** The execution is written, and they with it; or neither. */
  ended(isWritten: boolean): void;
}

/** A request's events, as a worker sent them. Events may leave out their execution: then it is that of their command. */
export interface ReportRequest extends Omit<ReportInput, "events"> {
  events: (Omit<ReportInput["events"][number], "executionId"> & { executionId: string | undefined })[];
}

/** The events of a request, each with its execution. */
export interface ReportInput {
  /** The owner of the idempotency key: the name of the worker, or of the role. */
  caller: string;
  idempotencyKey: string | null;
  /** SHA-256 of the body, in hex. */
  bodySha256: string;
  /** Length of the body. Default 0. */
  bytes?: number;
  events: { executionId: string; event: ReportedEvent; attached?: readonly AttachedPayload[] }[];
  /** Requests commands with the answer, which then comes after the events were processed, not only accepted. */
  claim?: ClaimInput;
  /**
   * An earlier try of the same request ended without an answer: its server may have died of what follows. So the events are
   * accepted first, and nothing is claimed with them: how often that happens is then counted in the log.
   */
  isRedelivered?: boolean;
  /** Answered after the events were processed, even without a claim. */
  isAwaited?: boolean;
}

/** The outcome of a {@link ReportInput}. */
export interface ReportOutcome {
  requestId: string;
  eventIds: number[];
  commandsGenerated: number;
  queueDepth: number;
  duplicate: boolean;
  commands: ClaimedCommand[];
}

/** What became of a signal. */
export interface SignalOutcome {
  /** Waits that it has ended. */
  reached: number;
  /** It is kept for a wait to come. */
  kept: boolean;
  /** It was sent before, under the same id: nothing has changed. */
  duplicate: boolean;
}

/** A signal that is sent to everyone who waits for it. */
export interface EveryonesSignal extends Signal {
  signalId: string;
  /** When it was sent, milliseconds since 1970. */
  at: number;
  /** Most waits that it ends. Default: all. */
  atMost?: number;
}

/** The approval that a person decides over, and the command that waits for it. */
export interface ApprovalPlace {
  approvalId: string;
  executionId: string;
  commandId: string;
}

/**
 * The only way to advance executions of the service: events are accepted and folded, their consequences are decided, everything
 * is written in one transaction with the projections, and other processes are notified after its commit.
 */
export interface Orchestrator {
  /**
   * Starts an execution; resolves when that is durable. Throws `FlowError` INVALID_INPUT if a default of the workload cannot be
   * rendered, NOT_FOUND if the target or the return step is not a step, CONFLICT for an idempotency key that was used with
   * another body, UNAVAILABLE.
   */
  start(input: StartInput): Promise<{ executionId: string; status: StoredStatus; duplicate: boolean }>;
  /**
   * What a start with these inputs would begin with. Nothing is written, and no id is used: templates see `0` for the execution's. Throws
   * `FlowError` INVALID_INPUT if a default of the workload cannot be rendered.
   */
  preview(program: Program, input: JsonObject): Promise<StartPreview>;
  /**
   * Accepts a batch of events. Throws `FlowError` CONFLICT with `detail.events` if one of them is not acceptable (nothing is
   * written then), INVALID_INPUT for a key that was used with another body, queue_unavailable, ack_timeout, and `enqueue_error`
   * while the store is unavailable: then it is unknown whether the batch was written, and the caller finds out by sending the
   * same request with its key again.
   */
  report(request: ReportRequest): Promise<ReportOutcome>;
  /** Folds one external event into an execution, such as its cancellation. Throws `FlowError` NOT_FOUND, UNAVAILABLE. */
  inject(executionId: string, event: FlowEvent): Promise<Acceptance>;
  /**
   * Ends a step or an iteration as a person says; resolves with the step's status when that is durable. Throws `FlowError` NOT_FOUND for
   * an unknown execution, step or iteration, INVALID_INPUT, already_terminal for one that has ended, UNAVAILABLE.
   */
  override(executionId: string, event: EventOf<"step.overridden">): Promise<StepStatus>;
  /**
   * Sends a signal to one execution, which keeps it until a step waits for it. Resolves when that is durable. Throws `FlowError`
   * NOT_FOUND, already_terminal, RATE_LIMITED if too many are kept, UNAVAILABLE.
   */
  signal(executionId: string, signal: Signal): Promise<SignalOutcome>;
  /**
   * Ends the waits of one execution for a signal that was sent to everyone; the number of these, at least 1 if the execution has had this
   * very signal before. It keeps nothing. Throws `FlowError` UNAVAILABLE.
   */
  signalWaiters(executionId: string, signal: EveryonesSignal): Promise<number>;
  /**
   * What a person says about an approval; resolves with what that came to, when it is durable. Throws `FlowError` CONFLICT for a closed one
   * and for a person who has decided before, NOT_FOUND, UNAVAILABLE. Who may decide, the caller has checked.
   */
  decide(place: ApprovalPlace, decision: GivenDecision): Promise<"open" | "approved" | "rejected">;
  /**
   * Commands for a worker, oldest first; empty if none was ready in time, or the signal was aborted. `left` is aborted when the
   * caller has left and cannot receive the answer: its commands are then offered to others. Default: the same signal.
   */
  claim(input: ClaimInput, signal?: AbortSignal, left?: AbortSignal): Promise<ClaimedCommand[]>;
  /**
   * The worker wants no more commands: its waiting claims are answered with the commands already claimed for them, or with an
   * empty list.
   */
  dismiss(worker: string): void;
  /** One command by its id, which {@link offer} has found claimable. Undefined if another worker was faster. */
  claimOne(
    commandId: string,
    worker: string,
    work?: Pick<ClaimInput, "isOfPool" | "runsPath">,
  ): Promise<ClaimedCommand | undefined>;
  /**
   * Resolves when a command that suits is ready, or the signal aborts; the command may be gone by then. For commands with labels
   * alone, such as those of a pool. Waiting here costs nothing while other commands become ready, unlike a claim that waits.
   */
  untilReady(ability: Ability, signal: AbortSignal): Promise<void>;
  /**
   * Another process reports that these commands may be claimed: looks them up and offers them to waiting workers. A command
   * whose claims were lost too often fails instead. Never throws.
   */
  offer(commandIds: readonly string[], abandoned?: Abandoning): Promise<void>;
  /**
   * Calls the listener after each commit that changed the execution, by this process or (as reported by the broker) by another;
   * for `end` only after commits with which it may have ended. An end that this process wrote comes with the call.
   */
  watch(executionId: string, listener: MoveListener, watched?: Watched): () => void;
  /**
   * Notifies the watchers of an execution that another process changed it, up to the event `lastEventId`. Nothing happens if
   * the state in memory is as new: this process wrote that event, or has read it.
   */
  moved(executionId: string, move: { lastEventId: number; hasEnded: boolean }): void;
  /** Calls the watchers of an execution, whatever is in memory; those of its end only if it may have ended. */
  wake(executionId: string, mayHaveEnded: boolean): void;
  /** True if it is in memory and has not ended: its watchers will be called. False says nothing. */
  isOpen(executionId: string): boolean;
  /** Executions with a watcher. */
  watched(): string[];
  /** Resolves as soon as {@link Orchestrator.watched} has one, or the signal is aborted. */
  whenWatched(signal: AbortSignal): Promise<void>;
  recovery: Recovery;
  /** Loaded executions in memory. While a round works on one, its state is ahead of what is committed. */
  inMemory(): CachedExecution[];
  /** Batches and starts that wait to be written. */
  queueDepth(): number;
  /** Accepts nothing new, answers waiting claims, and resolves when everything accepted is written. */
  close(): Promise<void>;
}

/** What the orchestrator needs. */
export interface OrchestratorDeps {
  store: ExecutionStore;
  programs: (catalogId: string) => Promise<CommandProgram>;
  /** Payloads that are not inline. */
  results: OrchestratorResults & { save(ref: string, json: string): Promise<unknown> };
  /** See {@link LoadDeps.checkReading}. */
  checkReading?: LoadDeps["checkReading"];
  /**
   * Seals for the tree below a root: with it arcs read sensitive results, and the values they pass on are sealed. Default: such
   * payloads stay closed.
   */
  sealerOf?(rootExecutionId: string): Sealer;
  /** The pool of workers that runs the playbook of a path, where one does. Default: there are no pools. */
  poolOf?(path: string): string | undefined;
  /** Runs steps without effects here. Default: workers run them. */
  pureSteps?: PureSteps;
  /** How many iterations of a loop share a command. Default: as many as are known to be short. */
  pace?: IterationPace;
  clock: Clock;
  /** Calls later, after everything that arrived together has been queued: `setImmediate`. */
  defer(call: () => void): void;
  /** The allow-listed environment, readable as `env` in templates. */
  env: JsonObject;
  /** The place of a new execution in a trace; default: directly under its caller, if that has one. */
  traceOf?(executionId: string, traceparent: string | undefined): TraceRef | undefined;
  limits: OrchestratorLimits;
  /** The result of an execution as shown to people. */
  resultOf(state: ExecutionState): Json;
  isRetryable(error: unknown): boolean;
  /** True for the error of a store that already has the idempotency key. */
  isDuplicateKey(error: unknown): boolean;
  unavailable(error: unknown): FlowError | undefined;
  observer: OrchestratorObserver;
}

/** Limits of the orchestrator; times in milliseconds. */
export interface OrchestratorLimits {
  leaseMs: number;
  /** `FLOW_COMMAND_LOST_LIMIT`: claims of a command that are lost with their workers before it fails. */
  lostClaims: number;
  /** Deliveries of a batch that end with the death of their server before its execution fails with POISONED. Default 3. */
  deliveries?: number;
  /** `FLOW_BATCH_ACCEPT_ENQUEUE_TIMEOUT_SECONDS`: how long a request may wait for its turn; a batch: to be durable. */
  ackMs: number;
  /** `FLOW_BATCH_ACCEPT_QUEUE_MAXSIZE`. */
  queueMax: number;
  /** `FLOW_BATCH_ACCEPT_QUEUE_BYTES`. Default: any. */
  queueBytesMax?: number;
  /** `FLOW_BATCH_PROCESSING_TIMEOUT_SECONDS`. */
  processingMs: number;
  /** `FLOW_BATCH_ACCEPT_WORKERS`: rounds written at a time, while the next one is decided. */
  processors: number;
  /** Limits for commands that wait in memory; default: those of `services/orchestration/rounds/ready-queue`. */
  ready?: Pick<ReadyOptions, "groupMax" | "readyMax" | "groupMin">;
  /** Executions kept in memory; default: that of `services/orchestration/memory/execution-cache`. */
  executionsMax?: number;
}

/** Receives what happens, for metrics, logs and other processes. No method may throw. */
export interface OrchestratorObserver {
  /** After a commit. */
  committed(commit: Commit): void;
  /** A batch is in the log, this long after it arrived. */
  batchAccepted(seconds: number): void;
  /** A batch was not accepted in time. */
  ackTimedOut(): void;
  /** The first command of a batch was claimed, this long after the batch arrived. */
  firstClaim(seconds: number): void;
  /** A command was claimed, this long after it became ready. */
  claimed(queuedSeconds: number): void;
  /** Commands were given back by a worker that signed off, and may be claimed. */
  returned(commandIds: readonly string[]): void;
  /** A fault of this program. */
  fault(error: unknown, executionIds: readonly string[]): void;
}

/** Background work beside the requests; each call is one run and returns how much it found. */
export interface Recovery {
  /**
   * Finds PENDING commands that this process was not notified of: issued by another server, or before this process started. The
   * fallback for every lost notification.
   */
  poll(): Promise<number>;
  /** Decides what follows from batches that were accepted and then idle for `idleMs`: their server died. */
  recover(idleMs: number): Promise<number>;
  /** Ends executions that are past their deadline. */
  expire(): Promise<number>;
  /** Wakes parked commands whose time has come; returns their number, at most 1,000: then there may be more. */
  wake(): Promise<number>;
  /** Evicts idle executions from memory. */
  sweep(): void;
}
