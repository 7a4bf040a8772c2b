import { FlowError, messageOf } from "../schema/words/errors.ts";
import type { TaskError } from "../schema/words/outcome.ts";

/** The error of a step whose own templates (guard, collection, `set`, arcs) could not be evaluated. */
export function templateError(cause: unknown, step: string, what: string): TaskError {
  return {
    kind: "template",
    code: cause instanceof FlowError ? cause.code : "TEMPLATE_ERROR",
    message: `Step '${step}', ${what}: ${messageOf(cause)}`,
    retryable: false,
    step,
  };
}
