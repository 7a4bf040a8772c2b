import { createFold } from "../../../src/cli/progress/fold-events.ts";
import { wholeResult } from "../../../src/cli/progress/result.ts";
import { resultOf } from "../../../src/engine/state/results.ts";
import { type ExecutionState, knownStep } from "../../../src/engine/state/state.ts";
import { boundedResult } from "../../../src/language/views/bounded-result.ts";
import type { ResultStore } from "../../../src/ports/result-store.ts";
import type { EventRecord } from "../../../src/schema/rules/event-record.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import { maskSealed } from "../../../src/schema/words/sealed.ts";
import { cleaner, eventLines, INCIDENTAL, idsOf } from "./event-lines.ts";
import type { Scenario } from "./scenario.ts";

/** A run's end as it must be on every runtime, without what may differ: ids, times, names of workers. */
export interface Outcome {
  status: string;
  /** As JSON text: the order of keys matters to playbooks. */
  result: string;
  error: Json;
  /** What people are shown of each step's result, as JSON text: large ones by reference. */
  shown: Record<string, string>;
  /** Of each execution its events as lines: the run's own first, then those that it called. */
  events: string[][];
}

/** The state that follows from a log. */
export function stateOf(log: readonly EventRecord[]): ExecutionState {
  const fold = createFold();
  for (const record of log) fold.take(record);
  return fold.state;
}

/** The result of an execution, also where it lies in the store. */
export async function loadedResult(state: ExecutionState, results: ResultStore): Promise<Json> {
  const stored = resultOf(state);
  return stored === null ? null : await wholeResult(stored, results);
}

/** Names of the steps that have a result. */
export function stepsWithResult(state: ExecutionState): string[] {
  return Object.keys(state.steps).filter((name) => knownStep(state, name)?.result != null);
}

/** What a local run shows of its steps. */
export function shownSteps(state: ExecutionState): [string, Json][] {
  return stepsWithResult(state).map((name) => {
    const result = resultOf(state, name);
    return [name, result === null ? null : boundedResult(result)];
  });
}

/** What is compared of a run; its own log comes first, then those of the executions that it called, in the order of their start. */
export function outcomeOf(
  logs: readonly EventRecord[][],
  result: Json,
  steps: readonly [string, Json][],
  order: Scenario["order"],
): Outcome {
  const [own = [], ...children] = logs;
  const { status, error } = stateOf(own);
  const ids = idsOf(logs.flat());
  const clean = cleaner(ids, new Set());
  // A reference says where its payload is: that is each runtime's affair, as in events. Which results of a loop are in which
  // part depends on which of them come first.
  const shownAs = cleaner(ids, order === "parts" ? new Set([...INCIDENTAL, "parts"]) : INCIDENTAL);
  const called = children.map((log) => eventLines(log, order));
  if (order === "parts") called.sort((left, right) => (left.join() < right.join() ? -1 : 1));
  return {
    status,
    result: JSON.stringify(clean(result)),
    error: clean(error as unknown as Json),
    shown: Object.fromEntries(steps.map(([name, value]) => [name, maskSealed(JSON.stringify(shownAs(value)))])),
    events: [eventLines(own, order), ...called],
  };
}
