import * as v from "valibot";

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
