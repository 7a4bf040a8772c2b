import type { Execution, Step } from "../../api/types.ts";

/** The error shown at the top of an execution's page; undefined if there is no error. */
export function lastErrorOf(execution: Execution): object | undefined {
  return execution.error ?? execution.next_retry?.error ?? lastFailed(execution)?.error ?? undefined;
}

/** The step that failed last. */
export function lastFailed({ steps }: Execution): Step | undefined {
  return steps.findLast(({ status }) => status === "FAILED");
}
