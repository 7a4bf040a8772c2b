import { accept } from "../../engine/state/accept.ts";
import type { AttachedPayload, BatchChange } from "../../ports/execution-store.ts";
import type { ReportedEvent } from "../../schema/api/event-input.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import type { ReportInput } from "./orchestrator.ts";
import { applyEvent, applyUndecided, foldOnly } from "./rounds/apply-event.ts";
import type { BatchTrace, ChangeSet } from "./rounds/change-set.ts";
import type { Committed, Job, PendingClaim, Round } from "./rounds/round.ts";
import { completeReport, judgeReport, type Refusal } from "./validate-report.ts";

/** A batch of events that is being written to the log. */
export interface ReportJob extends Job {
  requestId: string;
  /** Ids of its events in the log, known after the commit. */
  eventIds: number[];
  commandsGenerated: number;
  /** True if everything that follows was decided, false if the events were only accepted. */
  processed: boolean;
  /** A round has started on it. */
  hasBegun: boolean;
}

/** The input of a report job. */
export interface ReportParts {
  requestId: string;
  caller: string;
  idempotencyKey: string | null;
  bodySha256: string;
  /** Length of the request. Default 0. */
  bytes?: number;
  events: ReportInput["events"];
  /** The claim to answer with commands; undefined: only accept the events, their consequences are decided afterwards. */
  pendingClaim: PendingClaim | undefined;
  /** The caller sent it before without an answer: that delivery counts as one that its server did not survive. */
  isRedelivered?: boolean;
  /** The caller waits for the consequences, even without a claim. */
  isAwaited?: boolean;
  now(): number;
  trace: BatchTrace;
  settle(committed: Committed): void;
  fail(error: unknown): void;
  /** The caller no longer waits for the answer. */
  isGivenUp(): boolean;
}

/** An event of a batch, with its position in it. */
interface Entry {
  index: number;
  executionId: string;
  event: ReportedEvent;
  /** Written with it. */
  attached: readonly AttachedPayload[];
  /** Its id in the log, and the number of commands that followed from it; values of a try that was not written are discarded. */
  eventId: number | undefined;
  commands: number;
}

/**
 * Creates the job of a report. Either all of its events are written or none; except that a batch of several executions, of
 * which another server has just changed some, writes the events of those after the others.
 */
export function createReportJob(parts: ReportParts): ReportJob {
  const { pendingClaim } = parts;
  // Field by field: a spread takes 5 µs for each event.
  const entries = parts.events.map(({ executionId, event, attached = NONE_ATTACHED }, index): Entry => {
    return { index, executionId, event, attached, eventId: undefined, commands: 0 };
  });
  let rest = entries;
  const executionIds = executionsOf(entries);
  const job: ReportJob = {
    requestId: parts.requestId,
    executionIds,
    bytes: parts.bytes ?? 0,
    alone: false,
    isVerified: false,
    eventIds: [],
    commandsGenerated: 0,
    // If a part of an accepted batch were written without the rest, no server would follow it up after this server dies.
    processed: pendingClaim !== undefined || parts.isAwaited === true || executionIds.length > 1,
    ...(pendingClaim !== undefined && { pendingClaim }),
    hasBegun: false,
    isAbandoned: () => parts.isGivenUp() && !job.hasBegun,
    check(round) {
      job.hasBegun = true;
      // Commands claimed by an earlier try were delivered, or taken back with that try.
      if (pendingClaim !== undefined) pendingClaim.tentative = [];
      const refusals = judgeReport(rest, (id) => round.changes(id)?.live);
      if (refusals.length === 0) return;
      const told = refusals.map((refusal) => ({ ...refusal, index: rest[refusal.index]?.index ?? 0 }));
      throw refused(told, entries.length);
    },
    async apply(round) {
      const isFirst = rest[0] === entries[0];
      if (isFirst && parts.isRedelivered !== true) markAccepted(round, parts);
      for (const executionId of job.executionIds) changesOf(round, executionId).batch = parts.trace;
      if (job.processed) await process(round, rest);
      else await acceptOnly(round, rest);
      // After the events, where recovery looks for what became of them.
      if (isFirst && parts.isRedelivered === true) markAccepted(round, parts);
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

/** Large results are written with their event, which follows. Decisions can read them at once. */
function attach({ live }: ChangeSet, payloads: readonly AttachedPayload[]): void {
  for (const payload of payloads) live.attached.set(payload.ref, payload);
}

const NONE_ATTACHED: readonly AttachedPayload[] = [];

function executionsOf(events: readonly { executionId: string }[]): string[] {
  return [...new Set(events.map(({ executionId }) => executionId))];
}

/** Folds the events and decides all that follows from each, in order. */
async function process(round: Round, entries: readonly Entry[]): Promise<void> {
  for (const entry of entries) {
    Object.assign(entry, UNWRITTEN);
    const changes = changesOf(round, entry.executionId);
    await applyUndecided(changes, round.applyDeps);
    const event = completeReport(changes.live, entry.event);
    // An earlier event of the batch may have ended the run: then this event is late and changes nothing.
    if (accept(changes.live.state, event) !== "accepted") continue;
    attach(changes, entry.attached);
    const place = changes.count();
    entry.commands = await applyEvent(changes, event, round.applyDeps);
    entry.eventId = changes.idAt(place);
  }
}

/** Only folds the events. Events accepted before must be decided first: the log has them in that order. */
async function acceptOnly(round: Round, entries: readonly Entry[]): Promise<void> {
  for (const executionId of executionsOf(entries)) await applyUndecided(changesOf(round, executionId), round.applyDeps);
  for (const entry of entries) {
    Object.assign(entry, UNWRITTEN);
    const changes = changesOf(round, entry.executionId);
    const event = completeReport(changes.live, entry.event);
    if (accept(changes.live.state, event) !== "accepted") continue;
    attach(changes, entry.attached);
    entry.eventId = foldOnly(changes, [event])[0];
  }
}

const UNWRITTEN = { eventId: undefined, commands: 0 } satisfies Partial<Entry>;

/** The marker is in the log of the batch's first execution: one row for a batch, however many executions it concerns. */
function markAccepted(round: Round, parts: ReportParts): void {
  const { events } = parts;
  const [first] = events;
  if (first === undefined) return;
  changesOf(round, first.executionId).marker({
    type: "batch.accepted",
    at: parts.now(),
    context: {
      request_id: parts.requestId,
      caller: parts.caller,
      events: events.length,
      ...(parts.isRedelivered === true && { redelivered: true }),
    },
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

/** The CONFLICT error for a batch of `total` events, of which these cannot be accepted. */
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
