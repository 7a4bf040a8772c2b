import { type Json, type JsonObject, setOwn } from "../schema/json.ts";
import { manifestOf } from "../schema/manifest.ts";
import type { LoopResult, StoredResult } from "../schema/result.ts";
import { loopFields, mergedFields, wholeLoop } from "../schema/whole-result.ts";
import { noReferences, withReferences } from "./references.ts";

/*
 * Stored results as JSON for people and programs outside of the run, without loading anything: what the API shows of an
 * execution, and what `flow run --json` shows of a step.
 */

/** Longest result that is shown inline, in bytes of its JSON (decisions, "Results"). */
export const SHOWN_BYTES_MAX = 65_536;

/**
 * The result where it is inline and its JSON within the limit, else its reference. Of a loop beyond the limit the results are
 * a manifest (interface specification, Manifest).
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
  return loopFields(loop, loop.parts.length === 0 ? boundedResults(loop, bytesMax) : loopManifest(loop, bytesMax));
}

/** What is in no part stands nowhere else. The engine moves results to parts long before this is too much. */
function boundedResults(loop: LoopResult, bytesMax: number): Json {
  if (loop.accumulate !== undefined && loop.tail.every(([, result]) => isInline(result))) {
    return withReferences(wholeLoop(loop), noReferences);
  }
  const tail = [...loop.tail].sort(([left], [right]) => left - right);
  return tail.map(([, result]) => boundedResult(result, bytesMax));
}

function isInline({ ref, tasks = [] }: StoredResult): boolean {
  return ref === undefined && tasks.every(([, result]) => isInline(result));
}

/**
 * The manifest of a loop's results, as its reference leads to it: each part holds `count` pairs of `[iteration, result]`. A
 * list of parts beyond the limit is left out where the manifest can be read by its reference; a loop that was cut off has no
 * manifest in the store, and may have results in no part (`tail`).
 */
export function loopManifest(loop: LoopResult, bytesMax: number = SHOWN_BYTES_MAX): JsonObject {
  const { parts, ...manifest } = manifestOf(loop.accumulate ?? { strategy: "append" }, loop.parts);
  const { manifest: ref, tail } = loop;
  const isShort = ref === undefined || jsonBytes(parts) <= bytesMax;
  return {
    ...manifest,
    ...(ref !== undefined && { ref }),
    ...(isShort && { parts: asJson(parts) }),
    ...(tail.length > 0 && { tail: tail.map(([index, result]) => [index, boundedResult(result, bytesMax)]) }),
  };
}

function jsonBytes(value: Json): number {
  return new TextEncoder().encode(JSON.stringify(value)).length;
}

function asJson(value: object): Json {
  return value as Json;
}
