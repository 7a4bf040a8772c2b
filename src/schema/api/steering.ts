import * as v from "valibot";
import type { Json } from "../words/json.ts";
import { IdText, JsonValue, storableText } from "../words/wire.ts";

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
