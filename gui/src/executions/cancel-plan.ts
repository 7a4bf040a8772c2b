import { api } from "../api/client.ts";
import { type ExecutionFilters, executionPage } from "./queries.ts";
import { OPEN_STATES, statesOf } from "./state-filter.tsx";

/** Most executions that one run cancels; repeat it for more. */
export const PLAN_MAX = 5_000;
/** Executions of one call that counts. */
const COUNTED_AT_ONCE = 500;
/** Calls under way at once. */
const AT_ONCE = 4;

/** What is going to be cancelled: exactly these, and nothing that begins later. */
export interface Plan {
  ids: string[];
  /** How many of which playbook, the most first. */
  paths: { path: string; count: number }[];
  oldest: string | undefined;
  /** There are more than {@link PLAN_MAX}. */
  more: boolean;
}

/** What became of a plan so far. */
export interface Progress {
  requested: number;
  cancelled: number;
  /** They had ended by themselves, or with their caller. */
  ended: number;
  /** By why they were refused. */
  refused: ReadonlyMap<string, string[]>;
}

/** The open executions of a filter, or of the executions `only`. Throws if the list cannot be read. */
export async function planOf(
  filters: ExecutionFilters,
  only: ReadonlySet<string> | undefined,
  onCounted: (count: number) => void,
  signal: AbortSignal,
): Promise<Plan> {
  const chosen = statesOf(filters.status);
  const open = OPEN_STATES.filter((state) => chosen.length === 0 || chosen.includes(state));
  const counts = new Map<string, number>();
  const ids: string[] = [];
  let oldest: string | undefined;
  let cursor: string | null = null;
  if (open.length > 0) {
    do {
      const page = await executionPage({ ...filters, status: open.join(",") }, cursor, COUNTED_AT_ONCE, signal);
      for (const { execution_id: id, path, started_at: startedAt } of page.executions) {
        if (only !== undefined && !only.has(id)) continue;
        ids.push(id);
        counts.set(path, (counts.get(path) ?? 0) + 1);
        oldest = startedAt;
      }
      onCounted(ids.length);
      cursor = page.next_cursor;
    } while (cursor !== null && ids.length <= PLAN_MAX && (only === undefined || ids.length < only.size));
  }
  const paths = [...counts].map(([path, count]) => ({ path, count })).sort((one, other) => other.count - one.count);
  return { ids: ids.slice(0, PLAN_MAX), paths, oldest, more: ids.length > PLAN_MAX };
}

/** Cancels the planned executions, a few at a time, until all were requested or the signal aborts. */
export async function carryOut(
  plan: Plan,
  onProgress: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<void> {
  // The oldest first: cancelling a caller cancels its children.
  const left = [...plan.ids];
  let [requested, cancelled, ended] = [0, 0, 0];
  const refused = new Map<string, string[]>();
  const one = async () => {
    for (let id = left.pop(); id !== undefined && !signal.aborted; id = left.pop()) {
      try {
        const { status } = await api("POST /api/executions/:execution_id/cancel", {
          params: { execution_id: id },
          body: { reason: "cancelled in the browser, together with others" },
        });
        if (status === "CANCELLED") cancelled += 1;
        else ended += 1;
      } catch (error) {
        const why = error instanceof Error ? error.message.replaceAll(id, "…") : String(error);
        refused.set(why, [...(refused.get(why) ?? []), id]);
      }
      requested += 1;
      onProgress({ requested, cancelled, ended, refused: new Map(refused) });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}
