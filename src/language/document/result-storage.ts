import { RESULT_COMPRESSIONS, RESULT_SCOPES, RESULT_STORES, storeNamed } from "../../schema/api/results.ts";
import { AccumulateForm, ResultField, ResultStorage, StoreForm } from "../../schema/documents/document-task.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { type Accumulate, MERGE_STRATEGIES } from "../../schema/words/manifest.ts";
import { type PathProblem, parsePath } from "../../schema/words/merge-path.ts";
import type { ResultConfig, StoreConfig } from "../../schema/words/playbook.ts";
import { pathProblem } from "../words/json-path.ts";
import { didYouMean } from "./source/hints.ts";
import { field, firstField, isMap, type Place, textOf } from "./source/place.ts";
import { checkKeys, legacy, type Reading } from "./source/reading.ts";
import { textOffset } from "./source/text-offset.ts";

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
    const inlineMaxBytes = readBytes(reading, field(storage, "inline_max_bytes"));
    if (inlineMaxBytes !== undefined) result.inlineMaxBytes = inlineMaxBytes;
    const previewMaxBytes = readBytes(reading, field(storage, "preview_max_bytes"));
    if (previewMaxBytes !== undefined) result.previewMaxBytes = previewMaxBytes;
    const store = field(storage, "store");
    if (store !== undefined) result.store = readStore(reading, store);
    const accumulate = readAccumulate(reading, field(storage, "accumulate"));
    if (accumulate !== undefined) result.accumulate = accumulate;
    const fields = firstField(storage, "select", "output_select");
    if (fields !== undefined) result.select = readSelect(reading, fields);
    if (field(storage, "sensitive")?.value === true) result.sensitive = true;
  }
  if (select !== undefined) result.select = readSelect(reading, select);
  return result;
}

function readBytes(reading: Reading, place: Place | undefined): number | undefined {
  if (typeof place?.value !== "number") return undefined;
  if (Number.isSafeInteger(place.value) && place.value >= 0) return place.value;
  reading.report("wrong-value", place, `\`${place.key}\` must be a whole number of bytes from 0, not ${place.value}`);
  return undefined;
}

/** Names of stores in other products, and what they are called here. */
const STORE_ALIASES: Readonly<Record<string, string>> = { gcs: "cloud_bucket", postgres: "sqldb", db: "sqldb" };

function readStore(reading: Reading, place: Place): StoreConfig {
  checkKeys(reading, place, StoreForm);
  const kind = readStoreKind(reading, isMap(place) ? field(place, "kind") : place);
  const scope = readOneOf(reading, field(place, "scope"), RESULT_SCOPES);
  const ttl = readTtl(reading, field(place, "ttl"));
  const compression = readOneOf(reading, field(place, "compression"), RESULT_COMPRESSIONS);
  return {
    ...(kind !== undefined && { kind }),
    ...(scope !== undefined && { scope }),
    ...(ttl !== undefined && { ttl }),
    ...(compression !== undefined && { compression }),
  };
}

function readStoreKind(reading: Reading, place: Place | undefined): string | undefined {
  const written = textOf(place);
  if (place === undefined || written === undefined) return undefined;
  const alias = own(STORE_ALIASES, written) as string | undefined;
  const kind = storeNamed(alias ?? written);
  if (kind === undefined) return readOneOf(reading, place, ["auto", ...RESULT_STORES]);
  if (kind !== written) legacy(reading, place, `the store \`${written}\``, `\`${kind}\``);
  return kind;
}

/** The text, if it is one of `known`. Nothing here is rendered: the value is needed when the playbook is read. */
function readOneOf(reading: Reading, place: Place | undefined, known: readonly string[]): string | undefined {
  const written = textOf(place);
  if (place === undefined || written === undefined || known.includes(written)) return written;
  const message = `\`${place.key}\` must be one of ${known.join(", ")}, not \`${written}\``;
  reading.report("wrong-value", place, message, () => didYouMean(written, known));
  return undefined;
}

const TTL = /^\d{1,12}(\.\d{1,6})?(ms|s|m|h|d)$/;

/** A duration as the store reads it; a bare number is seconds, as everywhere. */
function readTtl(reading: Reading, place: Place | undefined): string | undefined {
  if (place === undefined) return undefined;
  const written = String(place.value).trim();
  const ttl = /^[\d.]+$/.test(written) ? `${written}s` : written;
  if (TTL.test(ttl) && Number.parseFloat(ttl) > 0) return ttl;
  reading.report("wrong-value", place, `\`ttl\` must be a duration such as 90s, 15m, 1h or 30d, not \`${written}\``);
  return undefined;
}

function readAccumulate(reading: Reading, place: Place | undefined): Accumulate | undefined {
  if (place === undefined) return undefined;
  checkKeys(reading, place, AccumulateForm);
  const named = isMap(place) ? field(place, "strategy") : place;
  if (named === undefined) {
    const hint = `\`strategy\` is one of ${MERGE_STRATEGIES.join(", ")}`;
    reading.report("missing-key", place, "`accumulate` needs a `strategy`: how the results become one", hint);
    return undefined;
  }
  const strategy = MERGE_STRATEGIES.find((name) => name === readOneOf(reading, named, MERGE_STRATEGIES));
  const path = field(place, "merge_path");
  const mergePath = readPath(reading, path, (text) => {
    const segments = parsePath(text);
    return "message" in segments ? segments : undefined;
  });
  if (strategy === undefined) return undefined;
  return { strategy, ...(mergePath !== undefined && { merge_path: mergePath }) };
}

/** A path of RFC 9535; one without `$` starts at the result. `problem` finds errors in it. */
function readPath(
  reading: Reading,
  place: Place | undefined,
  problem: (path: string) => PathProblem | undefined,
): string | undefined {
  const written = textOf(place);
  if (place === undefined || written === undefined) return undefined;
  const head = written.startsWith("$") ? "" : "$.";
  const found = problem(head + written);
  if (found === undefined) return head + written;
  const at = Math.max(0, found.at - head.length);
  const message = `\`${written.slice(0, SHOWN_CHARS)}\` is no path: ${found.message}, at its character ${at + 1}`;
  reading.report(
    "wrong-value",
    place,
    message,
    "a path is JSONPath, as `$.data.items[0].id` or `$['odd name']`",
    textOffset("", place, at),
  );
  return undefined;
}

const SHOWN_CHARS = 100;

function readSelect(reading: Reading, place: Place): ResultConfig["select"] {
  if (isJsonObject(place.value)) {
    const hint = "today: a list of `{path: $.data.id, as: id}`";
    reading.report("unknown-form", place, `\`${place.key}\` as a map says nothing here and is passed over`, hint);
    return [];
  }
  const select: ResultConfig["select"] = [];
  for (const item of place.items) {
    const text = textOf(item);
    if (text !== undefined) legacy(reading, item, "a path alone", "`{path: …, as: …}`");
    checkKeys(reading, item, ResultField);
    const written = text === undefined ? field(item, "path") : item;
    const path = readPath(reading, written, pathProblem);
    if (path === undefined) continue;
    const as = textOf(field(item, "as")) ?? lastName(textOf(written) ?? path);
    select.push({ path, as });
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
