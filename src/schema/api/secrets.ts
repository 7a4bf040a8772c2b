import * as v from "valibot";
import { NextCursor } from "../words/wire.ts";

/* Body and answer of `POST /api/admin/secrets/rotate`. */

/** Values that one call encrypts anew when the caller does not say. */
export const ROTATE_DEFAULT = 200;
const ROTATE_MAX = 1_000;

/** Body of `POST /api/admin/secrets/rotate`. */
export const RotateBody = v.object({
  limit: v.exactOptional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1),
      v.maxValue(ROTATE_MAX),
      v.description(`Values that this call encrypts anew, ${ROTATE_DEFAULT} by default.`),
    ),
  ),
  cursor: v.exactOptional(v.pipe(v.string(), v.description("`next_cursor` of the call before."))),
});

/** Its answer. Call again with `next_cursor` until that is null. */
export const RotateAnswer = v.object({
  status: v.literal("ok"),
  key_id: v.pipe(v.string(), v.description("The key that encrypts.")),
  rotated: v.pipe(v.number(), v.description("Values that this call has encrypted anew.")),
  failed: v.pipe(
    v.array(v.object({ resource: v.string(), message: v.string() })),
    v.description("Values that could not be decrypted: they stay as they are."),
  ),
  total: v.exactOptional(v.pipe(v.number(), v.description("Values that had another key; in the first answer."))),
  next_cursor: NextCursor,
});
export type RotateAnswer = v.InferOutput<typeof RotateAnswer>;
