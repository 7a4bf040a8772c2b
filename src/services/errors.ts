import { FlowError } from "../schema/words/errors.ts";

/** NOT_FOUND error for an unknown execution. */
export function unknownExecution(executionId: string): FlowError {
  return new FlowError("NOT_FOUND", `There is no execution ${executionId}`);
}
