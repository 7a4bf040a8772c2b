import { createFold } from "../../../src/cli/fold-events.ts";
import { wholeResult } from "../../../src/cli/result-json.ts";
import { resultOf } from "../../../src/engine/results.ts";
import type { ExecutionState } from "../../../src/engine/state.ts";
import type { ResultStore } from "../../../src/ports/result-store.ts";
import type { EventRecord } from "../../../src/schema/event-record.ts";
import type { Json } from "../../../src/schema/json.ts";
import { cleaner, eventLines, idsOf } from "./event-lines.ts";
import type { Scenario } from "./scenario.ts";

/** A run's end as it must be on every runtime, without what may differ: ids, times, names of workers. */
export interface Outcome {
  status: string;
  /** As JSON text: the order of keys matters to playbooks. */
  result: string;
  error: Json;
  /** Of each execution its events as lines: the run's own first, then those that it called. */
  events: string[][];
}

/** The state that a log tells of. */
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

/** What is compared of a run; its own log comes first, then those of the executions that it called, in the order of their start. */
export function outcomeOf(logs: readonly EventRecord[][], result: Json, order: Scenario["order"]): Outcome {
  const [own = [], ...children] = logs;
  const { status, error } = stateOf(own);
  const clean = cleaner(idsOf(logs.flat()), new Set());
  const called = children.map((log) => eventLines(log, order));
  if (order === "parts") called.sort((left, right) => (left.join() < right.join() ? -1 : 1));
  return {
    status,
    result: JSON.stringify(clean(result)),
    error: clean(error as unknown as Json),
    events: [eventLines(own, order), ...called],
  };
}
