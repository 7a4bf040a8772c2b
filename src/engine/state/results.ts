import type { TaskResult } from "../../schema/words/event.ts";
import type { Accumulate } from "../../schema/words/manifest.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { ResultConfig, Step, Task } from "../../schema/words/playbook.ts";
import type { StoredResult } from "../../schema/words/result.ts";
import { type ExecutionState, knownStep } from "./state.ts";

/**
 * The result of a step or an iteration from those of its tasks: a pipeline has one entry for each task, a single task's result
 * is the result itself.
 */
export function joinTasks(
  labels: readonly string[],
  values: readonly TaskResult[],
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

/** The results of tasks; for a task with an accumulated result, that result replaces its last one. */
export function withRuns(values: readonly TaskResult[], runs: readonly TaskResult[] = []): readonly TaskResult[] {
  if (runs.length === 0) return values;
  return [...values.filter(([label]) => !runs.some(([other]) => other === label)), ...runs];
}

/** How the runs of a task within a step or an iteration are combined, if `spec.result.accumulate` is set. */
export function taskAccumulate(step: Step, task: Task): Accumulate | undefined {
  return task.result.accumulate ?? (step.tasks.length === 1 ? step.result.accumulate : undefined);
}

/** How the results of a loop's iterations are combined. For a step with one task it may be set on the step or on the task. */
export function loopAccumulate(step: Step): Accumulate | undefined {
  return step.result.accumulate ?? (step.tasks.length === 1 ? step.tasks[0]?.result.accumulate : undefined);
}

/** The author's settings of where and for how long a store keeps a payload. */
export interface Keeping {
  store?: string;
  scope?: string;
  ttl?: string;
  compression?: string;
  /** The payload is sealed as a whole before it is stored. */
  sensitive?: true;
}

/** The storage settings of `spec.result.store`; undefined if there are none. */
export function keepingOf({ store, sensitive }: ResultConfig): Keeping | undefined {
  if (store === undefined) return sensitive ? { sensitive } : undefined;
  const { kind, ...declared } = store;
  const keeping = { ...declared, ...(sensitive && { sensitive }) };
  return kind === undefined || kind === "auto" ? keeping : { store: kind, ...keeping };
}

/** The error of work that was cancelled. */
export function cancelledError(reason: string): TaskError {
  return { kind: "cancelled", code: "CANCELLED", message: reason, retryable: false };
}

/** The result of an execution, or of one of its steps; null without a result. */
export function resultOf(state: ExecutionState, step?: string): StoredResult | null {
  const name = step ?? state.resultStep;
  return name === null ? null : (knownStep(state, name)?.result ?? null);
}
