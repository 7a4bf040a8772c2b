import type { BulkRerunOptions } from "../../schema/api/steering.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type Json, type JsonObject, setOwn } from "../../schema/words/json.ts";
import type { Sealer } from "../../schema/words/sealed.ts";

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

/**
 * The options as they are kept: values that replace others are sealed, each as a whole. Which of them are secrets each playbook says by
 * itself, and the operation is about many.
 */
export function sealedOptions(options: JsonObject, sealer: Pick<Sealer, "sealResult">): JsonObject {
  return withEdits(options, (value) => sealer.sealResult(JSON.stringify(value)));
}

/** What {@link sealedOptions} was given. Throws `FlowError` CONFLICT if the key is gone. */
export function openedOptions(options: JsonObject, sealer: Pick<Sealer, "open" | "lostKeyOf">): JsonObject {
  return withEdits(options, (value) => {
    // Operations that an earlier version has begun have them as they were given.
    if (typeof value !== "string") return value;
    const opened = sealer.open(value);
    if (opened?.kind === "result") return JSON.parse(opened.json) as Json;
    const lost = sealer.lostKeyOf(value);
    if (lost === undefined) return value;
    throw new FlowError(
      "CONFLICT",
      `What the operation replaces is sealed with the key '${lost}', which is gone. Begin it anew`,
    );
  });
}

/** The options with each value changed that replaces another one. */
function withEdits(options: JsonObject, change: (value: Json) => Json): JsonObject {
  const { input, variables, step_input: stepInput } = options as BulkRerunOptions;
  const each = (values: JsonObject) => {
    const changed: JsonObject = {};
    for (const [key, value] of Object.entries(values)) setOwn(changed, key, change(value));
    return changed;
  };
  const steps: JsonObject = {};
  for (const [step, values] of Object.entries(stepInput ?? {})) setOwn(steps, step, each(values));
  return {
    ...options,
    ...(input !== undefined && { input: each(input) }),
    ...(variables !== undefined && { variables: each(variables) }),
    ...(stepInput !== undefined && { step_input: steps }),
  };
}
