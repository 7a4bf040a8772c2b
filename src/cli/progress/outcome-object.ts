import { resultOf } from "../../engine/state/results.ts";
import { type ExecutionState, type StepState, stepState } from "../../engine/state/state.ts";
import { boundedResult } from "../../language/views/bounded-result.ts";
import type { ResultStore } from "../../ports/result-store.ts";
import { defined } from "../../schema/words/defined.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import { wholeResult } from "./result.ts";
import type { ExecutionRow } from "./run-model.ts";

/** What `flow run --json` prints (language document, section 11). */
export interface OutcomeObject {
  execution_id: string;
  path: string;
  status: ExecutionState["status"];
  /** The whole result, also where it lies in the store; a sensitive one by reference. */
  result: Json;
  error: ErrorObject | null;
  started_at: string;
  ended_at: string | null;
  duration_ms: number | null;
  /** In the order of their first start; after them those that were skipped and never ran. */
  steps: StepObject[];
}

/** One step of an {@link OutcomeObject}. */
export interface StepObject {
  name: string;
  status: StepState["status"];
  /** The highest number of runs that one of its tasks needed, in the step's last run; 0 when it never ran. */
  attempts: number;
  started_at: string | null;
  ended_at: string | null;
  duration_ms: number | null;
  iterations?: { total: number | null; done: number; failed: number };
  error?: ErrorObject;
  /** Inline up to the inline limit, else by reference. */
  result?: Json;
}

/** Why a run or a step failed. */
export type ErrorObject = Pick<TaskError, "kind" | "code" | "message" | "retryable"> & {
  step: string | null;
  task: string | null;
  attempt: number | null;
  details?: Json;
};

/** The outcome of a run that has ended. Throws `FlowError` REFERENCE_NOT_AVAILABLE when its result cannot be loaded. */
export async function outcomeObject(run: ExecutionRow, store: ResultStore): Promise<OutcomeObject> {
  const { state } = run;
  const result = resultOf(state);
  return {
    execution_id: state.executionId,
    path: state.path,
    status: state.status,
    result: result === null ? null : await wholeResult(result, store),
    error: state.error === null ? null : errorObject(state.error),
    ...times(state.startedAt, state.endedAt),
    started_at: isoTime(state.startedAt),
    steps: stepNames(state).map((name) => stepObject(run, name)),
  };
}

function stepNames(state: ExecutionState): string[] {
  const order = (name: string) => stepState(state, name).order || Number.POSITIVE_INFINITY;
  return Object.keys(state.steps)
    .filter((name) => stepState(state, name).status !== "PENDING")
    .sort((left, right) => (order(left) < order(right) ? -1 : Number(order(left) > order(right))));
}

function stepObject(run: ExecutionRow, name: string): StepObject {
  const step = stepState(run.state, name);
  const ran = step.order > 0;
  return {
    name,
    status: step.status,
    attempts: ran ? Math.max(1, step.attempts, run.byName.get(name)?.attempts ?? 0) : 0,
    ...times(step.startedAt, step.endedAt),
    ...(step.loop !== null && { iterations: { ...step.loop } }),
    ...(step.error !== null && { error: errorObject(step.error) }),
    ...(step.result !== null && { result: boundedResult(step.result) }),
  };
}

function times(startedAt: number | null, endedAt: number | null) {
  return {
    started_at: startedAt === null ? null : isoTime(startedAt),
    ended_at: endedAt === null ? null : isoTime(endedAt),
    duration_ms: startedAt === null || endedAt === null ? null : endedAt - startedAt,
  };
}

function isoTime(at: number): string {
  return new Date(at).toISOString();
}

function errorObject(error: TaskError): ErrorObject {
  const { kind, code, message, retryable, step, task, attempt, details, status_code } = error;
  const shownDetails = details ?? (status_code === undefined ? undefined : ({ status_code } satisfies JsonObject));
  return {
    kind,
    code,
    message,
    retryable,
    step: step ?? null,
    task: task ?? null,
    attempt: attempt ?? null,
    ...defined({ details: shownDetails }),
  };
}
