import type { BulkRerunOptions } from "../../schema/api/steering.ts";
import type { JsonObject } from "../../schema/words/json.ts";

/** Options of an operation that ends or steers executions. */
export interface SteerOptions {
  reason?: string;
  cascade?: boolean;
}

/** By which right an item may be decided now. */
export interface ItemRight {
  allowed: boolean;
  rule: string;
  /** May this path be executed too? */
  may(path: string): boolean;
}

/** Whose idempotency keys the reruns of operations have. No caller of the API has this name. */
export const BULK_KEYS = "bulk";

/** The key of a rerun: however often an item is begun, it starts one execution. */
export function itemKey(bulkId: string, executionId: string): string {
  return `bulk/${bulkId}/${executionId}`;
}

/** The options as the audit log may keep them: names of what is replaced, and no values. */
export function auditedOptions(options: JsonObject): JsonObject {
  const { input, variables, step_input: stepInput, ...rest } = options as BulkRerunOptions;
  const given = Object.entries(stepInput ?? {}).map(([step, keys]) => [step, Object.keys(keys)]);
  return {
    ...(rest as JsonObject),
    ...(input !== undefined && { input: Object.keys(input) }),
    ...(variables !== undefined && { variables: Object.keys(variables) }),
    ...(stepInput !== undefined && { step_input: Object.fromEntries(given) as JsonObject }),
  };
}
