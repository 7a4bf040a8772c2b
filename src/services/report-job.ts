import { accept } from "../engine/accept.ts";
import type { BatchChange } from "../ports/execution-store.ts";
import { FlowError } from "../schema/errors.ts";
import type { ReportedEvent } from "../schema/event-input.ts";
import type { Json } from "../schema/json.ts";
import { completeReport, judgeReport, type Refusal } from "./check-report.ts";
import type { BatchTrace, Draft } from "./draft.ts";
import { fold, follow, followUndecided } from "./follow.ts";
import type { Committed, Demand, Job, Round } from "./round.ts";

/** A batch of events on its way into the log. */
export interface ReportJob extends Job {
  requestId: string;
  /** Ids of its events in the log, known after the commit. */
  eventIds: number[];
  commandsGenerated: number;
  /** Was everything decided that follows, or only the events accepted? */
  processed: boolean;
}

/** What a report is made of. */
export interface ReportParts {
  requestId: string;
  caller: string;
  idempotencyKey: string | null;
  bodySha256: string;
  events: { executionId: string; event: ReportedEvent }[];
  /** Who wants commands with the answer; undefined: accept only, what follows is worked out afterwards. */
  demand: Demand | undefined;
  now(): number;
  trace: BatchTrace;
  settle(job: ReportJob, committed: Committed): void;
  fail(error: unknown): void;
  isAbandoned(): boolean;
}

/** Makes the job of a report. All of its events are written, or none. */
export function createReportJob(parts: ReportParts): ReportJob {
  let events = parts.events;
  const job: ReportJob = {
    requestId: parts.requestId,
    executionIds: executionsOf(events),
    queuedAt: parts.now(),
    alone: false,
    isVerified: false,
    eventIds: [],
    commandsGenerated: 0,
    processed: parts.demand !== undefined,
    isAbandoned: parts.isAbandoned,
    check(round) {
      const refusals = judgeReport(events, (id) => round.draft(id)?.live);
      if (refusals.length > 0) throw refused(refusals, events.length);
    },
    async apply(round) {
      job.eventIds = [];
      job.commandsGenerated = 0;
      markAccepted(round, events, parts);
      for (const executionId of job.executionIds) draftOf(round, executionId).batch = parts.trace;
      if (parts.demand === undefined) await acceptOnly(round, job, events);
      else await process(round, job, events);
      if (parts.demand !== undefined) round.demand(parts.demand);
      round.batch(batchRow(job, parts));
    },
    settle: (committed) => parts.settle(job, committed),
    fail: parts.fail,
    keepRest(moved) {
      events = events.filter(({ executionId }) => !moved.has(executionId));
      job.executionIds = executionsOf(events);
    },
  };
  return job;
}

function executionsOf(events: readonly { executionId: string }[]): string[] {
  return [...new Set(events.map(({ executionId }) => executionId))];
}

/** The events and all that follows from each, in order. */
async function process(round: Round, job: ReportJob, events: ReportParts["events"]): Promise<void> {
  for (const { executionId, event } of events) {
    const draft = draftOf(round, executionId);
    await followUndecided(draft, round.follow);
    completeReport(draft.live, event);
    // An earlier event of the batch may have ended the run: this one is late then, and changes nothing.
    if (accept(draft.live.state, event) !== "accepted") continue;
    const place = draft.count();
    job.commandsGenerated += await follow(draft, event, round.follow);
    job.eventIds.push(draft.idAt(place));
  }
}

/** Only folds the events. What was accepted before must be decided first: the log has it in that order. */
async function acceptOnly(round: Round, job: ReportJob, events: ReportParts["events"]): Promise<void> {
  for (const executionId of job.executionIds) await followUndecided(draftOf(round, executionId), round.follow);
  for (const { executionId, event } of events) {
    const draft = draftOf(round, executionId);
    completeReport(draft.live, event);
    if (accept(draft.live.state, event) === "accepted") job.eventIds.push(...fold(draft, [event]));
  }
}

/** The marker stands in the log of the batch's first execution: one row for a batch, however many executions it is about. */
function markAccepted(round: Round, events: ReportParts["events"], parts: ReportParts): void {
  const [first] = events;
  if (first === undefined) return;
  draftOf(round, first.executionId).marker({
    type: "batch.accepted",
    at: parts.now(),
    context: { request_id: parts.requestId, caller: parts.caller, events: events.length },
  });
}

function batchRow(job: ReportJob, parts: ReportParts): BatchChange {
  const { requestId, caller, idempotencyKey, bodySha256 } = parts;
  return {
    requestId,
    accept: { caller, idempotencyKey, bodySha256, executionIds: job.executionIds, eventIds: job.eventIds },
    state: job.processed ? "completed" : "accepted",
    commandsGenerated: job.commandsGenerated,
    executionIds: job.executionIds,
  };
}

function draftOf(round: Round, executionId: string): Draft {
  const draft = round.draft(executionId);
  if (draft === undefined) throw new Error(`Execution ${executionId} is not loaded`);
  return draft;
}

function refused(refusals: Refusal[], total: number): FlowError {
  const [first] = refusals;
  const what = `${refusals.length} of ${total} events cannot be accepted; nothing of the batch was written`;
  const why = `event ${first?.index} of command ${first?.command_id}: ${first === undefined ? "" : REASONS[first.reason]}`;
  return new FlowError("CONFLICT", `${what}. The first, ${why}`, {
    detail: { events: refusals as unknown as Json },
  });
}

const REASONS: Record<Refusal["reason"], string> = {
  unknown: "no such command is open in that execution; it never was, or its end was reported before",
  stale: "another claim has taken it since: drop the work",
  late: "the execution has ended: drop the work",
  early: "results or iterations that it speaks of have not arrived: send events in the order in which they happened",
};
