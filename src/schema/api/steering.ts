import * as v from "valibot";
import { durationMs } from "../rules/durations.ts";
import { EXECUTION_STATES } from "../rules/execution-filter.ts";
import { ExecutionFilterBody } from "../rules/execution-filter-schema.ts";
import type { Json } from "../words/json.ts";
import { IdText, JsonObjectValue, JsonValue, RunVersion, storableText, Timestamp } from "../words/wire.ts";

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

/** Longest name, key or id of a signal, in characters. */
const SIGNAL_WORD_MAX = 128;
const signalWord = v.pipe(
  storableText(SIGNAL_WORD_MAX),
  v.check((text) => text.trim() !== "", "must not be empty"),
);

/** The name of a signal, as the address has it. */
export const SignalName = signalWord;

/** Body of `POST /api/executions/{execution_id}/signals/{name}`. */
export const SignalBody = v.strictObject({
  data: v.exactOptional(
    v.pipe(
      JsonValue,
      v.check(isShort, `must be at most ${GIVEN_RESULT_BYTES_MAX} bytes of JSON`),
      v.description("What the step that waits for it goes on with; null by default."),
    ),
  ),
  key: v.exactOptional(
    v.pipe(signalWord, v.description("What it is about: only a step that waits for this key takes it.")),
  ),
  id: v.exactOptional(
    v.pipe(signalWord, v.description("The sender's name for it: sent again under the same one, it changes nothing.")),
  ),
});

/** Longest time for which a signal to everyone is kept. */
const KEPT_MS_MAX = 86_400_000;

/** Body of `POST /api/signals/{name}`. */
export const EveryonesSignalBody = v.strictObject({
  ...SignalBody.entries,
  retain: v.exactOptional(
    v.pipe(
      v.union([v.string(), v.number()]),
      v.transform((text) => durationMs(text)),
      v.check(
        (ms) => ms !== undefined && ms <= KEPT_MS_MAX,
        "must be a duration of at most 24h: 90s, 15m, 1h30m, or a number of seconds",
      ),
      v.transform((ms) => ms ?? 0),
      v.description("How long it is kept if no step waits for it, at most 24h; 1h by default, 0: not at all."),
    ),
  ),
});

/** Answer to a signal. */
export const SignalAnswer = v.object({
  reached: v.pipe(count, v.description("Steps, or iterations of loops, that go on with it.")),
  kept: v.pipe(v.boolean(), v.description("No step waits for it yet: it is kept for the first one that will.")),
  duplicate: v.pipe(v.boolean(), v.description("It was sent before; nothing has changed.")),
});

const name = v.pipe(storableText(512), v.minLength(1));

/** Steps that a rerun names. */
export const RERUN_STEPS_MAX = 1_000;

/** Body of `POST /api/executions/{execution_id}/rerun`. */
export const RerunBody = v.strictObject({
  from: v.exactOptional(
    v.pipe(
      v.union(
        [v.picklist(["failed", "start"]), v.pipe(v.array(name), v.minLength(1), v.maxLength(RERUN_STEPS_MAX))],
        `must be "failed", "start", or a list of 1 to ${RERUN_STEPS_MAX} steps`,
      ),
      v.description(
        "The steps to run again, with all that follow them; `failed`: those that failed or were open at the end, the default of an execution that FAILED or was CANCELLED; `start`: all, the default of any other.",
      ),
    ),
  ),
  only: v.exactOptional(v.pipe(v.boolean(), v.description("These steps and nothing after them. Default false."))),
  input: v.exactOptional(v.pipe(JsonObjectValue, v.description("Replaces keys of the workload."))),
  variables: v.exactOptional(v.pipe(JsonObjectValue, v.description("Sets variables, over those that were recorded."))),
  step_input: v.exactOptional(
    v.pipe(v.record(name, JsonObjectValue), v.description("By step: replaces keys of the input with which it starts.")),
  ),
  version: v.exactOptional(
    v.pipe(
      v.union([v.picklist(["same", "latest"]), v.pipe(v.number(), v.integer(), v.minValue(1))]),
      v.description("Of the playbook; default `same`."),
    ),
  ),
  reuse_iterations: v.exactOptional(
    v.pipe(
      v.boolean(),
      v.description("Loops that failed run only the iterations that failed, are missing or changed. Default true."),
    ),
  ),
  reuse_children: v.exactOptional(
    v.pipe(
      v.record(name, IdText),
      v.description("By calling step (`step`, or `step[i]` of a loop): the completed execution whose result it takes."),
    ),
  ),
  reason: v.exactOptional(v.pipe(storableText(REASON_MAX), v.description("Why; it is in the log and in lineage."))),
  dry_run: v.exactOptional(v.pipe(v.boolean(), v.description("Answers the plan, and starts nothing."))),
});
export type RerunBody = v.InferOutput<typeof RerunBody>;

/** What one call does with many executions. */
export const BULK_ACTIONS = ["cancel", "pause", "resume", "rerun", "backfill"] as const;
export type BulkAction = (typeof BULK_ACTIONS)[number];

/** States of such an operation; the last two are final. */
export const BULK_STATUSES = ["running", "paused", "completed", "cancelled"] as const;
export type BulkStatus = (typeof BULK_STATUSES)[number];

/** Most executions of one operation: their ids are written with it. */
export const BULK_MATCHED_MAX = 100_000;

/** Failures that its answer lists; `counts` has their number. */
export const BULK_FAILURES_LISTED = 100;

/** New executions that its answer lists; a list of executions has all of them (`started_by=bulk`). */
export const BULK_STARTED_LISTED = 100;

/** Executions that a preview shows. */
export const BULK_SAMPLE = 20;

/** Of these the first ones have their plan, if they are to be repeated: each is read for it. */
export const BULK_PLANNED = 5;

const SteerOptions = v.strictObject({
  reason: v.exactOptional(v.pipe(storableText(REASON_MAX), v.description("Why; it is in the log of each."))),
  cascade: v.exactOptional(v.pipe(v.boolean(), v.description("Children too; true by default."))),
});

const RerunOptions = v.strictObject(v.omit(RerunBody, ["reuse_children", "dry_run"]).entries);
/** Options of a bulk operation that repeats executions. */
export type BulkRerunOptions = v.InferOutput<typeof RerunOptions>;

const ActionName = v.picklist(BULK_ACTIONS);

const bulkFields = {
  filter: v.pipe(
    ExecutionFilterBody,
    v.description(
      "Which ones, by the keys of the list's parameters: one of them at least. What it means is fixed with the call.",
    ),
  ),
  dry_run: v.exactOptional(v.pipe(v.boolean(), v.description("Only say how many it would be, and show some of them."))),
};

/** Body of `POST /api/executions/bulk`. */
export const BulkBody = v.variant("action", [
  v.strictObject({
    action: v.pipe(v.picklist(["cancel", "pause", "resume"]), v.description("What to do with each of them.")),
    ...bulkFields,
    options: v.exactOptional(v.pipe(SteerOptions, v.description("As in the body of the call that does it with one."))),
  }),
  v.strictObject({
    action: v.pipe(v.literal("rerun"), v.description("Repeat each of them with a new execution.")),
    ...bulkFields,
    options: v.exactOptional(
      v.pipe(RerunOptions, v.description("As in the body of a rerun. What does not fit one of them fails it.")),
    ),
  }),
]);
export type BulkBody = v.InferOutput<typeof BulkBody>;

const SampleAnswer = v.object({
  execution_id: IdText,
  path: v.string(),
  version: RunVersion,
  status: v.picklist(EXECUTION_STATES),
  started_at: Timestamp,
  plan: v.exactOptional(
    v.pipe(
      v.union([
        v.object({ reused: count, will_run: v.array(v.string()) }),
        v.object({ refused: v.object({ code: v.string(), message: v.string() }) }),
      ]),
      v.description(`What a rerun would run, or why it would fail; of the first ${BULK_PLANNED}.`),
    ),
  ),
});

/** Answer of `POST /api/executions/bulk`: 202, and 200 for a preview. */
export const BulkStartAnswer = v.object({
  bulk_id: v.exactOptional(v.pipe(IdText, v.description("Absent in a preview."))),
  matched: count,
  sample: v.exactOptional(
    v.pipe(v.array(SampleAnswer), v.description(`In a preview the newest ${BULK_SAMPLE} of them.`)),
  ),
  duplicate: v.exactOptional(
    v.pipe(v.literal(true), v.description("The idempotency key was used before: this is the operation it began.")),
  ),
});
export type BulkStartAnswer = v.InferOutput<typeof BulkStartAnswer>;

/** What an item is about: an execution, or of a backfill a time. */
const itemFields = {
  execution_id: v.exactOptional(v.pipe(IdText, v.description("Absent of a backfill."))),
  due_at: v.exactOptional(v.pipe(Timestamp, v.description("Of a backfill: the time of the schedule."))),
};

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
    skipped: v.pipe(
      count,
      v.description(
        "There was nothing to do: ended, paused already, nothing failed, deleted meanwhile; of a backfill, its playbook is paused.",
      ),
    ),
  }),
  failures: v.pipe(
    v.array(v.object({ ...itemFields, code: v.string(), message: v.string() })),
    v.description(`The first ${BULK_FAILURES_LISTED} of those that failed.`),
  ),
  started: v.exactOptional(
    v.pipe(
      v.array(v.object({ ...itemFields, new_execution_id: IdText })),
      v.description(
        `Of a rerun: the first ${BULK_STARTED_LISTED} that were repeated, and by what. The list of executions has all: started_by=bulk, started_by_id. Of a backfill: the first that were started.`,
      ),
    ),
  ),
});
export type BulkAnswer = v.InferOutput<typeof BulkAnswer>;

/** Who has ended something by hand, how, and why. */
const OverriddenFields = {
  action: v.picklist(["skip", "complete", "fail"]),
  reason: v.string(),
  by: v.exactOptional(v.string()),
  at: Timestamp,
};

/** Who has ended a step by hand. */
export const OverriddenAnswer = v.pipe(
  v.object(OverriddenFields),
  v.description("A person has ended it; where it has not begun, it ends like this when it is reached."),
);

/** Iterations of a step's loop that people have ended by hand. */
export const OverriddenIterations = v.pipe(
  v.array(v.object({ iteration: count, ...OverriddenFields })),
  v.description("Iterations of its loop that people have ended by hand, the newest 100; the log has all."),
);

/** Where a step ran that a rerun has taken over. */
export const ReusedFromAnswer = v.pipe(
  v.object({ execution_id: IdText, event_id: v.pipe(v.number(), v.integer()), created_at: Timestamp }),
  v.description("It did not run here: the execution whose results it has, and the event with which it ended there."),
);

/** What becomes of one step in a rerun. */
export const RerunStep = v.object({
  step: v.string(),
  action: v.pipe(
    v.picklist(["reuse", "run"]),
    v.description("`run`: it runs again, if the arcs lead to it; `reuse`: what it came to stays."),
  ),
  kind: v.pipe(v.string(), v.description("Kinds of its tasks.")),
  effect: v.pipe(v.nullable(v.string()), v.description("What it does outside of the execution; null: nothing.")),
  protected_by: v.pipe(
    v.nullable(v.literal("idempotency_key")),
    v.description("What keeps its effect from happening twice: a key that the author wrote."),
  ),
});
export type RerunStep = v.InferOutput<typeof RerunStep>;

/** Answer of a rerun: 202, or 200 with its plan where it was only asked for that. */
export const RerunAnswer = v.object({
  execution_id: v.exactOptional(v.pipe(IdText, v.description("The new execution; absent from a plan."))),
  rerun_of: IdText,
  path: v.string(),
  version: v.pipe(v.number(), v.integer()),
  reused: v.pipe(count, v.description("Steps that are not run again.")),
  will_run: v.pipe(v.array(v.string()), v.description("Steps that certainly run, if none fails.")),
  steps: v.exactOptional(v.pipe(v.array(RerunStep), v.description("The plan."))),
  warnings: v.exactOptional(v.array(v.string())),
  duplicate: v.exactOptional(
    v.pipe(v.literal(true), v.description("The idempotency key was used before: this is the execution it started.")),
  ),
});
export type RerunAnswer = v.InferOutput<typeof RerunAnswer>;
