import { isJsonObject, type JsonObject } from "../words/json.ts";

/** What came of a rerun's request and who made it: no change, and in the way of what is. */
const NO_CHANGE: ReadonlySet<string> = new Set(["reused", "will_run", "by"]);

/** What a rerun changed, as lineage tells it, in one line: keys with a short value, or with the names of what is in it. */
export function rerunChanges(changed: JsonObject): string {
  const given = Object.entries(changed).filter(([key]) => !NO_CHANGE.has(key));
  const parts = given.map(([key, value]) => {
    const short = isJsonObject(value)
      ? Object.keys(value).join(", ")
      : Array.isArray(value)
        ? value.join(", ")
        : String(value);
    return `${key}: ${short}`;
  });
  return parts.join("; ");
}
