import * as v from "valibot";
import { IdText } from "../words/wire.ts";

/** Answer of `GET /api/executions/{execution_id}/sealing-key`: the first key seals, all of them open. */
export const SealingKeyAnswer = v.object({
  root_execution_id: IdText,
  keys: v.pipe(
    v.array(v.object({ id: v.string(), key: v.pipe(v.string(), v.description("32 bytes in base64.")) })),
    v.minLength(1),
  ),
});
export type SealingKeyAnswer = v.InferOutput<typeof SealingKeyAnswer>;
