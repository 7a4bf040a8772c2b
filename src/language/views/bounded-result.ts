import { isInline, loopFields, mergedFields, wholeLoop } from "../../schema/rules/whole-result.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { manifestOf, type TaskPart, type TasksManifest } from "../../schema/words/manifest.ts";
import type { FieldRef, LoopResult, ResultRef, StoredResult } from "../../schema/words/result.ts";
import { noReferences, withReferences } from "./references.ts";

/*
 * Stored results as JSON for people and programs outside of the run, without loading anything: what the API shows of an
 * execution, and what `flow run --json` shows of a step.
 */

/** Longest result that is shown inline, in bytes of its JSON (decisions, "Results"). */
export const SHOWN_BYTES_MAX = 65_536;

/**
 * The result where it is inline, else its reference; of a list of tasks the fields of all of them, each its value or where that
 * is; of a loop beyond the limit a manifest (interface specification, Manifest).
 */
export function boundedResult(stored: StoredResult, bytesMax: number = SHOWN_BYTES_MAX): Json {
  if (stored.ref !== undefined) return asJson(stored.ref);
  if (stored.tasks !== undefined) return boundedTasks(stored.tasks);
  if (stored.loop !== undefined) return boundedLoop(stored.loop, bytesMax);
  return stored.value ?? null;
}

/**
 * The fields of all tasks, later ones win, inline or stored: a field whose value is known beside the reference has it, any
 * other stands as a {@link FieldRef}. If no task's result has fields, the last result; a sensitive one is left out.
 */
function boundedTasks(tasks: readonly [string, StoredResult][]): Json {
  const results = tasks.map(([, result]) => result).filter(({ ref }) => ref === undefined || !isSensitive(ref));
  const withFields = results.filter(({ ref }) => ref === undefined || ref.meta.fields !== undefined);
  const shown = withFields.map((result) =>
    result.ref === undefined ? boundedResult(result) : knownFields(result.ref),
  );
  if (shown.some(isJsonObject)) return mergedFields(shown);
  const last = results.at(-1);
  return last === undefined ? null : boundedResult(last);
}

/** The fields of a stored payload that are known without loading it. */
function knownFields(reference: ResultRef): JsonObject {
  const { ref, store, meta, extracted } = reference;
  const fields: JsonObject = {};
  for (const field of meta.fields ?? []) {
    const { bytes, sha256 } = meta;
    const elsewhere: FieldRef = { kind: "result_ref", ref, field, store, meta: { bytes, sha256 } };
    setOwn(fields, field, Object.hasOwn(extracted, field) ? (own(extracted, field) as Json) : asJson(elsewhere));
  }
  return fields;
}

/** The size of a sensitive result is not shown. */
function isSensitive({ preview }: ResultRef): boolean {
  return preview.truncated && preview.bytes === 0;
}

/** The manifest of a list's result: what each of its tasks gave, or where that is. */
export function tasksManifest(tasks: readonly [string, StoredResult][]): TasksManifest {
  const parts = tasks.map(([task, result]) => taskPart(task, result));
  const sizes = parts.map((part) => ("ref" in part ? (part.bytes ?? 0) : jsonBytes(part.value)));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  return { kind: "manifest", strategy: "fields", parts, total_parts: parts.length, total_bytes: total };
}

function taskPart(task: string, result: StoredResult): TaskPart {
  const { ref } = result;
  if (ref === undefined) return { task, value: boundedResult(result) };
  const { meta, extracted } = ref;
  return { task, ref: ref.ref, ...(!isSensitive(ref) && { bytes: meta.bytes, sha256: meta.sha256 }), extracted };
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
