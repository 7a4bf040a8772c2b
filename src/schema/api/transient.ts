import * as v from "valibot";
import { IdText, JsonValue, NextCursor, PageQuery, storableText, Timestamp } from "../words/wire.ts";

/* Bodies and answers of an execution's transient values: small JSON that its workers leave for each other. */

/** Longest value as JSON text, in bytes. Larger values are results. */
export const TRANSIENT_BYTES_MAX = 262_144;
/** Most values of one execution. */
export const TRANSIENT_KEYS_MAX = 1_000;
/** Longest time to live: a year. */
const TTL_SECONDS_MAX = 31_536_000;

const count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** Key of a value within its execution. */
export const TransientKey = v.pipe(storableText(255), v.minLength(1));

/** Body of `PUT /api/executions/{execution_id}/transient/{key}`. */
export const TransientBody = v.object({
  value: JsonValue,
  ttl_seconds: v.exactOptional(
    v.nullable(
      v.pipe(
        v.number(),
        v.minValue(0.001),
        v.maxValue(TTL_SECONDS_MAX),
        v.description("A day after the execution's end by default; never longer than that."),
      ),
    ),
  ),
});

const item = {
  execution_id: IdText,
  key: v.string(),
  revision: v.pipe(count, v.description("Grows with each write of the key.")),
  expires_at: v.nullable(v.pipe(Timestamp, v.description("null: with the execution."))),
};

/** Answer of `PUT /api/executions/{execution_id}/transient/{key}`. */
export const TransientPutAnswer = v.object({ status: v.literal("ok"), ...item });
export type TransientPutAnswer = v.InferOutput<typeof TransientPutAnswer>;

/** Answer of `GET /api/executions/{execution_id}/transient/{key}`. */
export const TransientGetAnswer = v.object({ status: v.literal("ok"), ...item, value: JsonValue });
export type TransientGetAnswer = v.InferOutput<typeof TransientGetAnswer>;

/** Answer of `DELETE /api/executions/{execution_id}/transient/{key}`, also where there was no such value. */
export const TransientDeleteAnswer = v.object({ status: v.literal("success"), execution_id: IdText, key: v.string() });
export type TransientDeleteAnswer = v.InferOutput<typeof TransientDeleteAnswer>;

/** Query of `GET /api/executions/{execution_id}/transient`. */
export const TransientListQuery = PageQuery;

/** Answer of `GET /api/executions/{execution_id}/transient`: by key, without the values. */
export const TransientListAnswer = v.object({
  items: v.array(
    v.object({ ...item, bytes: v.pipe(count, v.description("Of the value as JSON text.")), updated_at: Timestamp }),
  ),
  next_cursor: NextCursor,
});
export type TransientListAnswer = v.InferOutput<typeof TransientListAnswer>;
