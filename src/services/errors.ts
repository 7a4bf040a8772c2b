import { FlowError } from "../schema/words/errors.ts";

/** The refusal of a call about an execution that there is not. */
export function unknownExecution(executionId: string): FlowError {
  return new FlowError("NOT_FOUND", `There is no execution ${executionId}`);
}
