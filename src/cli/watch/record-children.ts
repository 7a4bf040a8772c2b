import { eventPages, listExecutions } from "../server/executions-api.ts";
import type { ServerTarget } from "../server/target.ts";
import type { Recorder } from "./record.ts";

/** Sub-playbooks that one call lists. */
const PAGE = "500";

/**
 * Adds the events of all sub-playbooks of an execution that has ended, one after another, and those of their own. Of one that
 * still runs what there is. Throws as `callServer` does.
 */
export async function recordChildren(
  target: ServerTarget,
  executionId: string,
  recorder: Recorder,
  signal: AbortSignal,
): Promise<void> {
  const query = new URLSearchParams({ parent_execution_id: executionId, limit: PAGE });
  for (;;) {
    const { executions, next_cursor } = await listExecutions(target, query, signal);
    for (const child of executions) {
      for await (const records of eventPages(target, child.execution_id, 0, signal)) recorder.write(records);
      await recordChildren(target, child.execution_id, recorder, signal);
    }
    if (next_cursor === null) return;
    query.set("cursor", next_cursor);
  }
}
