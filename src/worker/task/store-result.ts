import { keepingOf } from "../../engine/state/results.ts";
import { selectValue } from "../../language/words/json-path.ts";
import type { WritableResultStore } from "../../ports/result-store.ts";
import { storedRef, type UnstoredRef } from "../../schema/rules/stored-ref.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { isDeeper, RESULT_DEPTH_MAX } from "../../schema/words/json-depth.ts";
import { jsonText } from "../../schema/words/json-text.ts";
import type { Manifest } from "../../schema/words/manifest.ts";
import type { NewArtifact, ToolResult } from "../../schema/words/outcome.ts";
import type { ResultConfig } from "../../schema/words/playbook.ts";
import type { ResultRef, StoredResult } from "../../schema/words/result.ts";

/** Largest result kept inline when `spec.result` does not say (decisions, "Results"). */
export const INLINE_BYTES_MAX = 65_536;
/** Largest result kept inline whatever `spec.result` says: an event with more has no room in a batch. */
export const INLINE_BYTES_LIMIT = 1_048_576;
/** Size of a preview when `spec.result` does not say. */
export const PREVIEW_BYTES_MAX = 2_048;
/** Largest preview, whatever `spec.result` says: it stands in an event. */
const PREVIEW_BYTES_LIMIT = 65_536;

/** Which task run a result comes from. */
export interface ResultPlace {
  executionId: string;
  step: string;
  task: string;
  taskRunId: string;
}

/** A result as it is reported, and its size: what a loop's tail is measured by. */
export interface Kept {
  result: StoredResult;
  bytes: number;
  /** References of the files that were stored besides. */
  files?: readonly string[];
}

/**
 * Keeps a task's result: inline while it is small, else in the store with a reference that carries its scalars, the
 * selected fields and a preview. The selected fields are readable by their names either way. A sensitive result is never
 * inline and shows nothing of itself. Throws `FlowError` of the store, and INVALID_INPUT for a selection that is too large, or a result that is nested too deep.
 */
export async function storeResult(
  store: WritableResultStore,
  place: ResultPlace,
  data: Json,
  virtual: JsonObject | undefined,
  config: ResultConfig,
): Promise<Kept> {
  const main = await storeValue(store, resultUri(place), data, config);
  const fields: Record<string, StoredResult> = {};
  if (main.result.ref === undefined) {
    const chosen = selected(data, config);
    for (const key of Object.keys(chosen)) setOwn(fields, key, { value: own(chosen, key) as Json });
  }
  let { bytes } = main;
  for (const key of Object.keys(virtual ?? {})) {
    const ref = `${resultUri(place)}/${encodeURIComponent(key)}`;
    const field = await storeValue(store, ref, virtual?.[key] ?? null, config);
    setOwn(fields, key, field.result);
    bytes += field.bytes;
  }
  return { result: Object.keys(fields).length === 0 ? main.result : { ...main.result, virtual: fields }, bytes };
}

/**
 * Stores the text of a large result as it came, without reading its value; what is shown of it is the same as
 * {@link storeResult} shows. Undefined where its value is needed: it is inline, sensitive, or has fields that are selected.
 */
export async function storeLarge(
  store: WritableResultStore,
  place: ResultPlace,
  { large, virtual }: ToolResult,
  config: ResultConfig,
): Promise<Kept | undefined> {
  if (large === undefined || virtual !== undefined || config.sensitive || config.select.length > 0) return undefined;
  const { text, outline } = large;
  if (text.length <= inlineBytesMax(config)) return undefined;
  const shown = { extracted: scalars(outline), fields: fieldNames(outline) };
  return { result: { ref: await storeText(store, resultUri(place), text, shown, config) }, bytes: REFERENCE_BYTES };
}

/** Bytes that a reference takes in the state, roughly: what a loop's tail is measured by. */
const REFERENCE_BYTES = 1_024;

async function storeValue(
  store: WritableResultStore,
  ref: string,
  data: Json,
  config: ResultConfig,
): Promise<{ result: StoredResult; bytes: number }> {
  const json = jsonOf(data);
  const size = Buffer.byteLength(json);
  if (!config.sensitive && size <= inlineBytesMax(config)) return { result: { value: data }, bytes: size };
  const extracted = config.sensitive ? {} : { ...scalars(data), ...selected(data, config) };
  const shown = { extracted, fields: fieldNames(data) };
  return { result: { ref: await storeText(store, ref, json, shown, config) }, bytes: REFERENCE_BYTES };
}

/** Throws `FlowError` INVALID_INPUT for a value that nothing after this could handle: neither the server nor templates. */
function jsonOf(data: Json): string {
  const json = stringified(data);
  if (json !== undefined && !isDeeper(json, RESULT_DEPTH_MAX)) return json;
  const what = `The result has more than ${RESULT_DEPTH_MAX} lists and maps within each other`;
  throw new FlowError("INVALID_INPUT", `${what}. Reshape it in the task, or give it as text`);
}

/** Undefined for a value that is nested so deep that the stack ends. */
function stringified(data: Json): string | undefined {
  try {
    return jsonText(data) ?? "null";
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Largest result that this configuration keeps inline, in bytes. */
export function inlineBytesMax({ inlineMaxBytes = INLINE_BYTES_MAX }: ResultConfig): number {
  return Math.min(inlineMaxBytes, INLINE_BYTES_LIMIT);
}

/** Stores a value however small it is: the part of a manifest. Gives where it is. */
export async function storePart(
  store: WritableResultStore,
  place: ResultPlace,
  data: Json,
  config: ResultConfig,
): Promise<{ ref: string; bytes: number }> {
  const { ref, meta } = await storeText(
    store,
    resultUri(place),
    JSON.stringify(data),
    { extracted: {}, fields: undefined },
    config,
  );
  return { ref, bytes: meta.bytes };
}

/** Stores the record of a manifest: `shown` is the summary of its parts. */
export async function storeManifest(
  store: WritableResultStore,
  place: ResultPlace,
  manifest: Manifest,
  shown: Shown,
  config: ResultConfig,
): Promise<Kept> {
  const json = JSON.stringify(manifest);
  const ref = await storeText(store, `${resultUri(place)}/manifest`, json, shown, config);
  return { result: { ref }, bytes: REFERENCE_BYTES };
}

/** What can be read of a payload without loading it. */
export interface Shown {
  extracted: JsonObject;
  /** Names of its fields ({@link fieldNames}). */
  fields: string[] | undefined;
}

/** The one place from which a payload leaves for the store: `json` is what is written, all that is shown of it is `shown` and the preview. */
async function storeText(
  store: WritableResultStore,
  ref: string,
  json: string | Uint8Array<ArrayBuffer>,
  { extracted, fields }: Shown,
  config: ResultConfig,
): Promise<ResultRef> {
  const saved = await store.save(ref, json, keepingOf(config));
  const previewBytes = Math.min(config.previewMaxBytes ?? PREVIEW_BYTES_MAX, PREVIEW_BYTES_LIMIT);
  const { bytes } = saved;
  const unstored: UnstoredRef = {
    ref,
    scope: config.store?.scope ?? "permanent",
    meta: {
      content_type: "application/json",
      ...(fields !== undefined && !config.sensitive && { fields }),
    },
    extracted,
    preview: config.sensitive ? { truncated: true, bytes: 0, sample: "" } : preview(json, bytes, previewBytes),
  };
  return storedRef(unstored, { ...saved, store: saved.store ?? store.kind });
}

/**
 * How long a file is kept: as long as its execution, with which it is deleted. Stores have a time for everything, and this one is longer than
 * executions are kept.
 */
const FILE_KEPT = "36500d";

/**
 * Stores a file of a task, and gives what its result says of it. Every attempt of the command stores it under the same reference, so that what
 * a lost claim has left is replaced; it is among the files of the execution when the task's report is accepted, which names it. Throws
 * `FlowError` as the store does, and INVALID_INPUT for a file that holds a secret.
 */
export async function storeArtifact(
  store: WritableResultStore,
  place: ResultPlace,
  { name, contentType, content }: NewArtifact,
): Promise<JsonObject & { ref: string }> {
  const ref = `${resultUri(place)}/artifact/${encodeURIComponent(name)}`;
  const { sha256, bytes } = await store.save(ref, content, { contentType, ttl: FILE_KEPT, isFile: true });
  return { name, ref, content_type: contentType, bytes, sha256 };
}

/** `noetl://execution/{id}/step/{step}/task/{task}/run/{task_run_id}`, segments percent-encoded. */
function resultUri({ executionId, step, task, taskRunId }: ResultPlace): string {
  const segments = ["execution", executionId, "step", step, "task", task, "run", taskRunId];
  return `noetl://${segments.map(encodeURIComponent).join("/")}`;
}

/** Longest text that stays readable without loading the payload. */
const SCALAR_TEXT_MAX = 256;
/** Most characters of all of them together, with their names: they stand in an event. A map of a hundred thousand numbers has more. */
const SCALARS_CHARS_MAX = 16_384;

/** Top-level scalars, short texts among them: they stay readable beside the reference. */
export function scalars(data: Json): JsonObject {
  const found: JsonObject = {};
  if (!isJsonObject(data)) return found;
  let left = SCALARS_CHARS_MAX;
  for (const key of Object.keys(data)) {
    const value = own(data, key);
    if (typeof value === "object" && value !== null) continue;
    const length = typeof value === "string" ? value.length : 8;
    // What is left out uses up nothing: a later one may fit.
    if (length > SCALAR_TEXT_MAX || key.length + length > left) continue;
    left -= key.length + length;
    setOwn(found, key, value);
  }
  return found;
}

/** Most characters of the names of a payload's fields: they stand in an event. */
const NAMES_CHARS_MAX = 4_096;

/** The names of a payload's fields in order, as many as fit; undefined if the payload is not a map. */
export function fieldNames(data: Json): string[] | undefined {
  if (!isJsonObject(data)) return undefined;
  let left = NAMES_CHARS_MAX;
  const names: string[] = [];
  for (const name of Object.keys(data)) {
    left -= name.length;
    if (left < 0) break;
    names.push(name);
  }
  return names;
}

/** Largest JSON of all selected fields of a result together: they stand in its event, whatever the result's size. */
const SELECTED_BYTES_MAX = 65_536;

/** The fields that `select` names, by their names. */
function selected(data: Json, { select }: ResultConfig): JsonObject {
  const found: JsonObject = {};
  let left = SELECTED_BYTES_MAX;
  for (const { path, as } of select) {
    const value = selectValue(path, data);
    left -= Buffer.byteLength(JSON.stringify(value));
    if (left < 0) {
      const most = SELECTED_BYTES_MAX.toLocaleString("en");
      const what = `The field "${as}" (${path}) makes the selected fields of this result larger than ${most} bytes`;
      throw new FlowError("INVALID_INPUT", `${what}. Select small fields: the others are read from the stored result`);
    }
    setOwn(found, as, value);
  }
  return found;
}

/** The beginning of the text, cut between two characters. */
function preview(text: string | Uint8Array<ArrayBuffer>, bytes: number, max: number): ResultRef["preview"] {
  const json = typeof text === "string" ? text : new TextDecoder().decode(text.subarray(0, max));
  if (bytes <= max) return { truncated: false, bytes, sample: json };
  const { read } = new TextEncoder().encodeInto(json.slice(0, max), new Uint8Array(max));
  return { truncated: true, bytes, sample: json.slice(0, read) };
}
