import type { Step } from "../../api/types.ts";

/** The step that is shown by default: a failed one first; then one that runs or waits; then the last that ran. */
export function mostTelling(steps: readonly Step[]): string | undefined {
  for (const status of ["FAILED", "RUNNING", "WAITING", "COMPLETED"]) {
    const found = steps.findLast((step) => step.status === status);
    if (found !== undefined) return found.name;
  }
  return undefined;
}
