import { ResultField, ResultStorage } from "../../schema/document-task.ts";
import type { ResultConfig } from "../../schema/playbook.ts";
import { field, firstField, isMap, type Place, textOf } from "./place.ts";
import { checkKeys, legacy, type Reading } from "./reading.ts";

/** A result without any setting: all defaults. */
export function defaultResult(): ResultConfig {
  return { select: [], sensitive: false };
}

/**
 * How a result is stored, from every place that may say so (`spec.result`, `spec.output`, `output`, `output_select`); a
 * later place wins, key by key.
 */
export function readResult(reading: Reading, storages: readonly (Place | undefined)[], select?: Place): ResultConfig {
  const result = defaultResult();
  for (const storage of storages) {
    if (!isMap(storage)) continue;
    checkKeys(reading, storage, ResultStorage);
    const inlineMaxBytes = field(storage, "inline_max_bytes")?.value;
    if (typeof inlineMaxBytes === "number") result.inlineMaxBytes = inlineMaxBytes;
    const previewMaxBytes = field(storage, "preview_max_bytes")?.value;
    if (typeof previewMaxBytes === "number") result.previewMaxBytes = previewMaxBytes;
    const store = field(storage, "store")?.value;
    if (typeof store === "string") result.store = { kind: store };
    else if (typeof store === "object" && store !== null && !Array.isArray(store)) result.store = store;
    const accumulate = field(storage, "accumulate")?.value;
    if (typeof accumulate === "object" && accumulate !== null && !Array.isArray(accumulate))
      result.accumulate = accumulate;
    const fields = firstField(storage, "select", "output_select");
    if (fields !== undefined) result.select = readSelect(reading, fields);
    if (field(storage, "sensitive")?.value === true) result.sensitive = true;
  }
  if (select !== undefined) result.select = readSelect(reading, select);
  return result;
}

function readSelect(reading: Reading, place: Place): ResultConfig["select"] {
  const select: ResultConfig["select"] = [];
  for (const item of place.items) {
    const text = textOf(item);
    if (text !== undefined) legacy(reading, item, "a path alone", "`{path: …, as: …}`");
    checkKeys(reading, item, ResultField);
    const path = text ?? textOf(field(item, "path"));
    if (path === undefined) continue;
    const as = textOf(field(item, "as")) ?? lastName(path);
    select.push({ path: path.startsWith("$") ? path : `$.${path}`, as });
  }
  return select;
}

/**
 * `id` for `$.data.items[0].id`, `items` for `$.items[0]`; the whole path where it ends in no name. By hand, from the end:
 * a pattern that is tried at every character took 3 s for a path of 40,000, and for ever for forty times `['x']`.
 */
function lastName(path: string): string {
  let end = path.length;
  while (path[end - 1] === "]") {
    const open = path.indexOf("[", path.lastIndexOf("]", end - 2) + 1);
    if (open === -1 || open >= end) return path;
    end = open;
  }
  let start = end;
  while (start > 0 && /[\w-]/.test(path[start - 1] ?? "")) start -= 1;
  return start === end ? path : path.slice(start, end);
}
