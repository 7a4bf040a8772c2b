import type { KnownBatch } from "../../ports/execution-store.ts";
import type { ReportedEvent } from "../../schema/api/event-input.ts";
import { ERROR_STATUS, FlowError, messageOf } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { otherBody } from "../errors.ts";
import { failBatchJob, failExecution, jobBase, markerJob, NO_CALLER, processBatchJob } from "./jobs.ts";
import type { LiveExecution } from "./memory/load-execution.ts";
import type { Orchestrator, ReportInput, ReportOutcome, ReportRequest } from "./orchestrator.ts";
import type { OrchestratorParts } from "./parts.ts";
import { createReportJob, type ReportJob, refused } from "./report-job.ts";
import type { Committed, Job, PendingClaim } from "./rounds/round.ts";
import type { ClaimedCommand, ClaimInput } from "./rounds/types.ts";

/** Longest time that a batch's `completed` marker waits to be written together with events of its execution, milliseconds. */
const MARKER_MS = 500;
/** Number of faults of the server over the report of a command's failure after which it ends the execution. */
const FAULTS_MAX = 3;
/** Commands whose faults are counted. Beyond this number, counting starts again: the workers continue to send. */
const COUNTED_MAX = 1_000;

/** {@link Orchestrator.report}. */
export function createReport(parts: OrchestratorParts, offer: Orchestrator["offer"]): Orchestrator["report"] {
  /** Unanswered requests with a key, so that a request sent twice at once is written once. The store knows the others. */
  const inFlight = new Map<string, { bodySha256: string; outcome: Promise<ReportOutcome> }>();
  const countFault = createFaultCount(parts);
  const attempt = async (request: ReportRequest) => {
    const leave = parts.gate.enter("worker_unavailable", request.bytes ?? 0);
    try {
      const input = await withExecutions(parts, request.isRedelivered === true ? withoutClaim(request) : request);
      return await send(parts, input, offer, leave).catch(async (error: unknown) => {
        await countFault(input, error);
        throw error;
      });
    } finally {
      leave();
    }
  };
  const once = async (request: ReportRequest): Promise<ReportOutcome> => {
    const { caller, idempotencyKey: key, bodySha256 } = request;
    if (key === null) return await attempt(request);
    const place = JSON.stringify([caller, key]);
    const earlier = inFlight.get(place);
    if (earlier !== undefined) {
      if (earlier.bodySha256 !== bodySha256) throw otherBody(key);
      // Commands are returned only once.
      return { ...(await earlier.outcome), commands: [], duplicate: true };
    }
    const outcome = attempt(request)
      .catch((error) => recall(parts, request, key, error))
      .finally(() => inFlight.delete(place));
    inFlight.set(place, { bodySha256, outcome });
    return await outcome;
  };
  return async (request) => {
    try {
      return await once(request);
    } catch (error) {
      const away = parts.unavailable(error);
      throw away === undefined ? error : notEnqueued(away);
    }
  };
}

function withoutClaim({ claim: _, ...request }: ReportRequest): ReportRequest {
  return request;
}

/** A batch that cannot be written, or whose events are not acceptable, may have been written before: look up its key. */
async function recall(
  parts: OrchestratorParts,
  { caller, bodySha256 }: ReportRequest,
  key: string,
  error: unknown,
): Promise<ReportOutcome> {
  const isRefusal = error instanceof FlowError && error.code === "CONFLICT";
  if (!isRefusal && !parts.isDuplicateKey(error)) throw error;
  const known: KnownBatch | undefined = await parts.store.findBatch(caller, key);
  if (known === undefined) throw error;
  if (known.bodySha256 !== bodySha256) throw otherBody(key);
  const { requestId, eventIds, commandsGenerated } = known;
  return { requestId, eventIds, commandsGenerated, queueDepth: parts.roundLoop.depth(), duplicate: true, commands: [] };
}

/** Events without an execution belong to the execution of their command. An unknown command refuses the whole batch. */
async function withExecutions({ store }: OrchestratorParts, request: ReportRequest): Promise<ReportInput> {
  // flow's own workers always name it.
  if (request.events.every(hasExecution)) return { ...request, events: request.events };
  const lacking = request.events.filter((sent) => !hasExecution(sent));
  const known = await store.executionsOf([...new Set(lacking.map(({ event }) => event.command_id))]);
  const events = request.events.map((sent) => {
    return { ...sent, executionId: sent.executionId ?? known.get(sent.event.command_id) };
  });
  if (events.every(hasExecution)) return { ...request, events };
  const unknown = events.flatMap((sent, index) =>
    hasExecution(sent) ? [] : [{ index, command_id: sent.event.command_id, reason: "unknown" as const }],
  );
  throw refused(unknown, events.length);
}

type Located = ReportInput["events"][number];

function hasExecution(sent: { executionId: string | undefined; event: ReportedEvent }): sent is Located {
  return sent.executionId !== undefined;
}

/**
 * Queues the report, and waits until it is written and its claim is answered, however long other reports take; the time limits
 * are for a store that stands still. `leave` is called when it is in the queue.
 */
async function send(
  parts: OrchestratorParts,
  input: ReportInput,
  offer: Orchestrator["offer"],
  leave: () => void,
): Promise<ReportOutcome> {
  const { ids, roundLoop, limits, observer, deadlines, now } = parts;
  if (!ids.isReady()) await ids.ready();
  const arrivedAt = now();
  const requestId = String(ids.next());
  const abandoned = input.claim && { worker: input.claim.worker, isGone: false };
  const giveBack = (commandIds: string[]) => void offer(commandIds, abandoned);
  const answer = createAnswer(input.claim, giveBack);
  const job = createReportJob({
    ...input,
    requestId,
    pendingClaim: answer.pendingClaim,
    now,
    trace: { arrivedAt, isClaimed: false },
    settle(committed) {
      observer.batchAccepted((now() - arrivedAt) / 1_000);
      afterwards(parts, job, input, committed, arrivedAt);
      answer.written();
    },
    fail: answer.refuse,
    isGivenUp: answer.isOver,
  });
  parts.gate.checkShare(job.executionIds);
  const cancelAck = deadlines.add(limits.ackMs, () => {
    // A report that is being written may be answered by its commit; it is given up only if no round has started on it.
    if (job.hasBegun && input.claim !== undefined) return;
    observer.ackTimedOut();
    answer.refuse(notTaken(limits.ackMs));
  });
  const cancelLimit = deadlines.add(limits.processingMs, () => answer.refuse(tooSlow(limits.processingMs)));
  leave();
  roundLoop.push(job);
  try {
    const commands = await answer.commands;
    const { eventIds, commandsGenerated } = job;
    return { requestId, eventIds, commandsGenerated, queueDepth: roundLoop.depth(), duplicate: false, commands };
  } finally {
    cancelAck();
    cancelLimit();
  }
}

/** The answer of one report. It ends after its commit and then its claim, or earlier with a refusal. */
interface Answer {
  /** The claimed commands; rejects with the error of the refusal. */
  commands: Promise<ClaimedCommand[]>;
  /** Undefined if nothing is claimed: then the commit ends the answer. */
  pendingClaim: PendingClaim | undefined;
  isOver(): boolean;
  written(): void;
  refuse(error: unknown): void;
}

/** @param giveBack receives commands that were claimed for an answer that was refused: others take them at once. */
function createAnswer(claim: ClaimInput | undefined, giveBack: (commandIds: string[]) => void): Answer {
  let stage: "queued" | "written" | "over" = "queued";
  const commands: ClaimedCommand[] = [];
  let resolve: (commands: ClaimedCommand[]) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const end = () => {
    stage = "over";
    resolve(commands);
  };
  const giveAllBack = (claimed: readonly ClaimedCommand[]) => {
    if (claimed.length > 0) giveBack(claimed.map(({ command }) => command.command_id));
  };
  const pendingClaim = claim && {
    input: claim,
    tentative: [],
    deliver(claimed: ClaimedCommand[]) {
      if (stage === "over") return giveAllBack(claimed);
      // A first try may have claimed commands, although the report itself has to be run again.
      commands.push(...claimed);
      this.input = { ...this.input, limit: this.input.limit - claimed.reduce((sum, { slots }) => sum + slots, 0) };
      if (stage === "written") end();
    },
  };
  return {
    commands: new Promise((...ends) => {
      [resolve, reject] = ends;
    }),
    pendingClaim,
    isOver: () => stage === "over",
    written() {
      if (stage !== "queued") return;
      stage = "written";
      if (pendingClaim === undefined) end();
    },
    refuse(error) {
      if (stage === "over") return;
      stage = "over";
      reject(error);
      giveAllBack(commands);
    },
  };
}

/**
 * Counts faults of this program over reports. A worker that cannot get its events processed finally reports its command as
 * failed. If even the consequences of that cannot be decided, one worker after the other would get the command. So the
 * execution is ended as failed. Call it with each report that was not written, and the error.
 */
function createFaultCount(parts: OrchestratorParts): (input: ReportInput, error: unknown) => Promise<void> {
  const counts = new Map<string, number>();
  return async ({ events }, error) => {
    // Refusals and an unavailable store do not count.
    const isFault = !(error instanceof FlowError) || ERROR_STATUS[error.code] === 500;
    if (!isFault || !events.every(({ event }) => event.type === "command.failed")) return;
    if (counts.size >= COUNTED_MAX) counts.clear();
    for (const { executionId, event } of events) {
      const count = (counts.get(event.command_id) ?? 0) + 1;
      counts.set(event.command_id, count);
      if (count < FAULTS_MAX) continue;
      counts.delete(event.command_id);
      await failExecution(parts, executionId, `the failure of command ${event.command_id}`, error, "POISONED");
    }
  };
}

/** Processes events that were only accepted, and marks the end in the log. */
function afterwards(
  parts: OrchestratorParts,
  job: ReportJob,
  input: ReportInput,
  committed: Committed,
  arrivedAt: number,
): void {
  const { roundLoop, cache, now } = parts;
  const [executionId] = job.executionIds;
  if (executionId === undefined) return;
  const mark = (end: Committed, commandsGenerated: number) => {
    const context = batchTimings(job.requestId, end, { arrivedAt, endedAt: now(), commandsGenerated });
    cache.entry(executionId).markers.push({ type: "batch.completed", at: now(), context });
    parts.deadlines.add(MARKER_MS, () => {
      if (cache.entry(executionId).markers.length > 0 && !parts.gate.isClosed()) roundLoop.push(markersOf(executionId));
    });
  };
  if (job.processed) {
    mark(committed, job.commandsGenerated);
    return;
  }
  const accepted = new Map<string, LiveExecution | null>(
    job.executionIds.map((id) => [id, cache.peek(id)?.live ?? null]),
  );
  const undecided = (id: string, live: LiveExecution) =>
    accepted.get(id) === live
      ? []
      : input.events.filter((sent) => sent.executionId === id).map(({ event }) => ({ event, eventId: undefined }));
  const ends = {
    settle: (end: Committed) => {
      parts.underWay.delete(job.requestId);
      mark(end, follower.commandsGenerated);
    },
    fail: (error: unknown) => failBatch(parts, job, error),
  };
  parts.underWay.add(job.requestId);
  const follower = processBatchJob(job.requestId, jobBase([...job.executionIds], ends), undecided);
  roundLoop.unshift(follower);
}

/**
 * Writes the markers that wait at an execution, if no events came to carry them. If this fails, only the details of the log are
 * incomplete.
 */
export function markersOf(executionId: string): Job {
  return markerJob(jobBase([executionId], NO_CALLER));
}

/**
 * Handles a batch whose consequences could not be decided. While the store is unavailable it stays accepted, and recovery tries
 * again. Any other error would occur again: the batch is marked as failed, so that callers see this in its status, and its
 * executions are ended, as they would otherwise wait forever.
 */
export function failBatch(
  parts: OrchestratorParts,
  { requestId, executionIds }: Pick<ReportJob, "requestId" | "executionIds">,
  error: unknown,
): void {
  const { roundLoop, unavailable } = parts;
  if (unavailable(error) !== undefined) return;
  if (error instanceof FlowError && ERROR_STATUS[error.code] === 503) return;
  const code = error instanceof FlowError && error.code === "processing_timeout" ? error.code : "processing_error";
  roundLoop.push(failBatchJob({ requestId, code, message: messageOf(error) }, jobBase([], NO_CALLER)));
  for (const id of executionIds) void failExecution(parts, id, `event batch ${requestId}`, error);
}

/** It is unknown whether it was written; the caller finds out by sending the same request with its key again. */
function notEnqueued(cause: FlowError): FlowError {
  const next = "Send it again under its idempotency key";
  return new FlowError("enqueue_error", `The batch could not be written: ${cause.message}. ${next}`, { cause });
}

function notTaken(ms: number): FlowError {
  const message = `The batch was not written within ${ms / 1_000} s`;
  return new FlowError("ack_timeout", `${message}. Send it again under the same idempotency key`);
}

function tooSlow(ms: number): FlowError {
  const message = `The batch was not processed within ${ms / 1_000} s`;
  return new FlowError("processing_timeout", `${message}. Send it again under the same idempotency key`);
}

/**
 * `result.context` of `batch.completed` (interface specification, "Events"). A round writes everything with one statement:
 * `commit_ms` is that statement, persisting and saving included; what it holds cannot be timed apart.
 *
 * - `lock_acquire_ms`: how long the events waited for their execution. Within a server, rounds are kept apart by taking turns
 * in memory, not by a database lock.
 * - `pool_checkout_ms`: 0, the connections that write are not shared with anything else.
 */
function batchTimings(
  requestId: string,
  { timings }: Committed,
  batch: { arrivedAt: number; endedAt: number; commandsGenerated: number },
): Record<string, Json> {
  const processing = Math.max(0, batch.endedAt - batch.arrivedAt);
  const waited = Math.max(0, processing - timings.engineMs - timings.flushMs);
  return {
    request_id: requestId,
    processing_ms: processing,
    pool_checkout_ms: 0,
    lock_acquire_ms: waited,
    state_load_ms: 0,
    engine_total_ms: timings.engineMs,
    save_state_ms: timings.flushMs,
    save_state_calls: 1,
    save_state_terminal_lightweight_ms: 0,
    save_state_terminal_lightweight_calls: 0,
    persist_event_compat_ms: timings.flushMs,
    persist_event_compat_calls: 1,
    save_state_coalesced_count: Math.max(0, timings.events - timings.executions),
    commit_ms: timings.flushMs,
    transaction_ms: timings.engineMs + timings.flushMs,
    issue_commands_ms: 0,
    actionable_event: true,
    commands_generated: batch.commandsGenerated,
  };
}
