import * as v from "valibot";
import { IdText, JsonObjectValue, storableText, TimeInput, Timestamp } from "../words/wire.ts";
import { Finding } from "./doctor.ts";

/*
 * `GET /api/admin/overview`: why is nothing running, answered at once and every few seconds. Everything in it is bounded: no
 * count goes further than {@link OVERVIEW_COUNT_MAX}, no list is complete by promise.
 */

/** Counts end here: a larger one is given as this, with `more`. */
export const OVERVIEW_COUNT_MAX = 500;
/** Workers that are listed, those that are busy first. */
export const OVERVIEW_WORKERS_MAX = 200;
/** Commands that are listed of each worker, the oldest first. */
export const OVERVIEW_COMMANDS_MAX = 20;

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const ms = v.pipe(v.number(), v.minValue(0));
const Bounded = v.object({
  count,
  more: v.pipe(v.boolean(), v.description(`There are more than these ${OVERVIEW_COUNT_MAX}.`)),
});

/** Why work does not go on, with its remedy. `action: sweep` can be done here, by `POST /api/admin/command_reaper/sweep`. */
export const Cause = v.object({ ...Finding.entries, action: v.nullable(v.literal("sweep")) });
export type Cause = v.InferOutput<typeof Cause>;

/** The answer in one sentence. */
export const Verdict = v.object({
  level: v.pipe(v.picklist(["good", "warn", "bad"]), v.description("`bad`: something is stuck.")),
  what: v.string(),
  causes: v.pipe(v.array(Cause), v.description("The one to mend first stands first.")),
});
export type Verdict = v.InferOutput<typeof Verdict>;

/** What a worker has at the moment. */
export const RunningCommand = v.object({
  command_id: IdText,
  execution_id: IdText,
  path: v.string(),
  step: v.string(),
  attempt: count,
  claimed_at: Timestamp,
  lease_expires_at: v.pipe(Timestamp, v.description("Others may take it from then on, unless its worker renews it.")),
});

/** A worker, and what it runs. */
export const OverviewWorker = v.object({
  name: v.string(),
  status: v.pipe(
    v.picklist(["ready", "draining", "offline", "stale"]),
    v.description("`stale`: ready or draining by its own word, but silent for too long."),
  ),
  capacity: count,
  running: count,
  kinds: v.array(v.string()),
  labels: JsonObjectValue,
  about: v.pipe(JsonObjectValue, v.description("Process id, host name, version.")),
  heartbeat_age_ms: ms,
  registered_at: Timestamp,
  commands: v.pipe(v.array(RunningCommand), v.description(`${OVERVIEW_COMMANDS_MAX} at most, the oldest first.`)),
});
export type OverviewWorker = v.InferOutput<typeof OverviewWorker>;

/** Why commands wait. `soon`: only for a moment; a worker has room. */
export const WAITING_REASONS = ["no_worker", "no_kind", "no_labels", "no_both", "busy", "unnoticed", "soon"] as const;

/** Commands that ask for the same of a worker. */
export const QueueGroup = v.object({
  kinds: v.array(v.string()),
  labels: v.nullable(JsonObjectValue),
  count,
  oldest_ms: v.pipe(ms, v.description("How long the oldest has waited.")),
  why: v.picklist(WAITING_REASONS),
  execution_ids: v.array(IdText),
});
export type QueueGroup = v.InferOutput<typeof QueueGroup>;

const Queue = v.object({
  waiting: v.pipe(Bounded, v.description("Commands that no worker has; those of paused executions are not counted.")),
  oldest_ms: v.nullable(ms),
  groups: v.array(QueueGroup),
});

const Batches = v.object({
  accepted: Bounded,
  processing: Bounded,
  oldest_ms: v.pipe(v.nullable(ms), v.description("Age of the oldest that is not worked out.")),
  failed: v.pipe(
    v.nullable(
      v.object({ count, of: count, code: v.nullable(v.string()), message: v.nullable(v.string()), at: Timestamp }),
    ),
    v.description("How many of the newest batches failed, and why the last did; null: none."),
  ),
});

const Executions = v.object({ running: Bounded, pending: Bounded, paused: Bounded });

/** One sweep of the reaper. */
export const Sweep = v.object({
  at: Timestamp,
  asked: v.pipe(v.boolean(), v.description("It was requested; otherwise it ran on schedule.")),
  pending: count,
  worker: count,
  timeout: count,
});

const Reaper = v.object({
  enabled: v.boolean(),
  interval_seconds: v.number(),
  holder: v.pipe(
    v.nullable(v.string()),
    v.description("The server that sweeps by the clock; null: none at the moment."),
  ),
  last: v.pipe(v.nullable(Sweep), v.description("The last sweep of the server that answers.")),
  found: v.pipe(v.array(Sweep), v.description("Its last sweeps that found something, the newest first.")),
});

const DatabaseState = v.object({
  latency_ms: ms,
  embedded: v.boolean(),
  bytes: count,
  connections: count,
  connections_max: count,
  version: v.string(),
});

const BrokerState = v.object({
  kind: v.pipe(v.picklist(["nats", "process"]), v.description("`process`: none is set up; one server needs none.")),
  connected: v.boolean(),
  latency_ms: v.nullable(ms),
});

/** A server of this database. */
export const OverviewServer = v.object({
  name: v.string(),
  answers: v.pipe(v.boolean(), v.description("It is the one that answers this call.")),
  version: v.nullable(v.string()),
  started_at: Timestamp,
  heartbeat_age_ms: ms,
});

/** Answer of `GET /api/admin/overview`. A part that could not be read is null, and `missing` says why. */
export const Overview = v.object({
  at: Timestamp,
  verdict: Verdict,
  missing: v.array(v.object({ part: v.string(), why: v.string() })),
  workers: v.nullable(v.object({ items: v.array(OverviewWorker), more: v.boolean() })),
  queue: v.nullable(Queue),
  executions: v.nullable(Executions),
  batches: v.nullable(Batches),
  reaper: v.nullable(Reaper),
  database: v.nullable(DatabaseState),
  broker: BrokerState,
  servers: v.nullable(v.array(OverviewServer)),
});
export type Overview = v.InferOutput<typeof Overview>;

/* `GET /api/stats`: how executions ended over time. */

/** Buckets of time, with their length in seconds. */
export const BUCKET_SECONDS = { "1m": 60, "5m": 300, "1h": 3_600, "1d": 86_400 } as const;
/** Name of a bucket's length. */
export type BucketName = keyof typeof BUCKET_SECONDS;
/** Their names. */
export const BUCKET_NAMES = Object.keys(BUCKET_SECONDS) as BucketName[];
/** Most buckets of one answer: two months of hours, a day of minutes. */
export const BUCKETS_MAX = 1_500;

/** Orders of playbooks. */
export const STATS_ORDERS = ["failed", "slowest", "count"] as const;

/** Query of `GET /api/stats`. */
export const StatsQuery = v.object({
  path: v.exactOptional(
    v.pipe(
      storableText(512),
      v.minLength(1, "must not be empty"),
      v.description(
        "Of the playbook with exactly this path; with `*` within a part of it, or `**` over parts, of all that fit.",
      ),
    ),
  ),
  since: v.exactOptional(
    v.pipe(TimeInput, v.description("Ended then or later (RFC 3339). Default: a day before `until`.")),
  ),
  until: v.exactOptional(v.pipe(TimeInput, v.description("Ended before then. Default: now."))),
  bucket: v.exactOptional(
    v.pipe(
      v.picklist(BUCKET_NAMES, `must be one of ${BUCKET_NAMES.join(", ")}`),
      v.description(`Length of a bucket, by default \`1h\`; ${BUCKETS_MAX} buckets at most.`),
    ),
  ),
  group: v.exactOptional(v.pipe(v.literal("path", "must be path"), v.description("`path`: also by playbook."))),
  sort: v.exactOptional(
    v.pipe(
      v.picklist(STATS_ORDERS, `must be one of ${STATS_ORDERS.join(", ")}`),
      v.description("Order of the playbooks; by default those with most failures first."),
    ),
  ),
});

const EndCounts = v.object({ COMPLETED: count, FAILED: count, CANCELLED: count });

const PercentilesAnswer = v.nullable(v.object({ p50: ms, p95: ms, p99: ms }));

const sums = {
  counts: EndCounts,
  duration: v.pipe(
    PercentilesAnswer,
    v.description("How long those took that completed or failed, in milliseconds, within 5 %. Null: there are none."),
  ),
  waiting: v.pipe(
    PercentilesAnswer,
    v.description("How long their commands waited for a worker, in milliseconds, within 5 %."),
  ),
};

const totals = {
  ...sums,
  success_rate: v.pipe(
    v.nullable(v.pipe(v.number(), v.minValue(0), v.maxValue(1))),
    v.description("Share of those that completed among those that completed or failed."),
  ),
};

/** Executions that have ended, added up. */
export const Totals = v.object(totals);
export type Totals = v.InferOutput<typeof Totals>;

/** Answer of `GET /api/stats`. */
export const StatsAnswer = v.object({
  bucket: v.picklist(BUCKET_NAMES),
  since: v.pipe(Timestamp, v.description("When the first bucket begins.")),
  until: v.pipe(Timestamp, v.description("When the last one ends.")),
  buckets: v.pipe(
    v.array(v.object({ at: v.pipe(Timestamp, v.description("Where it begins, UTC.")), ...sums })),
    v.description("All of the time, oldest first: executions count where they ended."),
  ),
  total: Totals,
  steps: v.pipe(
    v.array(v.object({ path: v.string(), step: v.string(), count, failed: count, p95: ms })),
    v.description("The slowest first, 100 at most. They are counted by whole hours, of days by whole days."),
  ),
  paths: v.exactOptional(
    v.pipe(
      v.array(v.object({ path: v.string(), ...totals })),
      v.description("By playbook, 100 at most; with `group=path`."),
    ),
  ),
});
export type StatsAnswer = v.InferOutput<typeof StatsAnswer>;
