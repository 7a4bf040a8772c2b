import * as v from "valibot";
import { IdInput, IdText, JsonObjectValue, NextCursor, PageQuery, storableText, Timestamp } from "../words/wire.ts";
import { CLAIM_WAIT_MS_MAX, KindList, Labels, WorkerName } from "./commands.ts";

/* Bodies and answers of the pool of workers (Worker protocol). */

/** Most commands that one worker works on at a time. */
export const CAPACITY_MAX = 100_000;

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const shortText = storableText(255);

/** Body of `POST /api/worker/pool/register`. */
export const RegisterWorkerBody = v.object({
  name: WorkerName,
  capacity: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(CAPACITY_MAX)),
  labels: v.exactOptional(Labels),
  capabilities: v.exactOptional(v.pipe(KindList, v.description("Kinds of task that it runs."))),
  runtime: v.exactOptional(
    v.object({
      pid: v.exactOptional(count),
      hostname: v.exactOptional(shortText),
      version: v.exactOptional(shortText),
      isolation: v.exactOptional(v.pipe(shortText, v.description("What keeps the code of tasks apart from it."))),
      instance: v.exactOptional(
        v.pipe(
          shortText,
          v.description(
            "Of this process alone. Another one under the name gives back what the process before it held.",
          ),
        ),
      ),
    }),
  ),
});

const leaseMs = v.pipe(count, v.description("How long leases last that are renewed by now, in milliseconds."));
const instance = v.exactOptional(
  v.pipe(shortText, v.description("As it was registered with; of a process that was replaced nothing is taken.")),
);

/** Answer of `POST /api/worker/pool/register`. */
export const RegisterWorkerAnswer = v.object({
  status: v.literal("ok"),
  runtime_id: IdText,
  lease_ms: leaseMs,
  worker_secret: v.exactOptional(
    v.pipe(v.string(), v.description("Of this worker's process: its claims and heartbeats carry it as x-flow-worker.")),
  ),
});

/** Body of `POST /api/worker/pool/heartbeat`. */
export const HeartbeatBody = v.object({
  name: WorkerName,
  instance,
  running: v.pipe(
    v.array(
      v.object({
        command_id: IdInput,
        attempt: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(2_147_483_647)),
      }),
    ),
    v.maxLength(CAPACITY_MAX),
  ),
  draining: v.exactOptional(v.pipe(v.boolean(), v.description("It claims nothing more and ends soon."))),
  wait_ms: v.exactOptional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(0),
      v.maxValue(CLAIM_WAIT_MS_MAX),
      v.description("How long the answer may wait for a command to stop; leases are renewed at once."),
    ),
  ),
});

/** Answer of `POST /api/worker/pool/heartbeat`. */
export const HeartbeatAnswer = v.object({
  status: v.literal("ok"),
  cancel: v.pipe(v.array(IdText), v.description("Commands to stop: their executions were cancelled.")),
  cancel_iterations: v.exactOptional(
    v.pipe(
      v.array(v.object({ command_id: IdText, iterations: v.array(count) })),
      v.description("Iterations to stop, which were ended by hand: their commands go on without them. Absent: none."),
    ),
  ),
  lost: v.pipe(v.array(IdText), v.description("Commands whose claim is not this worker's any more.")),
  lease_ms: leaseMs,
});
export type HeartbeatAnswer = v.InferOutput<typeof HeartbeatAnswer>;

/** Body of `POST /api/worker/pool/deregister`. */
export const DeregisterBody = v.object({ name: WorkerName, instance });
/** Answer of `POST /api/worker/pool/deregister`. */
export const DeregisterAnswer = v.object({ status: v.literal("ok") });

/** Query of `GET /api/worker/pools`. */
export const PoolsQuery = PageQuery;

/** One worker. */
export const PoolItem = v.object({
  runtime_id: IdText,
  name: v.string(),
  status: v.pipe(
    v.picklist(["ready", "draining", "offline", "stale"]),
    v.description("`stale`: ready or draining by its own word, but silent for too long."),
  ),
  capacity: count,
  running: count,
  labels: JsonObjectValue,
  capabilities: v.array(v.string()),
  runtime: JsonObjectValue,
  heartbeat_at: Timestamp,
  heartbeat_age_ms: count,
  created_at: Timestamp,
});
export type PoolItem = v.InferOutput<typeof PoolItem>;

/** Answer of `GET /api/worker/pools`. */
export const PoolsAnswer = v.object({ items: v.array(PoolItem), next_cursor: NextCursor });
export type PoolsAnswer = v.InferOutput<typeof PoolsAnswer>;

/** Longest name of a pool. */
const NAME_MAX = 64;
/** Most patterns of one pool. */
const PATHS_MAX = 100;

/** Name of a pool. */
export const PoolName = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9][a-z0-9._-]*$/, "must be of small letters, digits, '.', '_' and '-'"),
  v.maxLength(NAME_MAX),
  v.notValue("default", "is the pool of the shared token"),
);

/** Body of `POST /api/worker/pools`. */
export const CreatePoolBody = v.object({
  name: PoolName,
  paths: v.pipe(
    v.array(v.pipe(storableText(255), v.minLength(1))),
    v.minLength(1),
    v.maxLength(PATHS_MAX),
    v.description("Patterns of catalog paths, as `team/**`."),
  ),
  labels: v.exactOptional(v.pipe(Labels, v.description("What its workers have besides their own labels."))),
});

/** A pool, without its token. */
export const WorkerPoolItem = v.object({
  name: v.string(),
  paths: v.array(v.string()),
  labels: JsonObjectValue,
  created_by: v.string(),
  created_at: Timestamp,
  rotated_at: v.nullable(Timestamp),
  revoked_at: v.nullable(Timestamp),
});
export type WorkerPoolItem = v.InferOutput<typeof WorkerPoolItem>;

/** Answer with a new token, which is shown this once. */
export const PoolTokenAnswer = v.object({
  ...WorkerPoolItem.entries,
  token: v.pipe(v.string(), v.description("FLOW_WORKER_TOKEN of its workers. It is shown this once.")),
});

/** Answer of `GET /api/worker/pool-tokens`. */
export const WorkerPoolsAnswer = v.object({ items: v.array(WorkerPoolItem) });
