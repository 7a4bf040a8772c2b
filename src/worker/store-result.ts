import type { WritableResultStore } from "../ports/result-store.ts";
import { FlowError, messageOf } from "../schema/errors.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../schema/json.ts";
import type { ResultConfig } from "../schema/playbook.ts";
import type { ResultRef, StoredResult } from "../schema/result.ts";

/** Largest result kept inline when `spec.result` does not say (decisions, "Results"). */
export const INLINE_BYTES_MAX = 65_536;
/** Largest result kept inline whatever `spec.result` says: an event with more has no room in a batch. */
export const INLINE_BYTES_LIMIT = 1_048_576;
/** Size of a preview when `spec.result` does not say. */
export const PREVIEW_BYTES_MAX = 2_048;

/** Which task run a result comes from. */
export interface ResultPlace {
  executionId: string;
  step: string;
  task: string;
  taskRunId: string;
}

/**
 * Keeps a task's result: inline while it is small, else in the store with a reference that carries its scalars, the
 * selected fields and a preview. The selected fields are readable by their names either way. A sensitive result is never
 * inline and shows nothing of itself.
 */
export async function storeResult(
  store: WritableResultStore,
  place: ResultPlace,
  data: Json,
  virtual: JsonObject | undefined,
  config: ResultConfig,
): Promise<{ result: StoredResult; bytes: number }> {
  const main = await storeValue(store, resultUri(place), data, config);
  const fields: Record<string, StoredResult> = {};
  if (main.result.ref === undefined) {
    const chosen = await selected(data, config);
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

/** Bytes that a reference takes in the state, roughly: what a loop's tail is measured by. */
const REFERENCE_BYTES = 1_024;

async function storeValue(
  store: WritableResultStore,
  ref: string,
  data: Json,
  config: ResultConfig,
): Promise<{ result: StoredResult; bytes: number }> {
  const json = JSON.stringify(data) ?? "null";
  const size = Buffer.byteLength(json);
  const inlineBytesMax = Math.min(config.inlineMaxBytes ?? INLINE_BYTES_MAX, INLINE_BYTES_LIMIT);
  if (!config.sensitive && size <= inlineBytesMax) {
    return { result: { value: data }, bytes: size };
  }
  const scope = textOf(config, "scope");
  const ttl = textOf(config, "ttl");
  const keeping = { ...(scope !== undefined && { scope }), ...(ttl !== undefined && { ttl }) };
  const saved = await store.save(ref, json, keeping);
  const reference: ResultRef = {
    kind: "result_ref",
    ref,
    store: saved.store ?? store.kind,
    scope: scope ?? "permanent",
    ...(saved.expiresAt !== undefined && { expires_at: saved.expiresAt }),
    meta: { content_type: "application/json", bytes: saved.bytes, sha256: saved.sha256 },
    extracted: config.sensitive ? {} : { ...scalars(data), ...(await selected(data, config)) },
    preview: config.sensitive ? HIDDEN : preview(json, size, config.previewMaxBytes ?? PREVIEW_BYTES_MAX),
  };
  return { result: { ref: reference }, bytes: REFERENCE_BYTES };
}

const HIDDEN = { truncated: true, bytes: 0, sample: "" };

/** `noetl://execution/{id}/step/{step}/task/{task}/run/{task_run_id}`, segments percent-encoded. */
function resultUri({ executionId, step, task, taskRunId }: ResultPlace): string {
  const segments = ["execution", executionId, "step", step, "task", task, "run", taskRunId];
  return `noetl://${segments.map(encodeURIComponent).join("/")}`;
}

/** A key of `spec.result.store`. */
function textOf(config: ResultConfig, key: string): string | undefined {
  const value = config.store?.[key];
  return typeof value === "string" ? value : undefined;
}

/** Longest text that stays readable without loading the payload. */
const SCALAR_TEXT_MAX = 256;

/** Top-level scalars, short texts among them: they stay readable beside the reference. */
function scalars(data: Json): JsonObject {
  const found: JsonObject = {};
  if (!isJsonObject(data)) return found;
  for (const key of Object.keys(data)) {
    const value = own(data, key);
    if (typeof value === "object" && value !== null) continue;
    if (typeof value !== "string" || value.length <= SCALAR_TEXT_MAX) setOwn(found, key, value);
  }
  return found;
}

/**
 * The fields that `select` names, by RFC 9535 JSONPath; a path that matches several gives the list of them. Throws
 * `FlowError` INVALID_INPUT for a path that does not parse.
 */
async function selected(data: Json, config: ResultConfig): Promise<JsonObject> {
  const found: JsonObject = {};
  if (config.select.length === 0) return found;
  const { query } = await import("json-p3");
  for (const { path, as } of config.select) {
    try {
      const values = query(path, data as never).values() as Json[];
      setOwn(found, as, values.length > 1 ? values : (values[0] ?? null));
    } catch (error) {
      const message = `Cannot select "${as}" from the result by the path "${path}": ${messageOf(error)}`;
      throw new FlowError("INVALID_INPUT", `${message}. A path is RFC 9535 JSONPath, as $.data.items[0].id`);
    }
  }
  return found;
}

function preview(json: string, bytes: number, max: number): ResultRef["preview"] {
  return { truncated: bytes > max, bytes, sample: json.slice(0, max) };
}
