import type { JsonObject } from "../words/json.ts";
import { storeNamed } from "./results.ts";

/**
 * A ResultRef as it is written today: one of the earlier kind `temp_ref` is a `result_ref`, and what was in the removed object
 * tier is on disk (interface specification, Versioning).
 */
export function currentRef(reference: JsonObject): JsonObject {
  const { kind, store } = reference;
  const today = typeof store === "string" ? (storeNamed(store) ?? store) : store;
  if (kind !== "temp_ref" && today === store) return reference;
  return { ...reference, kind: "result_ref", ...(today !== undefined && { store: today }) };
}
