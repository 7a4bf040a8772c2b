import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../schema/json.ts";
import type { LoopResult, StoredResult } from "../schema/result.ts";

/*
 * Stored results as JSON for people and programs outside of the run, without loading anything: what the API shows of an
 * execution, and what `flow run --json` shows of a step.
 */

/** Longest result that is shown inline, in bytes of its JSON (decisions, "Results"). */
export const SHOWN_BYTES_MAX = 65_536;

/**
 * The result where it is inline and its JSON within the limit, else its reference. Of a loop beyond the limit the results are
 * a manifest (interface specification, Manifest): the parts, each a list of `[index, result]`, and in `tail` those that are in
 * no part.
 */
export function boundedResult(stored: StoredResult, bytesMax: number = SHOWN_BYTES_MAX): Json {
  if (stored.ref !== undefined) return asJson(stored.ref);
  if (stored.tasks !== undefined) return boundedTasks(stored.tasks, bytesMax);
  if (stored.loop !== undefined) return boundedLoop(stored.loop, bytesMax);
  return stored.value ?? null;
}

function boundedTasks(tasks: readonly [string, StoredResult][], bytesMax: number): Json {
  const parts = tasks.map(([label, result]) => [label, boundedResult(result, bytesMax)] as const);
  if (tasks.every(([, result]) => result.ref === undefined)) {
    const whole = mergedFields(parts.map(([, part]) => part));
    if (jsonBytes(whole) <= bytesMax) return whole;
  }
  const byLabel: JsonObject = {};
  for (const [label, part] of parts) setOwn(byLabel, label, part);
  return byLabel;
}

function boundedLoop(loop: LoopResult, bytesMax: number): Json {
  const tail = [...loop.tail].sort(([left], [right]) => left - right);
  if (loop.parts.length === 0) {
    // What is in no part stands nowhere else. The engine moves results to parts long before this is too much.
    const results = tail.map(([, result]) => boundedResult(result, bytesMax));
    return loopFields(loop, results);
  }
  return loopFields(loop, {
    kind: "manifest",
    strategy: "append",
    merge_path: "$[*][1].value",
    parts: loop.parts.map(asJson),
    total_parts: loop.parts.length,
    total_bytes: loop.parts.reduce((sum, { bytes }) => sum + bytes, 0),
    ...(tail.length > 0 && { tail: tail.map(([index, result]) => [index, boundedResult(result, bytesMax)]) }),
  });
}

/** The fields of all tasks, later wins; the last value where none has fields (language document, section 8). */
export function mergedFields(values: readonly Json[]): Json {
  const fields: JsonObject = {};
  const maps = values.filter(isJsonObject);
  for (const map of maps) for (const key of Object.keys(map)) setOwn(fields, key, own(map, key));
  return maps.length > 0 ? fields : (values.at(-1) ?? null);
}

/** A loop's result: what its iterations gave, and how many there were. */
export function loopFields(loop: LoopResult, results: Json): JsonObject {
  const { total, success, failed } = loop.stats;
  return { results, stats: { total, success, failed }, iterations: success + failed, status: loop.status };
}

function jsonBytes(value: Json): number {
  return new TextEncoder().encode(JSON.stringify(value)).length;
}

function asJson(value: object): Json {
  return value as Json;
}
