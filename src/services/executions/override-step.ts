import type { StepStatus } from "../../engine/state/state.ts";
import { defined } from "../../schema/words/defined.ts";
import type { EventOf, OverrideAction } from "../../schema/words/event.ts";
import type { Json } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { Orchestrator } from "../orchestration/orchestrator.ts";

/** How a person ends a step. */
export interface OverrideRequest {
  action: OverrideAction;
  reason: string;
  /** As the audit log names the caller. */
  by?: string;
  /** Of a loop, from 0; absent: all that are open, and the loop with them. */
  iteration?: number;
  /** Of `complete`; default null. */
  result?: Json;
  /** Of `fail`. */
  error?: { code?: string; message?: string; details?: Json };
}

/** Code of the error of a step that a person has failed, unless they name another. */
export const OVERRIDDEN = "OVERRIDDEN";

/**
 * Ends a step, or an iteration of its loop, as a person says (control, section 1 and rule 14). Resolves with the step's status
 * afterwards: PENDING where it has not begun, RUNNING where its loop goes on, or where the execution is paused. Rejects with `FlowError`
 * NOT_FOUND, INVALID_INPUT, already_terminal, CONFLICT, UNAVAILABLE.
 */
export function overrideSteps({
  orchestrator,
  now,
}: {
  orchestrator: Pick<Orchestrator, "override">;
  now(): number;
}): (executionId: string, step: string, request: OverrideRequest) => Promise<StepStatus> {
  return (executionId, step, { action, reason, by, iteration, result, error }) => {
    const event: EventOf<"step.overridden"> = {
      type: "step.overridden",
      at: now(),
      ...{ step, action, reason },
      ...defined({ by, iteration }),
      ...(action === "complete" && { result: { value: result ?? null } }),
      ...(action === "fail" && { error: errorOf(step, reason, error) }),
    };
    return orchestrator.override(executionId, event);
  };
}

function errorOf(step: string, reason: string, error: OverrideRequest["error"] = {}): TaskError {
  const { code = OVERRIDDEN, message = `The step was ended by a person: ${reason}`, details } = error;
  return { kind: "unknown", code, message, retryable: false, step, ...defined({ details }) };
}
