import type { Json, JsonObject } from "./json.ts";
import type { ToolResult } from "./outcome.ts";

/** Where a payload lives when it is not inline (interface specification, ResultRef). */
export type ResultRef = {
  kind: "result_ref";
  /** `noetl://execution/{execution_id}/step/{step}/task/{task}/run/{task_run_id}`, segments percent-encoded. */
  ref: string;
  store: string;
  scope: string;
  expires_at?: string;
  meta: { content_type: string; bytes: number; sha256: string; compression?: string } & JsonObject;
  extracted: JsonObject;
  preview: { truncated: boolean; bytes: number; sample: string };
};

/**
 * A result as the engine keeps it: written once, never copied. Exactly one of `value`, `ref`, `tasks`, `loop` is set.
 *
 * - `value`: inline JSON.
 * - `ref`: the payload is in a store.
 * - `tasks`: a pipeline. Its value is the merge of its tasks' fields, computed when somebody reads it.
 * - `loop`: a loop. Its results are inline while small, else in parts.
 */
export type StoredResult = {
  value?: Json;
  ref?: ResultRef;
  tasks?: [label: string, result: StoredResult][];
  loop?: LoopResult;
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
};

/** One stored part of a loop's results. */
export type LoopPart = {
  ref: string;
  count: number;
  min: number;
  max: number;
  bytes: number;
};
