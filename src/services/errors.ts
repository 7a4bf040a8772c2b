import { FlowError } from "../schema/words/errors.ts";

/** NOT_FOUND error for an unknown execution. */
export function unknownExecution(executionId: string): FlowError {
  return new FlowError("NOT_FOUND", `There is no execution ${executionId}`);
}

/** The error for a key that was used with another body; its `detail` distinguishes it from the error for an invalid body. */
export function otherBody(key: string): FlowError {
  const message = `The idempotency key '${key}' was used with another body before`;
  const hint = "A new request needs a new key; a retry sends the same body again";
  return new FlowError("INVALID_INPUT", `${message}. ${hint}`, { detail: { idempotency_key: key } });
}
