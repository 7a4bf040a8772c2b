import * as v from "valibot";
import { IdText, JsonObjectValue, PAGE_DEFAULT, PAGE_MAX, storableText, Timestamp } from "../words/wire.ts";
import { CLAIM_LIMIT_MAX, CLAIM_WAIT_MS_MAX, ClaimedCommandAnswer, KindList, Labels, WorkerName } from "./commands.ts";
import { EventInput } from "./event-input.ts";
import { RefText, SaveResultQuery } from "./results.ts";

/* Bodies, queries and answers of the routes of events and of event batches (interface specification, Event batches). */

/** Longest text of an `Idempotency-Key`. */
export const IDEMPOTENCY_KEY_MAX = 255;
/** Longest text that is looked for in a log. */
const SEARCHED_MAX = 200;
/** Longest secret of a claim, and most secrets of one batch. */
const CLAIM_SECRET_MAX = 200;
const CLAIM_SECRETS_MAX = 10_000;
const count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** What of a worker's claim travels with its report. */
const ReportClaim = v.object({
  limit: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(CLAIM_LIMIT_MAX)),
  wait_ms: v.exactOptional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(CLAIM_WAIT_MS_MAX))),
  kinds: v.exactOptional(KindList),
  labels: v.exactOptional(Labels),
});

/** Most attachments of one report: as many as it has events. */
const ATTACHMENTS_MAX = 10_000;

/** A large result that is sent behind the JSON of a report, and stored with its event. */
export const Attachment = v.object({
  event: v.pipe(count, v.description("Place of its event in `events`.")),
  ref: v.pipe(RefText, v.description("Of the event's result, or of one of its `virtual` fields.")),
  bytes: v.pipe(count, v.description("Its length.")),
  ttl: SaveResultQuery.entries.ttl,
  compression: SaveResultQuery.entries.compression,
});
export type Attachment = v.InferOutput<typeof Attachment>;

const ReportingWorker = v.pipe(WorkerName, v.description("Whose claims the events are of, as it named itself there."));

/** Body of `POST /api/events/batch`: for the description; `batchOf` is what reads it. */
export const BatchBody = v.object({
  worker: ReportingWorker,
  execution_id: v.exactOptional(EventInput.entries.execution_id.wrapped),
  events: v.array(EventInput),
  claim_secrets: v.exactOptional(
    v.pipe(
      v.array(v.pipe(v.string(), v.maxLength(CLAIM_SECRET_MAX))),
      v.maxLength(CLAIM_SECRETS_MAX),
      v.description("The secrets of the claims that the events are of; a worker's events need them."),
    ),
  ),
  claim: v.exactOptional(v.pipe(ReportClaim, v.description("Commands wanted with the answer."))),
  attachments: v.exactOptional(
    v.pipe(
      v.array(Attachment),
      v.maxLength(ATTACHMENTS_MAX),
      v.description(
        "Large results that follow the JSON, in this order, where `x-flow-report-bytes` says how long that is.",
      ),
    ),
  ),
});
export type BatchBody = v.InferOutput<typeof BatchBody>;

/** All of a {@link BatchBody} but its events, which are checked one by one. */
export const BatchEnvelope = v.object({
  worker: BatchBody.entries.worker,
  execution_id: BatchBody.entries.execution_id,
  events: v.array(v.unknown()),
  claim_secrets: BatchBody.entries.claim_secrets,
  claim: BatchBody.entries.claim,
  attachments: BatchBody.entries.attachments,
});

/** Answer of `POST /api/events/batch`, with status 202. */
export const BatchAnswer = v.object({
  status: v.literal("accepted"),
  request_id: IdText,
  event_ids: v.array(v.number()),
  commands_generated: count,
  queue_depth: count,
  duplicate: v.boolean(),
  idempotency_key: v.nullable(v.string()),
  commands: v.exactOptional(v.array(ClaimedCommandAnswer)),
});
export type BatchAnswer = v.InferOutput<typeof BatchAnswer>;

/** Body of `POST /api/events`. */
export const SingleEventBody = v.object({ ...EventInput.entries, worker: ReportingWorker });

/** Answer of `POST /api/events`. */
export const SingleEventAnswer = v.object({
  status: v.literal("ok"),
  event_id: v.number(),
  commands_generated: count,
});
export type SingleEventAnswer = v.InferOutput<typeof SingleEventAnswer>;

/** Status of a batch, as an answer and as the data of the stream's event `status`. */
export const BatchStatus = v.object({
  request_id: IdText,
  state: v.picklist(["accepted", "processing", "completed", "failed"]),
  code: v.exactOptional(v.string()),
  message: v.exactOptional(v.string()),
  event_ids: v.array(v.number()),
  commands_generated: count,
  queue_depth: count,
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type BatchStatus = v.InferOutput<typeof BatchStatus>;

/** One event of the log. */
export const EventAnswer = v.looseObject({
  event_id: v.number(),
  execution_id: IdText,
  catalog_id: IdText,
  event_type: v.string(),
  node_id: v.pipe(v.string(), v.description("The step, or the playbook's path.")),
  node_name: v.string(),
  node_type: v.picklist(["playbook", "step", "task"]),
  status: v.string(),
  created_at: Timestamp,
  parent_event_id: v.exactOptional(
    v.pipe(
      v.number(),
      v.description("The event that this one followed from; of what is reported of a command, its command.issued."),
    ),
  ),
  result: v.exactOptional(v.nullable(JsonObjectValue)),
  error: v.exactOptional(v.nullable(JsonObjectValue)),
  meta: v.exactOptional(v.nullable(JsonObjectValue)),
  omitted: v.exactOptional(v.pipe(v.array(v.string()), v.description("Fields left out because they are long."))),
});

const isEventId = (text: string) => /^\d{1,16}$/.test(text) && Number(text) <= Number.MAX_SAFE_INTEGER;

/** An event's id in a query or a header: 0 stands before all. */
export const EventIdText = v.pipe(v.string(), v.check(isEventId, "must be the id of an event"));

const isSize = (text: string) => /^\d{1,9}$/.test(text) && Number(text) >= 1 && Number(text) <= PAGE_MAX;
const named = v.pipe(storableText(512), v.minLength(1));

/** What narrows an execution's events: a query's part. All that are given must hold. */
export const EventsFilter = v.object({
  event_type: v.exactOptional(v.pipe(v.string(), v.regex(/^[a-z._]{1,64}$/), v.description("Only of this type."))),
  step: v.exactOptional(v.pipe(named, v.description("Only of this step; the playbook's path: of the whole run."))),
  command_id: v.exactOptional(v.pipe(EventIdText, v.description("Only of this command."))),
  worker: v.exactOptional(v.pipe(named, v.description("Only what this worker did."))),
  failed: v.exactOptional(v.pipe(v.literal("true"), v.description("Only what failed."))),
  q: v.exactOptional(
    v.pipe(
      storableText(SEARCHED_MAX),
      v.minLength(1),
      v.description("Only where this text is in the type, the step, the task, the worker or the error, in any case."),
    ),
  ),
});

/** Whether long values are left out of events. */
export const ShortValues = v.pipe(
  v.literal("short"),
  v.description("Leaves out values of more than 1 KiB (errors: 4 KiB); `omitted` of an event names what it lacks."),
);

/** Query of `GET /api/executions/{execution_id}/events`. */
export const EventsQuery = v.object({
  ...EventsFilter.entries,
  after: v.exactOptional(v.pipe(EventIdText, v.description("Events after this one."))),
  before: v.exactOptional(v.pipe(EventIdText, v.description("Events before this one."))),
  order: v.exactOptional(
    v.pipe(v.picklist(["asc", "desc"]), v.description("Oldest first, which is the default, or newest.")),
  ),
  cursor: v.exactOptional(
    v.pipe(
      EventIdText,
      v.description("`next_cursor` of the page before: the same as `after`; newest first, as `before`."),
    ),
  ),
  values: v.exactOptional(ShortValues),
  limit: v.exactOptional(
    v.pipe(
      v.string(),
      v.check(isSize, `must be 1 to ${PAGE_MAX}`),
      v.description(`Items of a page, ${PAGE_DEFAULT} by default, ${PAGE_MAX} at most.`),
    ),
  ),
});

/**
 * Answer of `GET /api/executions/{execution_id}/events`, in order. `next_cursor` is null at the log's present end; where events
 * are filtered a page may be short, or empty, and still have one.
 */
export const EventsAnswer = v.object({ events: v.array(EventAnswer), next_cursor: v.nullable(v.string()) });
export type EventsAnswer = v.InferOutput<typeof EventsAnswer>;

/** Least distance between two marks: one call gives a thousand of them at most. */
const EVERY_MIN = 100;

/** Query of `GET /api/executions/{execution_id}/events/marks`. */
export const MarksQuery = v.object({
  ...EventsFilter.entries,
  after: v.exactOptional(v.pipe(EventIdText, v.description("`last_event_id` of the answer before, to go on from it."))),
  counted: v.exactOptional(
    v.pipe(v.string(), v.regex(/^\d{1,12}$/), v.description("`count` of the answer before, to go on from it.")),
  ),
  every: v.exactOptional(
    v.pipe(
      v.string(),
      v.check((text) => isSize(text) && Number(text) >= EVERY_MIN, `must be ${EVERY_MIN} to ${PAGE_MAX}`),
      v.description(`Events from one mark to the next, ${PAGE_MAX} by default.`),
    ),
  ),
});

/** Answer of `GET /api/executions/{execution_id}/events/marks`. */
export const MarksAnswer = v.object({
  count: v.pipe(count, v.description("Events, with those that were counted before.")),
  every: count,
  last_event_id: v.pipe(v.number(), v.description("The last event that was looked at.")),
  marks: v.pipe(
    v.array(v.object({ event_id: v.number(), created_at: Timestamp })),
    v.description("Each `every`-th event: page n of a list of so many to a page is what comes after mark n - 1."),
  ),
  more: v.pipe(v.boolean(), v.description("There is more to look at: ask again with `after` and `counted`.")),
});
export type MarksAnswer = v.InferOutput<typeof MarksAnswer>;
