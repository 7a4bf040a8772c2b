import { batchLookup, coalesce } from "../platform/concurrency/coalesce.ts";
import type { ExecutionStore } from "../ports/execution-store.ts";
import type { Database } from "../repositories/database/database.ts";
import { reserveIdBlock } from "../repositories/database/ids.ts";
import { findBatchByKey, takeOpenBatches } from "../repositories/orchestration/batches.ts";
import {
  type ClaimPolicy,
  findClaimable,
  findPending,
  findPendingRequirements,
  loadCommandBodies,
} from "../repositories/orchestration/claimable-commands.ts";
import { findCommandExecutions } from "../repositories/orchestration/find-startable.ts";
import { flushChanges } from "../repositories/orchestration/flush.ts";
import {
  findOverdue,
  findStartByKey,
  type LogPlace,
  loadEvents,
  loadEventsAt,
  loadExecutions,
} from "../repositories/orchestration/load-execution.ts";
import { findSnapshotUpTo } from "../repositories/orchestration/past-snapshots.ts";
import { findReturned } from "../repositories/orchestration/stranded-commands.ts";
import { takeDueWaits } from "../repositories/orchestration/waits.ts";

/** Silence after which a server counts as gone: it says every 10 s that it lives. */
const SERVER_SILENT_MS = 30_000;

/** Executions that one statement loads, of those that are asked for while another one runs: so many may have long logs and large states. */
const TOGETHER_MAX = 32;
/** Statements that load executions at a time, so that what is behind a long log does not wait for it alone. */
const LANES = 4;
const laneOf = (executionId: string) => Number(executionId) % LANES;

/** What the store needs. */
export interface PostgresExecutionStoreOptions {
  database: Database;
  /**
   * A separate pool for {@link ExecutionStore.flush}, opened with `byKey`, so that no flush waits behind reads and the planner
   * ignores statistics for it. Default: `database`.
   */
  flushDatabase?: Database;
  policy: ClaimPolicy;
  /** Name of this server: the owner of a batch that it takes over. */
  processor: string;
  /** Whether some trigger watches ends of executions. Default: none does. */
  watchesEnds?(): boolean;
  /** Milliseconds after which a batch that was taken over may be taken over again. Default 60,000. */
  batchLeaseMs?: number;
}

/** Executions in PostgreSQL. Rejections are the driver's: see `repositories/database/error-codes`. */
export function createPostgresExecutionStore(options: PostgresExecutionStoreOptions): ExecutionStore {
  const { database, flushDatabase = database, policy, processor, batchLeaseMs = 60_000 } = options;
  const finders = Array.from({ length: LANES }, () =>
    batchLookup((ids: readonly string[]) => loadExecutions(database, ids), TOGETHER_MAX),
  );
  // Those of one lane have the same limit.
  type Asked = LogPlace & { limit: number };
  const logsAt = coalesce(async (_lane, [first, ...others]: readonly [Asked, ...Asked[]]) => {
    const { limit } = first;
    if (others.length === 0) {
      const events = await loadEvents(database, first.executionId, first.after, limit);
      return new Map([[first, () => events]]);
    }
    const places = [first, ...others];
    const logs = await loadEventsAt(database, places, limit);
    return new Map(places.map((place, index) => [place, logs[index] ?? (() => [])]));
  }, TOGETHER_MAX);
  return {
    reserveIds: (count) => reserveIdBlock(database, count),
    find: async (executionId) => await finders[laneOf(executionId)]?.(executionId),
    snapshotUpTo: (executionId, eventId, format) => findSnapshotUpTo(database, executionId, eventId, format),
    eventsAfter: async (executionId, after, limit) => {
      const place = { executionId, after, limit };
      return (await logsAt(`${limit}/${laneOf(executionId)}`, place)).get(place)?.() ?? [];
    },
    flush: async (flush) => {
      const noted = options.watchesEnds?.() === true ? { ...flush, watchesEnds: true } : flush;
      const { moved, at } = await flushChanges(flushDatabase, noted);
      return { moved: new Set(moved), at };
    },
    pendingRequirements: (after, limit) => findPendingRequirements(database, after, limit),
    pendingCommands: (wanted) => findPending(database, wanted),
    claimableCommands: (commandIds, abandoned) => findClaimable(database, commandIds, policy, abandoned),
    returnedCommands: (limit) => findReturned(database, limit),
    commandBodies: (commandIds) => loadCommandBodies(database, commandIds),
    unprocessedBatches: (idleMs, limit) =>
      takeOpenBatches(database, { processor, leaseMs: batchLeaseMs, idleMs, silentMs: SERVER_SILENT_MS, limit }),
    executionsOf: (commandIds) => findCommandExecutions(database, commandIds),
    findBatch: (caller, idempotencyKey) => findBatchByKey(database, caller, idempotencyKey),
    findStart: (caller, idempotencyKey) => findStartByKey(database, caller, idempotencyKey),
    overdueExecutions: (limit) => findOverdue(database, limit),
    takeDueWaits: (leaseMs, limit) => takeDueWaits(database, leaseMs, limit),
  };
}
