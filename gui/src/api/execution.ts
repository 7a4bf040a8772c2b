import { api } from "./client.ts";
import type { Execution, Step } from "./types.ts";

/** Below this many steps all of them are read each time: it is a few kilobytes. */
const STEPS_READ_WHOLE = 200;

/**
 * An execution as it is now. Of one with thousands of steps that is `known` and open only those are read to which something
 * happened since: all of them would be megabytes at each event.
 */
export async function readExecution(
  executionId: string,
  known: Execution | undefined,
  signal: AbortSignal,
): Promise<Execution> {
  const read = (query: { steps_after?: string }) =>
    api("GET /api/executions/:execution_id", { params: { execution_id: executionId }, query, signal });
  const isMerged =
    known !== undefined &&
    known.ended_at === null &&
    known.last_event_id !== undefined &&
    known.steps.length > STEPS_READ_WHOLE;
  if (!isMerged) return await read({});
  const changes = await read({ steps_after: String(known.last_event_id) });
  // At the end everything is read once more: then skipped steps are in the document's order again.
  if (changes.ended_at !== null || changes.steps_total !== known.steps.length) return await read({});
  return { ...changes, steps: mergedSteps(known.steps, changes.steps) };
}

/** The steps with what changed, in the order in which the server gives all of them. */
export function mergedSteps(known: readonly Step[], changed: readonly Step[]): Step[] {
  const byName = new Map(changed.map((step) => [step.name, step]));
  // Sorting keeps the order of equals: what has not begun stays in the order of the document.
  return known.map((step) => byName.get(step.name) ?? step).sort((left, right) => rank(left) - rank(right));
}

function rank({ order = 0, status }: Step): number {
  if (order > 0) return order;
  return status === "PENDING" ? Number.MAX_SAFE_INTEGER : Number.MAX_SAFE_INTEGER - 1;
}
