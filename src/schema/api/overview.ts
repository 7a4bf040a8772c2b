import * as v from "valibot";
import { IdText, JsonObjectValue, Timestamp } from "../words/wire.ts";
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
