import type { TaskError } from "../schema/outcome.ts";
import type { StoredResult } from "../schema/result.ts";
import { type ExecutionState, knownStep } from "./state.ts";

/** The result of a step or an iteration from those of its tasks: a pipeline keeps them apart, a lone task is itself. */
export function joinTasks(
  labels: readonly string[],
  values: readonly [string, StoredResult, number][],
  pipeline: boolean,
): StoredResult | null {
  const named: [string, StoredResult][] = [];
  for (const label of labels) {
    const value = values.find(([name]) => name === label);
    if (value !== undefined) named.push([label, value[1]]);
  }
  if (pipeline && named.length > 0) return { tasks: named };
  return named.at(-1)?.[1] ?? null;
}

/** The error of work that was cancelled. */
export function cancelledError(reason: string): TaskError {
  return { kind: "cancelled", code: "CANCELLED", message: reason, retryable: false };
}

/** The result of an execution, or of one of its steps; null when there is none. */
export function resultOf(state: ExecutionState, step?: string): StoredResult | null {
  const name = step ?? state.resultStep;
  return name === null ? null : (knownStep(state, name)?.result ?? null);
}
