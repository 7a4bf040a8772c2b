import { accept } from "../../engine/state/accept.ts";
import type { BatchChange } from "../../ports/execution-store.ts";
import type { ReportedEvent } from "../../schema/api/event-input.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { applyEvent, applyUndecided, foldOnly } from "./rounds/apply-event.ts";
import type { BatchTrace, ChangeSet } from "./rounds/change-set.ts";
import type { Committed, Job, PendingClaim, Round } from "./rounds/round.ts";
import { completeReport, judgeReport, type Refusal } from "./validate-report.ts";

/** A batch of events on its way into the log. */
export interface ReportJob extends Job {
  requestId: string;
  /** Ids of its events in the log, known after the commit. */
  eventIds: number[];
  commandsGenerated: number;
  /** Was everything decided that follows, or only the events accepted? */
  processed: boolean;
  /** A round has looked at it. */
  hasBegun: boolean;
}

/** What a report is made of. */
export interface ReportParts {
  requestId: string;
  caller: string;
  idempotencyKey: string | null;
  bodySha256: string;
  events: { executionId: string; event: ReportedEvent }[];
  /** Who wants commands with the answer; undefined: accept only, what follows is worked out afterwards. */
  pendingClaim: PendingClaim | undefined;
  /** The caller waits for what follows, also without a claim. */
  isAwaited?: boolean;
  now(): number;
  trace: BatchTrace;
  settle(committed: Committed): void;
  fail(error: unknown): void;
  /** Nobody waits for the answer any more. */
  isGivenUp(): boolean;
}

/** An event of a batch, with its place in it. */
interface Entry {
  index: number;
  executionId: string;
  event: ReportedEvent;
  /** Its id in the log, and what followed from it; of a try that was not written they count for nothing. */
  eventId: number | undefined;
  commands: number;
}

/**
 * Makes the job of a report. All of its events are written, or none, but for a batch of several executions of which another
 * server has moved some at the same moment: these are written after the others.
 */
export function createReportJob(parts: ReportParts): ReportJob {
  const { pendingClaim } = parts;
  const entries = parts.events.map((sent, index): Entry => ({ ...sent, index, eventId: undefined, commands: 0 }));
  let rest = entries;
  const executionIds = executionsOf(entries);
  const job: ReportJob = {
    requestId: parts.requestId,
    executionIds,
    alone: false,
    isVerified: false,
    eventIds: [],
    commandsGenerated: 0,
    // A part of an accepted batch that is written without the rest would be followed up by nobody if this server dies.
    processed: pendingClaim !== undefined || parts.isAwaited === true || executionIds.length > 1,
    ...(pendingClaim !== undefined && { pendingClaim }),
    hasBegun: false,
    isAbandoned: () => parts.isGivenUp() && !job.hasBegun,
    check(round) {
      job.hasBegun = true;
      // What an earlier try claimed was delivered, or taken back with that try.
      if (pendingClaim !== undefined) pendingClaim.tentative = [];
      const refusals = judgeReport(rest, (id) => round.changes(id)?.live);
      if (refusals.length === 0) return;
      const told = refusals.map((refusal) => ({ ...refusal, index: rest[refusal.index]?.index ?? 0 }));
      throw refused(told, entries.length);
    },
    async apply(round) {
      if (rest[0] === entries[0]) markAccepted(round, parts);
      for (const executionId of job.executionIds) changesOf(round, executionId).batch = parts.trace;
      if (job.processed) await process(round, rest);
      else await acceptOnly(round, rest);
      job.eventIds = entries.flatMap(({ eventId }) => eventId ?? []);
      job.commandsGenerated = entries.reduce((sum, { commands }) => sum + commands, 0);
      round.batch(batchRow(job, executionIds, parts));
    },
    settle: parts.settle,
    fail: parts.fail,
    keepRest(moved) {
      rest = rest.filter(({ executionId }) => !moved.has(executionId));
      job.executionIds = executionsOf(rest);
    },
  };
  return job;
}

function executionsOf(events: readonly { executionId: string }[]): string[] {
  return [...new Set(events.map(({ executionId }) => executionId))];
}

/** The events and all that follows from each, in order. */
async function process(round: Round, entries: readonly Entry[]): Promise<void> {
  for (const entry of entries) {
    Object.assign(entry, UNWRITTEN);
    const changes = changesOf(round, entry.executionId);
    await applyUndecided(changes, round.applyDeps);
    const event = completeReport(changes.live, entry.event);
    // An earlier event of the batch may have ended the run: this one is late then, and changes nothing.
    if (accept(changes.live.state, event) !== "accepted") continue;
    const place = changes.count();
    entry.commands = await applyEvent(changes, event, round.applyDeps);
    entry.eventId = changes.idAt(place);
  }
}

/** Only folds the events. What was accepted before must be decided first: the log has it in that order. */
async function acceptOnly(round: Round, entries: readonly Entry[]): Promise<void> {
  for (const executionId of executionsOf(entries)) await applyUndecided(changesOf(round, executionId), round.applyDeps);
  for (const entry of entries) {
    Object.assign(entry, UNWRITTEN);
    const changes = changesOf(round, entry.executionId);
    const event = completeReport(changes.live, entry.event);
    if (accept(changes.live.state, event) === "accepted") entry.eventId = foldOnly(changes, [event])[0];
  }
}

const UNWRITTEN = { eventId: undefined, commands: 0 } satisfies Partial<Entry>;

/** The marker stands in the log of the batch's first execution: one row for a batch, however many executions it is about. */
function markAccepted(round: Round, parts: ReportParts): void {
  const { events } = parts;
  const [first] = events;
  if (first === undefined) return;
  changesOf(round, first.executionId).marker({
    type: "batch.accepted",
    at: parts.now(),
    context: { request_id: parts.requestId, caller: parts.caller, events: events.length },
  });
}

function batchRow(job: ReportJob, executionIds: string[], parts: ReportParts): BatchChange {
  const { requestId, caller, idempotencyKey, bodySha256 } = parts;
  return {
    requestId,
    accept: { caller, idempotencyKey, bodySha256, executionIds, eventIds: job.eventIds },
    state: job.processed ? "completed" : "accepted",
    commandsGenerated: job.commandsGenerated,
    executionIds: job.executionIds,
  };
}

function changesOf(round: Round, executionId: string): ChangeSet {
  const changes = round.changes(executionId);
  if (changes === undefined) throw new Error(`Execution ${executionId} is not loaded`);
  return changes;
}

/** The refusal of a batch of `total` events, of which these cannot be accepted. */
export function refused(refusals: Refusal[], total: number): FlowError {
  const [first] = refusals;
  const what = `${refusals.length} of ${total} events cannot be accepted; nothing of the batch was written`;
  const why = `event ${first?.index} of command ${first?.command_id}: ${first === undefined ? "" : REASONS[first.reason]}`;
  return new FlowError("CONFLICT", `${what}. The first, ${why}`, {
    detail: { events: refusals as unknown as Json },
  });
}

const REASONS: Record<Refusal["reason"], string> = {
  unknown: "no such command is open in that execution; it never was, or its end was reported before",
  foreign: "another worker holds it, or nobody yet: claim it first",
  stale: "that is not its present claim, another one has taken it since: drop the work",
  late: "the execution has ended: drop the work",
  early: "results or iterations that it speaks of have not arrived: send events in the order in which they happened",
};
