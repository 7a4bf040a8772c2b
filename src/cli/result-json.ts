import { loopFields, mergedFields } from "../language/bounded-result.ts";
import type { ResultStore } from "../ports/result-store.ts";
import type { Json } from "../schema/json.ts";
import type { LoopResult, ResultRef, StoredResult } from "../schema/result.ts";

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
    return mergedFields(values);
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

/** The reference shows nothing of its payload, not even its size: how a sensitive result is stored. */
function isSensitive(ref: ResultRef): boolean {
  return ref.preview.truncated && ref.preview.bytes === 0;
}

function asJson(value: object): Json {
  return value as Json;
}
