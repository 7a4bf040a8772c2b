import { type JsonObject, own } from "../words/json.ts";

/**
 * The label of commands that a pool alone runs. As a label it makes groups of their own: a pool's commands do not wait
 * behind others', nor these behind them.
 */
export const POOL_LABEL = "flow.pool";

/** The pool of a command with these labels. */
export function poolOf(labels: JsonObject | null): string | undefined {
  const pool = labels === null ? undefined : own(labels, POOL_LABEL);
  return typeof pool === "string" ? pool : undefined;
}

/** A step's labels with those of the pool that runs its playbook; an author's own word on the pool does not count. */
export function labelsOf(labels: JsonObject | undefined, pool: string | undefined): JsonObject | null {
  if (pool !== undefined) return { ...labels, [POOL_LABEL]: pool };
  if (labels === undefined || own(labels, POOL_LABEL) === undefined) return labels ?? null;
  const { [POOL_LABEL]: _, ...rest } = labels;
  return rest;
}
