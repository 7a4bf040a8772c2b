import type { KnownBatch } from "../../ports/execution-store.ts";
import { ERROR_STATUS, FlowError, messageOf } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { createFaultCount, failExecution } from "./fail-execution.ts";
import { failBatchJob, jobBase, markerJob, processBatchJob } from "./jobs.ts";
import type { LiveExecution } from "./memory/load-execution.ts";
import type { Orchestrator, ReportInput, ReportOutcome } from "./orchestrator.ts";
import type { OrchestratorParts } from "./parts.ts";
import { createReportJob, type ReportJob } from "./report-job.ts";
import type { Committed, Job, PendingClaim } from "./rounds/round.ts";
import type { ClaimedCommand } from "./rounds/types.ts";
import { otherBody } from "./start.ts";

/** A batch's `completed` marker waits this long for events of its execution to travel with, milliseconds. */
const MARKER_MS = 500;

/** `Advance.report`. */
export function createReport(parts: OrchestratorParts, offer: Orchestrator["offer"]): Orchestrator["report"] {
  /** Requests with a key that are not answered yet, so that one sent twice at once is written once. The store knows the others. */
  const inFlight = new Map<string, { bodySha256: string; outcome: Promise<ReportOutcome> }>();
  const countFault = createFaultCount(parts);
  const attempt = (input: ReportInput) =>
    send(parts, input, offer).catch(async (error: unknown) => {
      await countFault(input, error);
      throw error;
    });
  return async (input) => {
    parts.checkOpen("worker_unavailable");
    const key = input.idempotencyKey;
    if (key === null) return await attempt(input);
    const place = JSON.stringify([input.caller, key]);
    const earlier = inFlight.get(place);
    if (earlier !== undefined) {
      if (earlier.bodySha256 !== input.bodySha256) throw otherBody(key);
      // Commands are answered once.
      return { ...(await earlier.outcome), commands: [], duplicate: true };
    }
    const outcome = attempt(input)
      .catch((error) => recall(parts, input, key, error))
      .finally(() => inFlight.delete(place));
    inFlight.set(place, { bodySha256: input.bodySha256, outcome });
    return await outcome;
  };
}

/** A batch that cannot be written, or whose events are not acceptable, may have been written before: its key tells. */
async function recall(
  parts: OrchestratorParts,
  input: ReportInput,
  key: string,
  error: unknown,
): Promise<ReportOutcome> {
  const isRefusal = error instanceof FlowError && error.code === "CONFLICT";
  if (!isRefusal && !parts.isDuplicateKey(error)) throw error;
  const known: KnownBatch | undefined = await parts.store.findBatch(input.caller, key);
  if (known === undefined) throw error;
  if (known.bodySha256 !== input.bodySha256) throw otherBody(key);
  const { requestId, eventIds, commandsGenerated } = known;
  return { requestId, eventIds, commandsGenerated, queueDepth: parts.roundLoop.depth(), duplicate: true, commands: [] };
}

async function send(
  parts: OrchestratorParts,
  input: ReportInput,
  offer: Orchestrator["offer"],
): Promise<ReportOutcome> {
  const { ids, roundLoop, limits, observer, now } = parts;
  if (!ids.isReady()) await ids.ready();
  const arrivedAt = now();
  const requestId = String(ids.next());
  return await new Promise<ReportOutcome>((resolve, reject) => {
    let hasBegun = false;
    let isOver = false;
    let commands: ClaimedCommand[] = [];
    let written: ReportJob | undefined;
    const finish = (call: () => void) => {
      if (isOver) return;
      isOver = true;
      cancelAck();
      cancelLimit();
      call();
    };
    /** What was claimed for an answer that is none: for others at once, not when the lease is over. */
    const giveBack = () => {
      const ids = commands.map(({ command }) => command.command_id);
      commands = [];
      if (ids.length > 0) void offer(ids, input.claim?.worker);
    };
    const refuse = (error: unknown) => {
      finish(() => reject(error));
      giveBack();
    };
    const answer = () => {
      if (isOver) return giveBack();
      if (written === undefined) return;
      const { eventIds, commandsGenerated } = written;
      const queueDepth = roundLoop.depth();
      const claimed = commands;
      commands = [];
      finish(() =>
        resolve({ requestId, eventIds, commandsGenerated, queueDepth, duplicate: false, commands: claimed }),
      );
    };
    const pendingClaim: PendingClaim | undefined = input.claim && {
      input: input.claim,
      tentative: [],
      deliver(claimed) {
        // A first try may have claimed something, although the report itself has to be run again.
        commands.push(...claimed);
        this.input = { ...this.input, limit: this.input.limit - claimed.length };
        answer();
      },
    };
    const cancelAck = parts.deadlines.add(limits.ackMs, () => {
      // One that is being written may be answered by its commit; it is only given up when nobody has looked at it.
      if (hasBegun && pendingClaim !== undefined) return;
      observer.ackTimedOut();
      refuse(notTaken(limits.ackMs));
    });
    const cancelLimit = parts.deadlines.add(limits.processingMs, () => refuse(tooSlow(limits.processingMs)));
    const job = createReportJob({
      ...input,
      requestId,
      pendingClaim,
      now,
      trace: { arrivedAt, isClaimed: false },
      settle(settled, committed) {
        written = settled;
        observer.batchAccepted((now() - arrivedAt) / 1_000);
        afterwards(parts, settled, input, committed, arrivedAt);
        // With a pending claim, the answer comes with what was claimed for it.
        if (pendingClaim === undefined) answer();
      },
      fail: refuse,
      isAbandoned: () => isOver && !hasBegun,
    });
    const { check } = job;
    job.check = (round) => {
      hasBegun = true;
      if (pendingClaim !== undefined) pendingClaim.tentative = [];
      check(round);
    };
    roundLoop.push(job);
  });
}

/** Processes what was only accepted, and marks the end in the log. */
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
      if (cache.entry(executionId).markers.length > 0 && !parts.isClosed()) roundLoop.push(markersOf(executionId));
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
    settle: (end: Committed) => mark(end, follower.commandsGenerated),
    fail: (error: unknown) => failBatch(parts, job, error),
  };
  const follower = processBatchJob(job.requestId, jobBase([...job.executionIds], ends), undecided);
  roundLoop.unshift(follower);
}

/** Writes the markers that wait at an execution, if there is nobody to travel with. What fails is only told less exactly. */
export function markersOf(executionId: string): Job {
  return markerJob(jobBase([executionId], { settle: () => undefined, fail: () => undefined }));
}

/**
 * A batch whose consequences could not be worked out. While the store is away it stays accepted, and recovery tries again;
 * what fails for any other reason would fail again: the batch is failed, so that whoever asks for its status is told, and its
 * executions are ended, which would otherwise wait for ever for what follows.
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
  roundLoop.push(
    failBatchJob(
      { requestId, code, message: messageOf(error) },
      jobBase([], { settle: () => undefined, fail: () => undefined }),
    ),
  );
  for (const id of executionIds) void failExecution(parts, id, `event batch ${requestId}`, error);
}

function notTaken(ms: number): FlowError {
  const message = `The batch was not taken within ${ms / 1_000} s`;
  return new FlowError("ack_timeout", `${message}. Send it again under the same idempotency key`);
}

function tooSlow(ms: number): FlowError {
  const message = `What follows from the batch was not worked out within ${ms / 1_000} s`;
  return new FlowError("processing_timeout", `${message}. Send it again under the same idempotency key`);
}

/**
 * `result.context` of `batch.completed` (interface specification, "Events"). A round writes everything with one statement:
 * `commit_ms` is that statement, persisting and saving included; what it holds cannot be timed apart.
 *
 * - `lock_acquire_ms`: how long the events waited for their execution: its turn in memory, not a lock of the database, is what keeps
 *   rounds apart within a server.
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
