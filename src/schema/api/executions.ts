import * as v from "valibot";
import { EXECUTION_STATES } from "../rules/execution-filter.ts";
import { LabelsInput } from "../rules/execution-filter-schema.ts";
import { ORIGIN_KINDS } from "../rules/origin.ts";
import {
  IdInput,
  IdText,
  JsonObjectValue,
  JsonValue,
  NextCursor,
  RunVersion,
  storableText,
  Timestamp,
} from "../words/wire.ts";
import { OPEN_COMMANDS_MAX, OpenCommandAnswer, WaitingForAnswer } from "./commands.ts";
import { EventIdText } from "./events.ts";
import { SealedFlag } from "./results.ts";
import { OverriddenAnswer, OverriddenIterations, ReusedFromAnswer } from "./steering.ts";

/* Bodies, queries and answers of the routes that start, show and end executions (interface specification, Execution). */

/** States of one step. WAITING: all that it does is to wait for a time, and no worker waits with it. */
export const STEP_STATES = ["PENDING", "RUNNING", "WAITING", "COMPLETED", "FAILED", "SKIPPED"] as const;

/** Longest reason of a cancellation, in characters. */
export const REASON_MAX = 1_024;
/** Longest wait for an execution's end within one request, milliseconds. */
export const WAIT_MS_MAX = 30_000;

const name = v.pipe(storableText(512), v.minLength(1));
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
/** Body of `POST /api/execute`. */
export const ExecuteBody = v.pipe(
  v.object({
    path: v.exactOptional(v.pipe(name, v.description("Catalog path; this or `catalog_id`."))),
    catalog_id: v.exactOptional(IdInput),
    version: v.exactOptional(
      v.pipe(
        v.union([v.string(), v.number()]),
        v.transform(String),
        v.check((text) => /^(latest|[1-9]\d{0,8})$/.test(text), "must be a version number, or latest"),
        v.description("Version of the path, the newest by default."),
      ),
    ),
    resource_kind: v.exactOptional(
      v.pipe(
        v.string(),
        v.toLowerCase(),
        v.picklist(["playbook", "agent"]),
        v.description("What the entry must be. Agents are executed only when it is given."),
      ),
    ),
    workload: v.exactOptional(v.pipe(JsonObjectValue, v.description("Inputs: they replace keys of the defaults."))),
    labels: v.exactOptional(LabelsInput),
    target: v.exactOptional(v.pipe(name, v.description("Run no further than this step."))),
    parent_execution_id: v.exactOptional(v.pipe(IdInput, v.description("The execution that calls this one."))),
    parent_step: v.exactOptional(
      v.pipe(name, v.description("The step of it that calls; only with `parent_execution_id`.")),
    ),
    parent_iter: v.exactOptional(JsonObjectValue),
    return_step: v.exactOptional(
      v.pipe(name, v.description("The step whose result the caller will read; refused if there is no such step.")),
    ),
    wait_ms: v.exactOptional(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(0),
        v.maxValue(WAIT_MS_MAX),
        v.description(
          `Milliseconds to wait for the end, ${WAIT_MS_MAX} at most: an execution that has ended is answered with its result.`,
        ),
      ),
    ),
  }),
  v.check(({ path, catalog_id }) => path !== undefined || catalog_id !== undefined, "path or catalog_id is required"),
  v.check(
    ({ parent_execution_id, parent_step }) => parent_execution_id !== undefined || parent_step === undefined,
    "parent_step is a step of the parent: send parent_execution_id with it",
  ),
);
export type ExecuteBody = v.InferOutput<typeof ExecuteBody>;

/** Why an execution or a step failed. */
const ErrorAnswer = v.nullable(
  v.looseObject({
    code: v.string(),
    message: v.string(),
    retryable: v.exactOptional(v.boolean()),
    details: v.exactOptional(v.pipe(JsonValue, v.description("What a tool tells beside its message."))),
  }),
);

/** Answer of `POST /api/execute`. */
export const ExecuteAnswer = v.object({
  execution_id: IdText,
  status: v.picklist(EXECUTION_STATES),
  path: v.string(),
  version: RunVersion,
  catalog_id: IdText,
  duplicate: v.exactOptional(
    v.pipe(v.literal(true), v.description("The idempotency key was used before: this is the execution it started.")),
  ),
  result: v.exactOptional(
    v.pipe(JsonValue, v.description("With `wait_ms`, of an execution that has ended: by reference where it is large.")),
  ),
  error: v.exactOptional(ErrorAnswer),
  warnings: v.exactOptional(
    v.pipe(
      v.array(v.string()),
      v.description(
        "Inputs that the workload does not declare and nothing reads, a sentence each; absent without such inputs.",
      ),
    ),
  ),
});
export type ExecuteAnswer = v.InferOutput<typeof ExecuteAnswer>;

/** One execution of a list. */
export const ExecutionItem = v.object({
  execution_id: IdText,
  catalog_id: IdText,
  path: v.string(),
  version: RunVersion,
  status: v.picklist(EXECUTION_STATES),
  progress: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(0),
    v.maxValue(100),
    v.description("Percent, iterations of loops counted; of one that failed or was cancelled how far it came."),
  ),
  parent_execution_id: v.nullable(IdText),
  // Absent: an older server's answer.
  started_by: v.exactOptional(
    v.pipe(
      v.object({
        kind: v.picklist(ORIGIN_KINDS),
        id: v.pipe(v.nullable(IdText), v.description("Null: an operator.")),
        name: v.pipe(
          v.nullable(v.string()),
          v.description(
            "The user's address, the trigger's name, the execution's path; null where the caller may not see it.",
          ),
        ),
      }),
      v.description("What started it. Of an agent's client: the user whose session it has."),
    ),
  ),
  // Absent: an older server's answer.
  labels: v.exactOptional(v.pipe(v.record(v.string(), v.string()), v.description("Words of people, to find it by."))),
  started_at: Timestamp,
  ended_at: v.nullable(Timestamp),
  duration_ms: v.nullable(count),
  result: v.exactOptional(
    v.pipe(JsonValue, v.description("In a list only where it is short; the execution itself has all of it.")),
  ),
  error: ErrorAnswer,
  now: v.exactOptional(
    v.pipe(
      v.object({
        step: v.string(),
        does: v.pipe(
          v.picklist(["runs", "queues", "waits"]),
          v.description("`queues`: it waits for a worker. `waits`: for what `wait` says."),
        ),
        wait: v.exactOptional(
          v.object({
            kind: v.pipe(v.string(), v.description("timer, signal, retry, …")),
            name: v.pipe(v.nullable(v.string()), v.description("Of a signal.")),
            until: v.pipe(v.nullable(Timestamp), v.description("When it ends by itself; null: never.")),
          }),
        ),
      }),
      v.description("In a list, of one that is open: what it does now; of several steps, one."),
    ),
  ),
  has_called: v.exactOptional(v.pipe(v.boolean(), v.description("In a list: it has called other executions."))),
});
export type ExecutionItem = v.InferOutput<typeof ExecutionItem>;

/** Answer of `GET /api/executions`: newest first. */
export const ExecutionsAnswer = v.object({ executions: v.array(ExecutionItem), next_cursor: NextCursor });
export type ExecutionsAnswer = v.InferOutput<typeof ExecutionsAnswer>;

const Counted = v.object({
  count,
  more: v.pipe(v.boolean(), v.description("There are more than these, of which the newest were counted.")),
});

/** Answer of `GET /api/executions/counts`. */
export const ExecutionCountsAnswer = v.object({
  counts: v.pipe(
    v.record(v.picklist(EXECUTION_STATES), Counted),
    v.description("By state; only the states that were asked for, each up to 1,000."),
  ),
});

/** One step of an execution. */
export const StepAnswer = v.object({
  name: v.string(),
  status: v.picklist(STEP_STATES),
  started_at: v.nullable(Timestamp),
  ended_at: v.nullable(Timestamp),
  duration_ms: v.nullable(count),
  attempts: v.pipe(count, v.description("Claims in its last run: more than one means that a worker was lost.")),
  runs: v.pipe(count, v.description("How often it was started.")),
  order: v.exactOptional(v.pipe(count, v.description("Place in the order of first starts, from 1; 0: it never ran."))),
  loop: v.exactOptional(v.object({ total: v.nullable(count), done: count, failed: count })),
  error: v.exactOptional(ErrorAnswer),
  reused_from: v.exactOptional(ReusedFromAnswer),
  overridden: v.exactOptional(OverriddenAnswer),
  overridden_iterations: v.exactOptional(OverriddenIterations),
});
export type StepAnswer = v.InferOutput<typeof StepAnswer>;

/** An arc that was taken. */
export const ArcAnswer = v.object({
  from: v.string(),
  to: v.string(),
  times: v.pipe(count, v.description("How often: more than once where the playbook goes around.")),
});
export type ArcAnswer = v.InferOutput<typeof ArcAnswer>;

/** A task's next run, which a back-off delays. */
export const NextRetryAnswer = v.object({
  step: v.string(),
  task: v.string(),
  iteration: v.exactOptional(v.pipe(count, v.description("Of a loop."))),
  at: v.pipe(Timestamp, v.description("When it begins, by the worker's clock.")),
  run: v.pipe(count, v.description("Which run it will be, from 1.")),
  error: v.pipe(
    v.nullable(v.object({ code: v.string(), message: v.string() })),
    v.description("Of the run before; null where its policy wants another run of one that went well."),
  ),
});
export type NextRetryAnswer = v.InferOutput<typeof NextRetryAnswer>;

/** Query of `GET /api/executions/{execution_id}`. */
export const ExecutionQuery = v.object({
  steps_after: v.exactOptional(
    v.pipe(
      EventIdText,
      v.description(
        "`last_event_id` of an answer that the caller has: `steps` are then those to which something happened since.",
      ),
    ),
  ),
});

/** Answer of `GET /api/executions/{execution_id}`. */
export const ExecutionAnswer = v.object({
  ...ExecutionItem.entries,
  result: JsonValue,
  workload: v.pipe(JsonObjectValue, v.description("Inputs, over the defaults.")),
  last_event_id: v.exactOptional(
    v.pipe(v.number(), v.description("The newest event that this is of: a stream after it tells what comes next.")),
  ),
  steps: v.pipe(
    v.array(StepAnswer),
    v.description("In the order of their first start, then those that were skipped, then those still to come."),
  ),
  paused: v.exactOptional(
    v.pipe(
      v.object({ since: Timestamp, by: v.nullable(v.string()), reason: v.nullable(v.string()) }),
      v.description("While it is PAUSED: since when, by whom and why."),
    ),
  ),
  rerun_of: v.exactOptional(v.pipe(IdText, v.description("The execution that it repeats."))),
  steps_total: v.exactOptional(
    v.pipe(count, v.description("How many steps there are: `steps` may be those that changed.")),
  ),
  arcs: v.exactOptional(v.pipe(v.array(ArcAnswer), v.description("The arcs that were taken, each once."))),
  next_retry: v.exactOptional(
    v.pipe(
      v.nullable(NextRetryAnswer),
      v.description("The soonest run of a task that failed and waits for a back-off; null when none does."),
    ),
  ),
  commands: v.exactOptional(
    v.pipe(
      v.array(OpenCommandAnswer),
      v.description(`While it is open: its open commands, ${OPEN_COMMANDS_MAX} at most.`),
    ),
  ),
  // Absent: an older server's answer.
  waiting_for: v.exactOptional(
    v.pipe(
      v.array(WaitingForAnswer),
      v.description(`What it waits for by itself, the soonest first, ${OPEN_COMMANDS_MAX} at most.`),
    ),
  ),
});
export type ExecutionAnswer = v.InferOutput<typeof ExecutionAnswer>;

/** Query of `GET /api/executions/{execution_id}/state`. */
export const StateQuery = v.object({
  at: v.exactOptional(v.pipe(EventIdText, v.description("An event of its log; the newest by default."))),
});

/** Answer of `GET /api/executions/{execution_id}/state`: what the execution's answer would have been after that event. */
export const ExecutionStateAnswer = v.object({
  execution_id: IdText,
  event_id: v.pipe(v.number(), v.description("The event after which it was so.")),
  at: v.pipe(Timestamp, v.description("When that event happened.")),
  status: v.picklist(EXECUTION_STATES),
  progress: ExecutionItem.entries.progress,
  ended_at: v.nullable(Timestamp),
  error: ErrorAnswer,
  workload: ExecutionAnswer.entries.workload,
  variables: v.pipe(JsonObjectValue, v.description("Variables that were set until then.")),
  steps: ExecutionAnswer.entries.steps,
  arcs: v.pipe(v.array(ArcAnswer), v.description("The arcs that were taken until then, each once.")),
  commands: v.pipe(v.array(OpenCommandAnswer), v.description(`Its open commands, ${OPEN_COMMANDS_MAX} at most.`)),
  next_retry: v.nullable(NextRetryAnswer),
  waiting_for: v.pipe(
    v.array(WaitingForAnswer),
    v.description(`What it waited for, the soonest first, ${OPEN_COMMANDS_MAX} at most.`),
  ),
  paused: ExecutionAnswer.entries.paused,
});
export type ExecutionStateAnswer = v.InferOutput<typeof ExecutionStateAnswer>;

/** Query of `GET /api/executions/{execution_id}/result`. */
export const ResultQuery = v.object({
  wait_ms: v.exactOptional(
    v.pipe(
      v.string(),
      v.check((text) => /^\d{1,6}$/.test(text) && Number(text) <= WAIT_MS_MAX, `must be 0 to ${WAIT_MS_MAX}`),
      v.description(`Milliseconds to wait for its end, ${WAIT_MS_MAX} at most; 0 by default.`),
    ),
  ),
  step: v.exactOptional(v.pipe(name, v.description("A step whose result is wanted instead."))),
  sealed: v.exactOptional(
    v.pipe(
      SealedFlag,
      v.description(
        "For workers: the result as it is stored (`value`, `ref`, `tasks` or `loop`), what is sealed in it too.",
      ),
    ),
  ),
});

/** Answer of `GET /api/executions/{execution_id}/result`. */
export const ResultAnswer = v.object({
  execution_id: IdText,
  path: v.string(),
  status: v.picklist(EXECUTION_STATES),
  result: v.pipe(
    JsonValue,
    v.description(
      "The value, as templates read it; a ResultRef where it is large; of a list of tasks the joined fields, those of a large result as a ResultRef with `field`; of a long loop a manifest; null while it runs.",
    ),
  ),
  error: ErrorAnswer,
});
export type ResultAnswer = v.InferOutput<typeof ResultAnswer>;

/** Body of `POST /api/executions/{execution_id}/cancel`. */
export const CancelBody = v.object({
  reason: v.exactOptional(storableText(REASON_MAX)),
  cascade: v.exactOptional(v.pipe(v.boolean(), v.description("Children too; true by default."))),
});

/** Answer of a cancellation: the status afterwards, which differs when the execution had ended before. */
export const CancelAnswer = v.object({
  execution_id: IdText,
  status: v.picklist(EXECUTION_STATES),
  children_cancelled: count,
});
export type CancelAnswer = v.InferOutput<typeof CancelAnswer>;

/** Body of `POST /api/executions/{execution_id}/pause` and `…/resume`. */
export const PauseBody = v.strictObject({
  reason: v.exactOptional(v.pipe(storableText(REASON_MAX), v.description("Why; it is in the log and on the page."))),
  cascade: v.exactOptional(v.pipe(v.boolean(), v.description("Children too; true by default."))),
});

/** Answer of a pause or a resumption: 202, or 200 if it was so already. */
export const PauseAnswer = v.object({
  execution_id: IdText,
  status: v.picklist(EXECUTION_STATES),
  children: v.pipe(count, v.description("Executions below it that were paused or resumed with it.")),
});
export type PauseAnswer = v.InferOutput<typeof PauseAnswer>;

/** Answer of `DELETE /api/executions/{execution_id}`. */
export const DeleteAnswer = v.object({ status: v.literal("success"), execution_id: IdText });

/** Answer of `GET /api/executions/{execution_id}/sealing-key`: the first key seals, all of them open. */
export const SealingKeyAnswer = v.object({
  root_execution_id: IdText,
  keys: v.pipe(
    v.array(v.object({ id: v.string(), key: v.pipe(v.string(), v.description("32 bytes in base64.")) })),
    v.minLength(1),
  ),
});
export type SealingKeyAnswer = v.InferOutput<typeof SealingKeyAnswer>;
