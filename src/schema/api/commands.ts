import * as v from "valibot";
import { IdText, JsonObjectValue, JsonValue, storableText, Timestamp } from "../words/wire.ts";

/* Bodies and answers of the routes by which workers claim commands (Worker protocol). */

const count = v.pipe(v.number(), v.integer(), v.minValue(0));

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
  woken: v.exactOptional(
    v.pipe(JsonObjectValue, v.description("It was parked (`command.parked`), and goes on with the task that waited.")),
  ),
  parent_execution_id: v.exactOptional(IdText),
  trace: v.exactOptional(v.pipe(v.string(), v.description("W3C traceparent of the trace that it belongs to."))),
});
export type ClaimedCommandAnswer = v.InferOutput<typeof ClaimedCommandAnswer>;

/** Answer of `POST /api/commands/claim`; none when there was nothing in time. */
export const ClaimAnswer = v.object({ commands: v.array(ClaimedCommandAnswer) });
export type ClaimAnswer = v.InferOutput<typeof ClaimAnswer>;

/** Body of `POST /api/commands/{command_id}/claim`. */
export const ClaimOneBody = v.object({ worker: WorkerName });

/** Most open commands that an execution's answer lists. */
export const OPEN_COMMANDS_MAX = 100;

/** A command that has not ended: work that waits for a worker, or is with one. */
export const OpenCommandAnswer = v.object({
  command_id: IdText,
  // Absent: an older server's answer.
  execution_id: v.exactOptional(IdText),
  status: v.exactOptional(
    v.pipe(
      v.picklist(["PENDING", "CLAIMED", "RUNNING", "WAITING"]),
      v.description(
        "PENDING while it waits for a worker; RUNNING once its worker has reported that it started; WAITING for a time, without a worker.",
      ),
    ),
  ),
  step: v.string(),
  attempt: v.pipe(
    count,
    v.description("Claims so far; 0 while it waits for the first. One that follows a wait is not another."),
  ),
  worker: v.nullable(v.string()),
  // Absent: an older server's answer.
  issued_at: v.exactOptional(v.pipe(Timestamp, v.description("Since when there is this work."))),
  claimed_at: v.nullable(v.pipe(Timestamp, v.description("Of the first claim."))),
  kinds: v.exactOptional(
    v.pipe(v.array(v.string()), v.description("Kinds of task that its worker must run; empty: any worker can.")),
  ),
  labels: v.exactOptional(v.pipe(v.record(v.string(), v.string()), v.description("Labels that its worker must have."))),
  iterations: v.exactOptional(v.object({ from: count, to: v.pipe(count, v.description("Exclusive.")) })),
  children: v.exactOptional(v.pipe(v.array(IdText), v.description("Open executions that it has called."))),
});
export type OpenCommandAnswer = v.InferOutput<typeof OpenCommandAnswer>;

/** Something that an execution waits for. */
export const WaitingForAnswer = v.object({
  step: v.string(),
  iteration: v.exactOptional(v.pipe(count, v.description("Of a loop."))),
  kind: v.pipe(
    v.picklist(["timer", "signal", "approval", "retry"]),
    v.description(
      "`timer`: a time that a `wait` names. `signal`: one that somebody sends. `approval`: people who decide. `retry`: the back-off of a task that failed.",
    ),
  ),
  name: v.exactOptional(
    v.pipe(v.string(), v.description("Of a signal: its name. Of an approval: its title. Of a retry: the task.")),
  ),
  approval_id: v.exactOptional(IdText),
  key: v.exactOptional(v.pipe(v.string(), v.description("Of a signal: its key, where it must have one."))),
  due: v.exactOptional(v.pipe(Timestamp, v.description("When it goes on; of a retry by the worker's clock."))),
  since: v.exactOptional(v.pipe(Timestamp, v.description("Since when it waits."))),
});
export type WaitingForAnswer = v.InferOutput<typeof WaitingForAnswer>;
