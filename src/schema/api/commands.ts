import * as v from "valibot";
import { IdText, JsonObjectValue, JsonValue, storableText, Timestamp } from "../words/wire.ts";

/* Bodies and answers of the routes by which workers claim commands (Worker protocol). */

/** Most commands of one claim. */
export const CLAIM_LIMIT_MAX = 1_000;
/** Longest wait of a claim, milliseconds. */
export const CLAIM_WAIT_MS_MAX = 30_000;

/** Name of a worker: what the pool, leases and events know it by. */
export const WorkerName = v.pipe(storableText(255), v.minLength(1));

/** Kinds of task. */
export const KindList = v.pipe(v.array(v.pipe(storableText(64), v.minLength(1))), v.maxLength(100));

/** Labels of a worker. */
export const Labels = v.record(storableText(255), storableText(255));

/** Body of `POST /api/commands/claim`. */
export const ClaimBody = v.object({
  worker: WorkerName,
  limit: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(CLAIM_LIMIT_MAX)),
  kinds: v.exactOptional(v.pipe(KindList, v.description("Kinds of task that the worker runs; all by default."))),
  labels: v.exactOptional(Labels),
  wait_ms: v.exactOptional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(CLAIM_WAIT_MS_MAX))),
});

/** A command with its claim. */
export const ClaimedCommandAnswer = v.object({
  command_id: IdText,
  execution_id: IdText,
  catalog_id: IdText,
  step: v.string(),
  step_run_id: v.string(),
  step_started_at: v.pipe(v.number(), v.description("Milliseconds since 1970: the step's time-out counts from there.")),
  attempt: v.pipe(v.number(), v.integer(), v.minValue(1), v.description("Fencing token: reports carry it.")),
  claim_secret: v.pipe(
    v.string(),
    v.description("The secret of this claim: a worker sends it with whatever it asks for in the command's name."),
  ),
  trust_domain: v.pipe(
    v.string(),
    v.description("Whose code it runs, and in whose name: code of two domains must run in separate processes."),
  ),
  lease_expires_at: Timestamp,
  tool: v.pipe(JsonValue, v.description("The step's tasks.")),
  spec: JsonObjectValue,
  context: v.pipe(JsonObjectValue, v.description("What templates may read; large values by reference.")),
  loop: v.exactOptional(JsonObjectValue),
  claim: v.exactOptional(v.object({ max_rows: v.number() })),
  parent_execution_id: v.exactOptional(IdText),
  trace: v.exactOptional(v.pipe(v.string(), v.description("W3C traceparent of the trace that it belongs to."))),
});
export type ClaimedCommandAnswer = v.InferOutput<typeof ClaimedCommandAnswer>;

/** Answer of `POST /api/commands/claim`; none when there was nothing in time. */
export const ClaimAnswer = v.object({ commands: v.array(ClaimedCommandAnswer) });
export type ClaimAnswer = v.InferOutput<typeof ClaimAnswer>;

/** Body of `POST /api/commands/{command_id}/claim`. */
export const ClaimOneBody = v.object({ worker: WorkerName });
