import { isJsonObject, type Json, type JsonObject, own, setOwn } from "./json.ts";
import { parsePath, valuesAt } from "./merge-path.ts";

/* Several results as one (interface specification, Manifest; decisions, "Results"). */

/** How several parts become one value: listed, their lists joined, their maps merged, or the last of them. */
export const MERGE_STRATEGIES = ["append", "concat", "merge", "replace"] as const;
/** One of {@link MERGE_STRATEGIES}. */
export type MergeStrategy = (typeof MERGE_STRATEGIES)[number];

/** `spec.result.accumulate`: what the results of several runs of a task come to. */
export type Accumulate = {
  strategy: MergeStrategy;
  /** Path into each part (`merge-path.ts`); absent: the part itself. */
  merge_path?: string;
};

/** Where one part of a manifest is. */
export type ManifestPart = {
  ref: string;
  bytes?: number;
  /** On parts of a loop's manifest: how many iterations' results it holds, as pairs of `[iteration, StoredResult]`. */
  count?: number;
};

/** The record of a manifest. It is itself stored, under a reference that ends in `/manifest`. */
export type Manifest = {
  kind: "manifest";
  strategy: MergeStrategy;
  merge_path?: string;
  parts: ManifestPart[];
  total_parts: number;
  total_bytes: number;
};

/**
 * The record of a list's result where some of it is stored: what each task gave, in order. It is made on request and is
 * stored nowhere. What it comes to has the fields of all parts, later wins.
 */
export type TasksManifest = {
  kind: "manifest";
  strategy: "fields";
  parts: TaskPart[];
  total_parts: number;
  total_bytes: number;
};

/** What one task gave: the value while it is inline, else where it is. */
export type TaskPart = { task: string } & (
  | { value: Json }
  | { ref: string; bytes?: number; sha256?: string; extracted?: JsonObject }
);

/** The manifest of these parts. */
export function manifestOf({ strategy, merge_path }: Accumulate, parts: readonly ManifestPart[]): Manifest {
  return {
    kind: "manifest",
    strategy,
    ...(merge_path !== undefined && { merge_path }),
    parts: [...parts],
    total_parts: parts.length,
    total_bytes: parts.reduce((sum, { bytes = 0 }) => sum + bytes, 0),
  };
}

/** True for the reference of a manifest. That of a task's payload ends in the id of its run. */
export function isManifestRef(ref: string): boolean {
  return ref.endsWith("/manifest");
}

/** The record of a list's result; undefined for anything else. */
export function asTasksManifest(value: Json): TasksManifest | undefined {
  if (!isJsonObject(value) || own(value, "kind") !== "manifest" || own(value, "strategy") !== "fields")
    return undefined;
  const parts = own(value, "parts");
  if (!Array.isArray(parts) || !parts.every(isTaskPart)) return undefined;
  return { kind: "manifest", strategy: "fields", parts, total_parts: parts.length, total_bytes: 0 };
}

function isTaskPart(part: Json): part is TaskPart {
  return isJsonObject(part) && (typeof own(part, "ref") === "string" || own(part, "value") !== undefined);
}

/** The readable part of the record: a manifest that a playbook wrote by hand has no counts. Undefined for anything else. */
export function asManifest(value: Json): Manifest | undefined {
  if (!isJsonObject(value) || own(value, "kind") !== "manifest") return undefined;
  const strategy = MERGE_STRATEGIES.find((name) => name === own(value, "strategy"));
  const parts = own(value, "parts");
  const path = own(value, "merge_path");
  if (strategy === undefined || !Array.isArray(parts) || !parts.every(isPart)) return undefined;
  return manifestOf({ strategy, ...(typeof path === "string" && { merge_path: path }) }, parts);
}

function isPart(part: unknown): part is ManifestPart {
  if (!isJsonObject(part) || typeof own(part, "ref") !== "string") return false;
  return [own(part, "bytes"), own(part, "count")].every((size) => size === undefined || typeof size === "number");
}

/** A merge under way: holds what the parts so far come to. */
export interface Merge {
  /** The next part. `merged`: it is itself the result of such a merge, and is taken without following the path. */
  add(part: Json, merged?: boolean): void;
  value(): Json;
}

/**
 * Starts a merge:
 * - `append`: the list of the parts;
 * - `concat`: the lists at `merge_path` joined; a value that is not a list is one item, null is none;
 * - `merge`: maps merged deeply, later ones win; a value that is not a map replaces the earlier one;
 * - `replace`: the last part.
 * A part without a match of the path adds nothing. Parts are not changed, but the result may share their objects.
 */
export function startMerge({ strategy, merge_path }: Accumulate): Merge {
  const path = merge_path === undefined ? [] : parsePath(merge_path);
  const list: Json[] = [];
  const mergeMaps = createMapMerge();
  let last: Json = null;
  const take = (value: Json, merged: boolean) => {
    if (strategy === "replace") last = value;
    else if (strategy === "merge") last = mergeMaps(last, value);
    else if ((merged || strategy === "concat") && Array.isArray(value)) for (const item of value) list.push(item);
    else if (strategy === "append" || value !== null) list.push(value);
  };
  return {
    add(part, merged = false) {
      if (merged) return take(part, true);
      for (const value of "message" in path ? [part] : valuesAt(path, part)) take(value, false);
    },
    value: () => (strategy === "append" || strategy === "concat" ? list : last),
  };
}

/** Merges a map into another. Only maps that it made itself are changed: the parts belong to others. */
function createMapMerge(): (left: Json, right: Json) => Json {
  const made = new WeakSet<object>();
  const merge = (left: Json, right: Json): Json => {
    if (!isJsonObject(left) || !isJsonObject(right)) return right;
    const target = made.has(left) ? left : { ...left };
    made.add(target);
    for (const key of Object.keys(right)) {
      const value = own(right, key) as Json;
      const before = own(target, key) as Json | undefined;
      setOwn(target, key, before === undefined ? value : merge(before, value));
    }
    return target;
  };
  return merge;
}
