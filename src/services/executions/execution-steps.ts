import type { Program } from "../../engine/program/program.ts";
import { type ExecutionState, isTerminal, knownStep, type StepState } from "../../engine/state/state.ts";
import type { ArcAnswer, StepAnswer } from "../../schema/api/executions.ts";

/**
 * The steps of an execution as the API shows them: in the order of their first start, then those that were skipped and never
 * ran, then those to which nothing has happened, in the order of the document. `only` restricts the answer to these steps; if
 * it names any and the execution has ended, the steps it never reached are included. An execution that has ended waits for
 * nothing: steps it did not reach are SKIPPED.
 */
export function stepsOf(state: ExecutionState, program: Program, only?: ReadonlySet<string>): StepAnswer[] {
  const names = [...program.steps.keys()];
  const isOver = isTerminal(state.status);
  const hasChanges = only === undefined || only.size > 0;
  return names
    .map((name, index) => ({ name, index, step: knownStep(state, name) }))
    .filter(({ name, step }) => only === undefined || only.has(name) || (isOver && hasChanges && isPending(step)))
    .sort((left, right) => rank(left.step) - rank(right.step) || left.index - right.index)
    .map(({ name, step }) => {
      const answer = answerOf(name, step);
      return isOver && isPending(step) ? { ...answer, status: "SKIPPED" } : answer;
    });
}

/** The arcs that were taken, in the order in which their steps first ended, and how often: more than once around a loop. */
export function arcsOf({ arcs }: ExecutionState): ArcAnswer[] {
  return Object.entries(arcs).flatMap(([from, targets]) =>
    Object.entries(targets).map(([to, times]) => ({ from, to, times })),
  );
}

const SKIPPED_RANK = Number.MAX_SAFE_INTEGER - 1;
const PENDING_RANK = Number.MAX_SAFE_INTEGER;

function isPending(step: StepState | undefined): boolean {
  return step === undefined || step.status === "PENDING";
}

function rank(step: StepState | undefined): number {
  if (step === undefined || (step.order === 0 && step.status === "PENDING")) return PENDING_RANK;
  return step.order === 0 ? SKIPPED_RANK : step.order;
}

function answerOf(name: string, step: StepState | undefined): StepAnswer {
  if (step === undefined) {
    return {
      name,
      status: "PENDING",
      started_at: null,
      ended_at: null,
      duration_ms: null,
      attempts: 0,
      runs: 0,
      order: 0,
    };
  }
  const { startedAt, endedAt, loop, error } = step;
  return {
    name,
    status: step.status,
    started_at: timeOf(startedAt),
    ended_at: timeOf(endedAt),
    duration_ms: startedAt === null || endedAt === null ? null : Math.max(0, endedAt - startedAt),
    attempts: step.attempts,
    runs: step.runs,
    order: step.order,
    ...(loop !== null && { loop: { ...loop } }),
    ...(error !== null && { error: { ...error } }),
  };
}

function timeOf(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
