import type { Step } from "../../api/types.ts";

/** The step that is shown where none is named: what failed is what people come for; then what runs; then what ran last. */
export function mostTelling(steps: readonly Step[]): string | undefined {
  for (const status of ["FAILED", "RUNNING", "COMPLETED"]) {
    const found = steps.findLast((step) => step.status === status);
    if (found !== undefined) return found.name;
  }
  return undefined;
}
