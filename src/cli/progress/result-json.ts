import type { ResultStore } from "../../ports/result-store.ts";
import { loading, wholeResult as whole } from "../../schema/rules/whole-result.ts";
import type { Json } from "../../schema/words/json.ts";
import type { ResultRef, StoredResult } from "../../schema/words/result.ts";

/**
 * The whole result, loaded where it is by reference. What is marked sensitive stays a reference: its place is the store,
 * not somebody's terminal or build log. Throws `FlowError` REFERENCE_NOT_AVAILABLE.
 */
export async function wholeResult(stored: StoredResult, store: ResultStore): Promise<Json> {
  return await loading(
    whole(stored, (ref) => !isSensitive(ref)),
    (ref) => store.load(ref),
  );
}

/** The reference shows nothing of its payload, not even its size: how a sensitive result is stored. */
function isSensitive(ref: ResultRef): boolean {
  return ref.preview.truncated && ref.preview.bytes === 0;
}
