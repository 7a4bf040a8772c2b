import type { ResultStore } from "../ports/result-store.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../schema/json.ts";
import type { LoopResult, ResultRef, StoredResult } from "../schema/result.ts";
import { INLINE_BYTES_MAX } from "../worker/store-result.ts";

/*
 * Stored results as JSON for people and programs outside of the run. Templates read results through `ResultView`; here
 * the whole of one is wanted, one part after another, without the budget that guards templates.
 */

/**
 * The whole result, loaded where it is by reference. What is marked sensitive stays a reference: its place is the store,
 * not somebody's terminal or build log. Throws `FlowError` REFERENCE_NOT_AVAILABLE.
 */
export async function wholeResult(stored: StoredResult, store: ResultStore): Promise<Json> {
  if (stored.ref !== undefined) return isSensitive(stored.ref) ? asJson(stored.ref) : await store.load(stored.ref.ref);
  if (stored.tasks !== undefined) {
    const values: Json[] = [];
    for (const [, result] of stored.tasks) {
      if (result.ref === undefined || !isSensitive(result.ref)) values.push(await wholeResult(result, store));
    }
    return merged(values);
  }
  if (stored.loop !== undefined) return await wholeLoop(stored.loop, store);
  return stored.value ?? null;
}

async function wholeLoop(loop: LoopResult, store: ResultStore): Promise<Json> {
  const entries = [...loop.tail];
  for (const part of loop.parts) {
    // The engine wrote it (`loop.results.stored`), never a user.
    for (const entry of (await store.load(part.ref)) as unknown as LoopResult["tail"]) entries.push(entry);
  }
  entries.sort(([left], [right]) => left - right);
  const results: Json[] = [];
  for (const [, result] of entries) results.push(await wholeResult(result, store));
  return loopFields(loop, results);
}

/** The result where it is inline and its JSON within the inline limit, else its reference, or those of its parts. */
export function boundedResult(stored: StoredResult, bytesMax: number = INLINE_BYTES_MAX): Json {
  if (stored.ref !== undefined) return asJson(stored.ref);
  if (stored.tasks !== undefined) {
    const parts = stored.tasks.map(([label, result]) => [label, boundedResult(result, bytesMax)] as const);
    const whole = stored.tasks.some(([, result]) => result.ref !== undefined)
      ? undefined
      : merged(parts.map(([, part]) => part));
    if (whole !== undefined && jsonBytes(whole) <= bytesMax) return whole;
    const byLabel: JsonObject = {};
    for (const [label, part] of parts) setOwn(byLabel, label, part);
    return byLabel;
  }
  if (stored.loop !== undefined) {
    const { loop } = stored;
    const inline =
      loop.parts.length > 0
        ? undefined
        : loopFields(
            loop,
            loop.tail.map(([, result]) => boundedResult(result, bytesMax)),
          );
    return inline !== undefined && jsonBytes(inline) <= bytesMax
      ? inline
      : loopFields(loop, asJson({ parts: loop.parts }));
  }
  return stored.value ?? null;
}

/** The reference shows nothing of its payload, not even its size: how a sensitive result is stored. */
function isSensitive(ref: ResultRef): boolean {
  return ref.preview.truncated && ref.preview.bytes === 0;
}

/** The fields of all tasks, later wins; the last value where none has fields (language document, section 8). */
function merged(values: readonly Json[]): Json {
  const fields: JsonObject = {};
  const maps = values.filter(isJsonObject);
  for (const map of maps) for (const key of Object.keys(map)) setOwn(fields, key, own(map, key));
  return maps.length > 0 ? fields : (values.at(-1) ?? null);
}

function loopFields(loop: LoopResult, results: Json): JsonObject {
  const { total, success, failed } = loop.stats;
  return { results, stats: { total, success, failed }, iterations: success + failed, status: loop.status };
}

function jsonBytes(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function asJson(value: object): Json {
  return value as Json;
}
