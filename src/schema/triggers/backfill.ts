import * as v from "valibot";
import { IdText, storableText, Timestamp } from "../words/wire.ts";

/* Body and answer of making up for times of a schedule (control, rule 45). */

/** Executions of a backfill that are open at a time, at most. */
export const BACKFILL_ACTIVE_MAX = 1_000;
/** Gaps that a preview lists; the number of times that are missing counts all. */
export const BACKFILL_GAPS_LISTED = 100;

const moment = storableText(40);
const count = v.pipe(v.number(), v.integer());

/** Body of `POST /api/triggers/{trigger_id}/backfill`. */
export const BackfillBody = v.strictObject({
  from: v.pipe(
    moment,
    v.description("The first time, as 2026-01-31 or 2026-01-31T12:00:00Z; without an offset in the schedule's zone."),
  ),
  to: v.pipe(moment, v.description("The end; a time at it is left out. Not later than now.")),
  max_active: v.exactOptional(
    v.pipe(
      count,
      v.minValue(1),
      v.maxValue(BACKFILL_ACTIVE_MAX),
      v.description("Executions of it that are open at a time. Default 4."),
    ),
  ),
  order: v.exactOptional(
    v.pipe(v.picklist(["oldest", "newest"]), v.description("Which times come first. Default oldest.")),
  ),
  only_missing: v.exactOptional(
    v.pipe(v.boolean(), v.description("Leave out times for which an execution was started.")),
  ),
  dry_run: v.exactOptional(
    v.pipe(v.boolean(), v.description("Only say how many times it would be, and which of them are missing.")),
  ),
});
/** See {@link BackfillBody}. */
export type BackfillBody = v.InferOutput<typeof BackfillBody>;

/** Answer to it: 202, and 200 for a preview. */
export const BackfillAnswer = v.object({
  bulk_id: v.exactOptional(v.pipe(IdText, v.description("Absent in a preview."))),
  matched: v.pipe(count, v.description("Times for which it starts an execution.")),
  missing: v.exactOptional(
    v.pipe(count, v.description("In a preview: times of the range for which none was started yet.")),
  ),
  gaps: v.exactOptional(
    v.pipe(
      v.array(v.object({ from: Timestamp, to: Timestamp, count })),
      v.description(
        `In a preview the first ${BACKFILL_GAPS_LISTED} gaps, oldest first: times that are missing one after the other, the first and the last of them.`,
      ),
    ),
  ),
  sample: v.exactOptional(
    v.pipe(
      v.array(
        v.object({
          due_at: Timestamp,
          status: v.picklist(["started", "missing"]),
          execution_id: v.exactOptional(v.pipe(IdText, v.description("The newest that was started for it."))),
        }),
      ),
      v.description("In a preview the first of them in its order, and whether an execution was started for them."),
    ),
  ),
  duplicate: v.exactOptional(v.pipe(v.literal(true), v.description("An earlier call with this key has begun it."))),
});
/** See {@link BackfillAnswer}. */
export type BackfillAnswer = v.InferOutput<typeof BackfillAnswer>;
