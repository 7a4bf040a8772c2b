import type { ExecutionState } from "../../../engine/state/state.ts";

/**
 * How far an execution is, in percent: the share of its steps that are over, of a loop that runs the share of its iterations
 * (none while a cursor does not know how many there are). 100 only for one that completed; of one that ended otherwise it is how
 * far it came.
 */
export function progressOf(state: ExecutionState, stepsTotal: number): number {
  if (state.status === "COMPLETED") return 100;
  let done = 0;
  for (const name of Object.keys(state.steps)) {
    const step = state.steps[name];
    if (step === undefined) continue;
    if (step.status === "COMPLETED" || step.status === "SKIPPED" || step.status === "FAILED") done += 1;
    else if (step.run !== null && step.loop?.total) done += Math.min(1, step.loop.done / step.loop.total);
  }
  return Math.min(99, Math.floor((100 * done) / stepsTotal));
}
