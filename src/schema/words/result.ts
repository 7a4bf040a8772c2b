import type { Json, JsonObject } from "./json.ts";
import type { Accumulate } from "./manifest.ts";
import type { ToolResult } from "./outcome.ts";

/** Where a payload lives when it is not inline (interface specification, ResultRef). */
export type ResultRef = {
  kind: "result_ref";
  /**
   * `noetl://execution/{execution_id}/step/{step}/task/{task}/run/{task_run_id}`, segments percent-encoded; that of a
   * manifest ends in `/manifest`.
   */
  ref: string;
  store: string;
  scope: string;
  expires_at?: string;
  /**
   * `fields`: the names of the payload's fields in their order, up to 4,096 characters in all; absent if it is not a map, and
   * if it is sensitive.
   */
  meta: {
    content_type: string;
    bytes: number;
    sha256: string;
    compression?: string;
    fields?: string[];
  } & JsonObject;
  extracted: JsonObject;
  preview: { truncated: boolean; bytes: number; sample: string };
};

/** One field of a stored payload, where the payload itself is not loaded. */
export type FieldRef = {
  kind: "result_ref";
  /** Of the whole payload. */
  ref: string;
  /** Its name in the payload. */
  field: string;
  store: string;
  /** Of the whole payload. */
  meta: { bytes: number; sha256: string };
};

/**
 * A result as the engine keeps it: written once, never copied. Exactly one of `value`, `ref`, `tasks`, `loop`, `runs` is
 * set.
 *
 * - `value`: inline JSON.
 * - `ref`: the payload, or the manifest of several, is in a store.
 * - `tasks`: a pipeline. Its value is the merge of its tasks' fields, computed when it is read.
 * - `loop`: a loop. Its results are inline while small, else in parts.
 * - `runs`: several runs of a task, while it may run again: only within the worker that runs them.
 */
export type StoredResult = {
  value?: Json;
  ref?: ResultRef;
  tasks?: [label: string, result: StoredResult][];
  loop?: LoopResult;
  runs?: RunsResult;
  /** `value` is what several runs of a task came to (`spec.result.accumulate`): an outer merge takes it as it is. */
  merged?: true;
  /** An iteration that failed, of a loop whose results are merged: `value` is no part of the whole. */
  failed?: true;
  /** Fields readable by name although they are not part of the value (`command_0`). */
  virtual?: Record<string, StoredResult>;
  /** Absent in loops, where a hundred thousand of them would weigh more than the results, and on sensitive results. */
  about?: ResultAbout;
};

/** What arcs can read of a task run besides its result: the rest of the envelope (language document, section 5.2). */
export type ResultAbout = {
  meta: { attempt: number; duration_ms: number };
  http?: NonNullable<ToolResult["http"]>;
  pg?: NonNullable<ToolResult["pg"]>;
  py?: NonNullable<ToolResult["py"]>;
};

/** Result of a loop: counters, and the iterations' results in parts that each hold some of them. */
export type LoopResult = {
  status: "completed" | "failed";
  stats: { total: number; success: number; failed: number };
  /** Results that are inline: [iteration, result], in any order. */
  tail: [index: number, result: StoredResult][];
  /** Results that were moved to the store, each part a list like `tail` from `min` to `max`. */
  parts: LoopPart[];
  /** Reference of the stored manifest of the parts; absent while there are no parts, and for a loop that was cut off. */
  manifest?: string;
  /** What the results come to; absent: the list of them. */
  accumulate?: Accumulate;
};

/** Results of several runs of a task so far, in their order. */
export type RunsResult = {
  accumulate: Accumulate;
  /** Each with its payload, or with the reference under which that is. */
  parts: ({ ref: string; bytes: number } | { value: Json })[];
  /** Scalars and selected fields of the last run. */
  extracted: JsonObject;
};

/** One stored part of a loop's results. */
export type LoopPart = {
  ref: string;
  count: number;
  min: number;
  max: number;
  bytes: number;
};

/**
 * Where the store `kv` has a payload that is no value of a broker: a row of the service's table `flow.result`, found by its
 * reference. A local run, which has no stores, says the same.
 */
export function kvRowPlace(ref: string): { bucket: string; key: string } {
  return { bucket: "flow.result", key: ref };
}

/** Where a file stands that a task has stored. */
export interface ArtifactPlace {
  executionId: string;
  step: string;
  task: string;
  /** The run of the task. */
  run: string;
  name: string;
}

const ARTIFACT = /^noetl:\/\/execution\/([^/]+)\/step\/([^/]+)\/task\/([^/]+)\/run\/([^/]+)\/artifact\/([^/]+)$/;

/** What the reference of a file says; undefined for a reference of a result. */
export function placeOfArtifact(ref: string): ArtifactPlace | undefined {
  try {
    const [executionId, step, task, run, name] = (ARTIFACT.exec(ref) ?? []).slice(1).map(decodeURIComponent);
    const isWhole = executionId !== undefined && step !== undefined && task !== undefined && run !== undefined;
    return isWhole && name !== undefined ? { executionId, step, task, run, name } : undefined;
  } catch {
    return undefined;
  }
}
