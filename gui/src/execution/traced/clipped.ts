import type { ExecutionAnswer as Execution, StepAnswer as Step } from "../../../../src/schema/api/executions.ts";

/** A called execution as it was at a moment: what began later has not, what ended later runs up to the moment. */
export function clippedTo(execution: Execution, at: number): Execution {
  const isOpen = execution.ended_at === null || Date.parse(execution.ended_at) > at;
  return {
    ...execution,
    ...(isOpen && { status: "RUNNING" as const, ended_at: new Date(at).toISOString(), result: null, error: null }),
    steps: execution.steps.map((step) => clippedStep(step, at)),
  };
}

function clippedStep(step: Step, at: number): Step {
  const { error: _error, ...rest } = step;
  if (step.started_at === null || Date.parse(step.started_at) > at) {
    return { ...rest, status: "PENDING", started_at: null, ended_at: null, duration_ms: null, runs: 0, attempts: 0 };
  }
  if (step.ended_at !== null && Date.parse(step.ended_at) <= at) return step;
  return { ...rest, status: step.status === "WAITING" ? "WAITING" : "RUNNING", ended_at: new Date(at).toISOString() };
}
