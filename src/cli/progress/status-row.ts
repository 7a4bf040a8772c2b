import { emptyState, type StepState, stepState } from "../../engine/state/state.ts";
import type { ExecutionAnswer, StepAnswer } from "../../schema/api/executions.ts";
import { setOwn } from "../../schema/words/json.ts";
import { TASK_ERROR_KINDS, type TaskError } from "../../schema/words/outcome.ts";
import { type ExecutionRow, newRow } from "./run-model.ts";

/**
 * An execution from a server's answer, in the model that runs are drawn from. Fields that the answer lacks (results, arcs,
 * sub-playbooks) are empty. The cost does not depend on the length of the log.
 */
export function rowOfExecution(answer: ExecutionAnswer): ExecutionRow {
  const state = emptyState();
  state.executionId = answer.execution_id;
  state.catalogId = answer.catalog_id;
  state.path = answer.path;
  state.status = answer.status;
  state.startedAt = Date.parse(answer.started_at);
  state.endedAt = answer.ended_at === null ? null : Date.parse(answer.ended_at);
  state.error = answer.error === null ? null : taskError(answer.error);
  const execution: ExecutionRow = { state, caller: undefined, iteration: undefined, steps: [], byName: new Map() };
  for (const step of answer.steps) {
    // What is still to come is not drawn, as in a run that is watched, and what was never reached is counted below.
    if (step.started_at === null && (step.status === "PENDING" || isUnreached(step))) continue;
    setOwn(state.steps, step.name, stateOf(step, stepState(state, step.name)));
    const row = { ...newRow(execution, step.name), attempts: step.attempts };
    execution.steps.push(row);
    execution.byName.set(step.name, row);
  }
  return execution;
}

/** A step that an execution ended without: it was neither run nor passed over by its guard, which would have a time. */
export function isUnreached({ status, started_at, ended_at }: StepAnswer): boolean {
  return status === "SKIPPED" && started_at === null && ended_at === null;
}

function stateOf(step: StepAnswer, fresh: StepState): StepState {
  const isRunning = step.status === "RUNNING" || step.status === "WAITING";
  return {
    ...fresh,
    status: step.status === "WAITING" ? "RUNNING" : step.status,
    runs: step.runs,
    attempts: step.attempts,
    startedAt: step.started_at === null ? null : Date.parse(step.started_at),
    endedAt: step.ended_at === null ? null : Date.parse(step.ended_at),
    run: isRunning ? { stepRunId: "", input: {}, from: null, loop: null, ended: null } : null,
    error: step.error == null ? null : taskError(step.error),
    loop: step.loop ?? null,
    ...(step.overridden !== undefined && { overridden: { ...step.overridden, at: Date.parse(step.overridden.at) } }),
    ...(step.overridden_iterations !== undefined && {
      iterationsByHand: step.overridden_iterations.map((one) => ({ ...one, at: Date.parse(one.at) })),
    }),
  };
}

/** An error of an answer. A kind that this version does not know counts as `unknown`. */
function taskError(error: NonNullable<ExecutionAnswer["error"]>): TaskError {
  const kind = TASK_ERROR_KINDS.find((known) => known === error["kind"]) ?? "unknown";
  return { ...error, kind, code: error.code, message: error.message, retryable: error.retryable ?? false };
}
