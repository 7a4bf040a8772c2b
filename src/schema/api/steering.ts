import * as v from "valibot";
import { ExecutionFilterBody } from "../rules/execution-filter-schema.ts";
import { EXECUTION_STATES } from "../rules/execution-states.ts";
import type { Json } from "../words/json.ts";
import { IdText, JsonObjectValue, JsonValue, storableText, Timestamp, VersionNumber } from "../words/wire.ts";

const count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** Longest reason, in characters. */
const REASON_MAX = 1_024;
/** Longest result that a person may give to a step, in bytes of JSON: the default limit of a result that is kept inline. */
export const GIVEN_RESULT_BYTES_MAX = 65_536;

const isShort = (value: Json) => new TextEncoder().encode(JSON.stringify(value)).length <= GIVEN_RESULT_BYTES_MAX;

/** Body of `POST /api/executions/{execution_id}/steps/{step}/override`. */
export const OverrideBody = v.pipe(
  v.strictObject({
    action: v.pipe(
      v.picklist(["skip", "complete", "fail"]),
      v.description("How the step ends: skipped, completed with `result`, or failed with `error`."),
    ),
    reason: v.pipe(
      storableText(REASON_MAX),
      v.check((text) => text.trim() !== "", "must not be empty"),
      v.description("Why; it is in the log, in the audit log and on the page."),
    ),
    result: v.exactOptional(
      v.pipe(
        JsonValue,
        v.check(isShort, `must be at most ${GIVEN_RESULT_BYTES_MAX} bytes of JSON`),
        v.description("Of `complete`; null by default."),
      ),
    ),
    error: v.exactOptional(
      v.pipe(
        v.strictObject({
          code: v.exactOptional(v.pipe(storableText(128), v.minLength(1))),
          message: v.exactOptional(v.pipe(storableText(REASON_MAX), v.minLength(1))),
          details: v.exactOptional(v.pipe(JsonValue, v.check(isShort, "is too long"))),
        }),
        v.description("Of `fail`; the code is OVERRIDDEN by default."),
      ),
    ),
    iteration: v.exactOptional(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(0),
        v.maxValue(Number.MAX_SAFE_INTEGER),
        v.description(
          "Only this iteration of the step's loop, from 0. By default all that are open, and the loop with them.",
        ),
      ),
    ),
  }),
  v.check(({ action, result }) => result === undefined || action === "complete", "result: only `complete` has one"),
  v.check(({ action, error }) => error === undefined || action === "fail", "error: only `fail` has one"),
);

/** Answer of an override. */
export const OverrideAnswer = v.object({
  execution_id: IdText,
  step: v.string(),
  status: v.pipe(
    v.picklist(["PENDING", "RUNNING", "COMPLETED", "FAILED", "SKIPPED"]),
    v.description(
      "Of the step: PENDING where it has not begun, RUNNING where its loop goes on, or the execution is paused.",
    ),
  ),
});

/** What one call does with many executions. */
export const BULK_ACTIONS = ["cancel", "pause", "resume", "rerun"] as const;
export type BulkAction = (typeof BULK_ACTIONS)[number];

/** States of such an operation; the last two are final. */
export const BULK_STATUSES = ["running", "paused", "completed", "cancelled"] as const;
export type BulkStatus = (typeof BULK_STATUSES)[number];

/** Most executions of one operation: their ids are written with it. */
export const BULK_MATCHED_MAX = 100_000;

/** Failures that its answer lists; `counts` has their number. */
export const BULK_FAILURES_LISTED = 100;

/** Executions that a preview shows. */
export const BULK_SAMPLE = 20;

const SteerOptions = v.strictObject({
  reason: v.exactOptional(v.pipe(storableText(REASON_MAX), v.description("Why; it is in the log of each."))),
  cascade: v.exactOptional(v.pipe(v.boolean(), v.description("Children too; true by default."))),
});

const ActionName = v.picklist(BULK_ACTIONS);

/** Body of `POST /api/executions/bulk`. */
export const BulkBody = v.strictObject({
  action: v.pipe(ActionName, v.description("What to do with each of them.")),
  filter: v.pipe(
    ExecutionFilterBody,
    v.description(
      "Which ones, by the keys of the list's parameters: one of them at least. What it means is fixed with the call.",
    ),
  ),
  options: v.exactOptional(v.pipe(SteerOptions, v.description("As in the body of the call that does it with one."))),
  dry_run: v.exactOptional(v.pipe(v.boolean(), v.description("Only say how many it would be, and show some of them."))),
});

const SampleAnswer = v.object({
  execution_id: IdText,
  path: v.string(),
  version: VersionNumber,
  status: v.picklist(EXECUTION_STATES),
  started_at: Timestamp,
});

/** Answer of `POST /api/executions/bulk`: 202, and 200 for a preview. */
export const BulkStartAnswer = v.object({
  bulk_id: v.exactOptional(v.pipe(IdText, v.description("Absent in a preview."))),
  matched: count,
  sample: v.exactOptional(
    v.pipe(v.array(SampleAnswer), v.description(`In a preview the newest ${BULK_SAMPLE} of them.`)),
  ),
});
export type BulkStartAnswer = v.InferOutput<typeof BulkStartAnswer>;

/** Answer of `GET /api/executions/bulk/{bulk_id}`, and of what changes it. */
export const BulkAnswer = v.object({
  bulk_id: IdText,
  action: ActionName,
  status: v.picklist(BULK_STATUSES),
  filter: JsonObjectValue,
  options: JsonObjectValue,
  by: v.pipe(v.string(), v.description("Who asked for it.")),
  created_at: Timestamp,
  ended_at: v.nullable(Timestamp),
  counts: v.object({
    matched: count,
    done: count,
    failed: count,
    skipped: v.pipe(count, v.description("There was nothing to do: ended, paused already, deleted meanwhile.")),
  }),
  failures: v.pipe(
    v.array(v.object({ execution_id: IdText, code: v.string(), message: v.string() })),
    v.description(`The first ${BULK_FAILURES_LISTED} of those that failed.`),
  ),
});
export type BulkAnswer = v.InferOutput<typeof BulkAnswer>;
