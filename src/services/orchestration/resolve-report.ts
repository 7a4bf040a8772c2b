import type { Database } from "../../repositories/database/database.ts";
import { unavailable } from "../../repositories/database/error-codes.ts";
import { findCommandExecutions } from "../../repositories/orchestration/find-startable.ts";
import type { ReportedEvent } from "../../schema/api/event-input.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Orchestrator, ReportInput, ReportOutcome } from "./orchestrator.ts";

/** A request's events; who sent one without its execution knows the command only. */
export interface ReportRequest extends Omit<ReportInput, "events"> {
  events: { executionId: string | undefined; event: ReportedEvent }[];
}

/**
 * Hands events on to {@link Orchestrator.report}. Events without an execution are those of their command; a command that nobody
 * knows refuses the batch as a whole: `FlowError` CONFLICT with `detail.events`. A batch that cannot be written because the
 * database is away is refused with `enqueue_error` (interface specification, Errors): nobody knows whether it was written, and
 * the same request under its idempotency key tells.
 */
export function reportEvents(deps: {
  database: Database;
  orchestrator: Pick<Orchestrator, "report">;
}): (asked: ReportRequest) => Promise<ReportOutcome> {
  return async (asked) => {
    try {
      return await deps.orchestrator.report(await withExecutions(deps.database, asked));
    } catch (error) {
      const away = unavailable(error);
      throw away === undefined ? error : notEnqueued(away);
    }
  };
}

async function withExecutions(database: Database, asked: ReportRequest): Promise<ReportInput> {
  const lacking = asked.events.filter(({ executionId }) => executionId === undefined);
  // The rule: workers of ours always say it.
  if (lacking.length === 0) return asked as ReportInput;
  const ids = [...new Set(lacking.map(({ event }) => event.command_id))];
  const known = await findCommandExecutions(database, ids);
  const unknown: { index: number; command_id: string; reason: string }[] = [];
  const events = asked.events.map(({ executionId, event }, index) => {
    const found = executionId ?? known.get(event.command_id);
    if (found === undefined) unknown.push({ index, command_id: event.command_id, reason: "unknown" });
    return { executionId: found ?? "", event };
  });
  if (unknown.length > 0) throw refused(unknown, events.length);
  return { ...asked, events };
}

function notEnqueued(cause: FlowError): FlowError {
  const next = "Send it again under its idempotency key";
  return new FlowError("enqueue_error", `The batch could not be written: ${cause.message}. ${next}`, { cause });
}

function refused(unknown: { index: number; command_id: string; reason: string }[], total: number): FlowError {
  const what = `${unknown.length} of ${total} events cannot be accepted; nothing of the batch was written`;
  const why = `There is no command ${unknown[0]?.command_id}`;
  return new FlowError("CONFLICT", `${what}. ${why}`, { detail: { events: unknown } });
}
