import type { KnownBatch } from "../../ports/execution-store.ts";
import { ERROR_STATUS, FlowError, messageOf } from "../../schema/words/errors.ts";
import { batchTimings } from "./batch-timings.ts";
import { createLastWord, endOverFault } from "./fail-execution.ts";
import { failBatchJob, followJob, jobBase, markerJob } from "./jobs.ts";
import type { LiveExecution } from "./memory/load-execution.ts";
import type { Advance, ClaimedCommand, ReportInput, ReportOutcome } from "./orchestrator.ts";
import type { AdvanceParts } from "./parts.ts";
import { createReportJob, type ReportJob } from "./report-job.ts";
import type { Committed, Demand, Job } from "./rounds/round.ts";
import { otherBody } from "./start.ts";

/** Keys of batches that are remembered, so that a request sent twice at once is written once. The store knows all of them. */
const REMEMBERED_MAX = 5_000;
/** A batch's `completed` marker waits this long for events of its execution to travel with, milliseconds. */
const MARKER_MS = 500;

/** `Advance.report`. */
export function createReport(parts: AdvanceParts, offer: Advance["offer"]): Advance["report"] {
  const remembered = new Map<string, { bodySha256: string; outcome: Promise<ReportOutcome> }>();
  const giveUpOn = createLastWord(parts);
  const attempt = (input: ReportInput) =>
    send(parts, input, offer).catch(async (error: unknown) => {
      await giveUpOn(input, error);
      throw error;
    });
  return async (input) => {
    parts.checkOpen("worker_unavailable");
    const key = input.idempotencyKey;
    if (key === null) return await attempt(input);
    const place = JSON.stringify([input.caller, key]);
    const earlier = remembered.get(place);
    if (earlier !== undefined) {
      if (earlier.bodySha256 !== input.bodySha256) throw otherBody(key);
      return { ...(await earlier.outcome), duplicate: true };
    }
    const outcome = attempt(input).catch((error) => recall(parts, input, key, error));
    // Commands are answered once. Remembered with their contexts, those of 5,000 batches took 150 MB and more.
    const kept = outcome.then((told): ReportOutcome => ({ ...told, commands: [] }));
    remembered.set(place, { bodySha256: input.bodySha256, outcome: kept });
    // What failed may be sent again; what succeeded is forgotten only for newer ones.
    kept.catch(() => remembered.delete(place));
    const [oldest] = remembered.keys();
    if (remembered.size > REMEMBERED_MAX && oldest !== undefined) remembered.delete(oldest);
    return await outcome;
  };
}

/** A batch that cannot be written, or whose events are not acceptable, may have been written before: its key tells. */
async function recall(parts: AdvanceParts, input: ReportInput, key: string, error: unknown): Promise<ReportOutcome> {
  const isRefusal = error instanceof FlowError && error.code === "CONFLICT";
  if (!isRefusal && !parts.isDuplicateKey(error)) throw error;
  const known: KnownBatch | undefined = await parts.store.findBatch(input.caller, key);
  if (known === undefined) throw error;
  if (known.bodySha256 !== input.bodySha256) throw otherBody(key);
  const { requestId, eventIds, commandsGenerated } = known;
  return { requestId, eventIds, commandsGenerated, queueDepth: parts.pump.depth(), duplicate: true, commands: [] };
}

async function send(parts: AdvanceParts, input: ReportInput, offer: Advance["offer"]): Promise<ReportOutcome> {
  const { ids, pump, limits, observer, now } = parts;
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
      const queueDepth = pump.depth();
      const claimed = commands;
      commands = [];
      finish(() =>
        resolve({ requestId, eventIds, commandsGenerated, queueDepth, duplicate: false, commands: claimed }),
      );
    };
    const demand: Demand | undefined = input.claim && {
      input: input.claim,
      held: [],
      deliver(claimed) {
        // A first try may have claimed something, although the report itself has to be run again.
        commands.push(...claimed);
        this.input = { ...this.input, limit: this.input.limit - claimed.length };
        answer();
      },
    };
    const cancelAck = parts.deadlines.add(limits.ackMs, () => {
      // One that is being written may be answered by its commit; it is only given up when nobody has looked at it.
      if (hasBegun && demand !== undefined) return;
      observer.ackTimedOut();
      refuse(notTaken(limits.ackMs));
    });
    const cancelLimit = parts.deadlines.add(limits.processingMs, () => refuse(tooSlow(limits.processingMs)));
    const job = createReportJob({
      ...input,
      requestId,
      demand,
      now,
      trace: { arrivedAt, isClaimed: false },
      settle(settled, committed) {
        written = settled;
        observer.batchAccepted((now() - arrivedAt) / 1_000);
        afterwards(parts, settled, input, committed, arrivedAt);
        // With a demand, the answer comes with what was claimed for it.
        if (demand === undefined) answer();
      },
      fail: refuse,
      isAbandoned: () => isOver && !hasBegun,
    });
    const { check } = job;
    job.check = (round) => {
      hasBegun = true;
      if (demand !== undefined) demand.held = [];
      check(round);
    };
    pump.push(job);
  });
}

/** Processes what was only accepted, and marks the end in the log. */
function afterwards(
  parts: AdvanceParts,
  job: ReportJob,
  input: ReportInput,
  committed: Committed,
  arrivedAt: number,
): void {
  const { pump, lanes, now } = parts;
  const [executionId] = job.executionIds;
  if (executionId === undefined) return;
  const mark = (end: Committed, commandsGenerated: number) => {
    const context = batchTimings(job.requestId, end, { arrivedAt, endedAt: now(), commandsGenerated });
    lanes.of(executionId).markers.push({ type: "batch.completed", at: now(), context });
    parts.deadlines.add(MARKER_MS, () => {
      if (lanes.of(executionId).markers.length > 0 && !parts.isClosed()) pump.push(markersOf(executionId));
    });
  };
  if (job.processed) {
    mark(committed, job.commandsGenerated);
    return;
  }
  const accepted = new Map<string, LiveExecution | null>(
    job.executionIds.map((id) => [id, lanes.known(id)?.live ?? null]),
  );
  const undecided = (id: string, live: LiveExecution) =>
    accepted.get(id) === live
      ? []
      : input.events.filter((sent) => sent.executionId === id).map(({ event }) => ({ event, eventId: undefined }));
  const ends = {
    settle: (end: Committed) => mark(end, follower.commandsGenerated),
    fail: (error: unknown) => giveUp(parts, job, error),
  };
  const follower = followJob(job.requestId, jobBase([...job.executionIds], ends), undecided);
  pump.unshift(follower);
}

/** Writes the markers that wait at an execution, if there is nobody to travel with. What fails is only told less exactly. */
export function markersOf(executionId: string): Job {
  return markerJob(jobBase([executionId], { settle: () => undefined, fail: () => undefined }));
}

/**
 * A batch whose consequences could not be worked out. While the store is away it stays accepted, and the upkeep tries again;
 * what fails for any other reason would fail again: the batch is failed, so that whoever asks for its status is told, and its
 * executions are ended, which would otherwise wait for ever for what follows.
 */
export function giveUp(
  parts: AdvanceParts,
  { requestId, executionIds }: Pick<ReportJob, "requestId" | "executionIds">,
  error: unknown,
): void {
  const { pump, unavailable } = parts;
  if (unavailable(error) !== undefined) return;
  if (error instanceof FlowError && ERROR_STATUS[error.code] === 503) return;
  const code = error instanceof FlowError && error.code === "processing_timeout" ? error.code : "processing_error";
  pump.push(
    failBatchJob(
      { requestId, code, message: messageOf(error) },
      jobBase([], { settle: () => undefined, fail: () => undefined }),
    ),
  );
  for (const id of executionIds) void endOverFault(parts, id, `event batch ${requestId}`, error);
}

function notTaken(ms: number): FlowError {
  const message = `The batch was not taken within ${ms / 1_000} s`;
  return new FlowError("ack_timeout", `${message}. Send it again under the same idempotency key`);
}

function tooSlow(ms: number): FlowError {
  const message = `What follows from the batch was not worked out within ${ms / 1_000} s`;
  return new FlowError("processing_timeout", `${message}. Send it again under the same idempotency key`);
}
