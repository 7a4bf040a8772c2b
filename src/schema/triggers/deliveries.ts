import * as v from "valibot";
import { IdText, NextCursor, PageQuery, Timestamp } from "../words/wire.ts";

/** The answer to a delivery (control, rules 42 and 43). */
export const HookAnswer = v.object({
  execution_id: v.exactOptional(
    v.pipe(v.string(), v.description("What it has started, or, as a repeat, had started.")),
  ),
  status: v.exactOptional(
    v.pipe(v.string(), v.description("Status of the execution. `respond: result` waits for its end.")),
  ),
  result: v.exactOptional(v.pipe(v.unknown(), v.description("Result of the execution, with `respond: result` alone."))),
  queued: v.exactOptional(
    v.pipe(v.literal(true), v.description("It starts in a moment, or when an execution of the trigger has ended.")),
  ),
  duplicate: v.exactOptional(v.pipe(v.literal(true), v.description("The delivery came before; nothing was started."))),
  skipped: v.exactOptional(v.pipe(v.literal(true), v.description("Nothing was started, as the trigger says."))),
  reason: v.exactOptional(v.pipe(v.string(), v.description("Why it was skipped."))),
  challenge: v.exactOptional(
    v.pipe(v.string(), v.description("Slack's question whether this address is ours, given back.")),
  ),
});
/** See {@link HookAnswer}. */
export type HookAnswer = v.InferOutput<typeof HookAnswer>;

/** Longest body of a delivery, bytes. */
export const HOOK_BYTES_MAX = 1_048_576;
/** Deliveries of one path within a second that a server takes. */
export const HOOK_PER_SECOND = 100;

/** What came of a delivery that was taken. */
export const TAKEN_VERDICTS = ["started", "queued", "repeated", "skipped", "answered"] as const;
/** Why a delivery was refused. */
export const REFUSED_VERDICTS = ["not_verified", "too_large", "rate_limited", "unreadable", "failed"] as const;
/** All that may come of a delivery. */
export const DELIVERY_VERDICTS = [...TAKEN_VERDICTS, ...REFUSED_VERDICTS] as const;
export type DeliveryVerdict = (typeof DELIVERY_VERDICTS)[number];

/** Query of `GET /api/triggers/{trigger_id}/deliveries`. */
export const DeliveriesQuery = v.object({
  ...PageQuery.entries,
  refused: v.exactOptional(
    v.pipe(
      v.picklist(["true", "false"]),
      v.description("`true`: those that were refused alone; `false`: those that were taken."),
    ),
  ),
});

/** What became of a delivery of a webhook, or of several that had no row of their own. */
export const DeliveryItem = v.object({
  delivery_id: IdText,
  at: v.pipe(Timestamp, v.description("When it came; of several, the first.")),
  last_at: v.pipe(Timestamp, v.description("When the last of them came.")),
  count: v.pipe(v.number(), v.description("How many it is: those of a busy minute share a row.")),
  verdict: v.picklist(DELIVERY_VERDICTS),
  refused: v.boolean(),
  reason: v.exactOptional(v.pipe(v.string(), v.description("Why nothing was started, in words."))),
  address: v.exactOptional(
    v.pipe(v.string(), v.description("Where it came from; absent where several did not agree.")),
  ),
  bytes: v.exactOptional(
    v.pipe(v.number(), v.description("Length of its body, if it was read; of several, the longest.")),
  ),
  execution_id: v.exactOptional(v.pipe(IdText, v.description("What it, or the one that it repeats, has started."))),
});
/** See {@link DeliveryItem}. */
export type DeliveryItem = v.InferOutput<typeof DeliveryItem>;

/** Answer of `GET /api/triggers/{trigger_id}/deliveries`, newest first. */
export const DeliveriesAnswer = v.object({ deliveries: v.array(DeliveryItem), next_cursor: NextCursor });
