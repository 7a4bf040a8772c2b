import { ERROR_STATUS, FlowError, messageOf } from "../../schema/words/errors.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import { inject } from "./jobs.ts";
import type { ReportInput } from "./orchestrator.ts";
import type { OrchestratorParts } from "./parts.ts";

/** Times that the server may fail over a command's failure before it ends the execution. */
const FAULTS_MAX = 3;
/** Commands whose faults are counted; the oldest is forgotten for a new one. */
const COUNTED_MAX = 1_000;

/**
 * For faults of this program over reports. A worker that cannot get its events processed says at last that its command has
 * failed; where not even what follows from that can be worked out, its claim would be given to one worker after the other, and
 * nobody would ever be told. Then the execution is ended as failed, with what went wrong.
 *
 * Call it with each report that was not written, and why. Never rejects: what cannot be ended either is told as a fault.
 */
export function createFaultCount(
  parts: Pick<OrchestratorParts, "roundLoop" | "now" | "observer">,
): (input: Pick<ReportInput, "events">, error: unknown) => Promise<void> {
  const faultCounts = new Map<string, number>();
  return async ({ events }, error) => {
    if (!isFault(error) || !events.every(({ event }) => event.type === "command.failed")) return;
    for (const { executionId, event } of events) {
      const count = (faultCounts.get(event.command_id) ?? 0) + 1;
      faultCounts.delete(event.command_id);
      if (count < FAULTS_MAX) faultCounts.set(event.command_id, count);
      else await failExecution(parts, executionId, `the failure of command ${event.command_id}`, error);
    }
    const [oldest] = faultCounts.keys();
    if (faultCounts.size > COUNTED_MAX && oldest !== undefined) faultCounts.delete(oldest);
  };
}

/** True for what this program has failed over: not for a refusal, and not for a store that is away. */
function isFault(error: unknown): boolean {
  return !(error instanceof FlowError) || ERROR_STATUS[error.code] === 500;
}

/**
 * Ends an execution as failed because this program fails over what follows from something that has happened in it: nothing
 * would ever follow, and nobody be told. `what` names it. Never rejects.
 */
export async function failExecution(
  { roundLoop, now, observer }: Pick<OrchestratorParts, "roundLoop" | "now" | "observer">,
  executionId: string,
  what: string,
  cause: unknown,
): Promise<void> {
  const message = `The execution was ended: what follows from ${what} could not be worked out. ${messageOf(cause)}`;
  const error: TaskError = { kind: "unknown", code: "INTERNAL", message, retryable: false };
  const event: FlowEvent = { type: "workflow.failed", at: now(), error };
  try {
    await inject(roundLoop, executionId, event);
  } catch (fault) {
    observer.fault(fault, [executionId]);
  }
}
