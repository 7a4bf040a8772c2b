import { FlowError, messageOf } from "../schema/words/errors.ts";
import type { Json } from "../schema/words/json.ts";
import type { TaskError } from "../schema/words/outcome.ts";
import type { EngineEnv } from "./env.ts";

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

/** Longest quote of a value in a message. */
const QUOTED_CHARS_MAX = 100;

/**
 * A value as quoted in a message. Secrets are hidden before it is cut: the rest of a cut secret would no longer be recognised.
 */
export function quoted(value: Json, { sealing }: Pick<EngineEnv, "sealing">): string {
  return JSON.stringify(sealing === undefined ? value : sealing.hideIn(value)).slice(0, QUOTED_CHARS_MAX);
}
