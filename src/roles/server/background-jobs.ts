import type { DatabaseClock } from "../../adapters/database-clock.ts";
import { systemClock } from "../../adapters/system-clock.ts";
import type { Lifecycle } from "../../platform/system/lifecycle.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { deleteOldSessions } from "../../repositories/access/login-sessions.ts";
import { deleteOldBulk } from "../../repositories/bulk/bulk.ts";
import type { Database } from "../../repositories/database/database.ts";
import { ensureEventPartitions } from "../../repositories/executions/event-partitions.ts";
import { deleteExpiredTransients } from "../../repositories/executions/execution-values.ts";
import { findLeftWork, type LeftWork } from "../../repositories/orchestration/left-work.ts";
import { deleteOldSignals } from "../../repositories/signals/signals.ts";
import { deleteOldDeliveries } from "../../repositories/triggers/deliveries.ts";
import { deleteOldFires } from "../../repositories/triggers/fires.ts";
import type { Audit } from "../../services/access/audit.ts";
import { MESSAGES_MAX } from "../../services/approvals/send-messages.ts";
import type { BulkOperations } from "../../services/bulk/bulk.ts";
import type { TransientValues } from "../../services/credentials/key-values.ts";
import type { ExecutionReader } from "../../services/executions/execution-reader.ts";
import type { Elsewhere } from "../../services/executions/follow-other-servers.ts";
import type { KeychainUpkeep } from "../../services/keychain/cleanup.ts";
import { type BackgroundWork, repeatWhileFull, startBackground } from "../../services/maintenance/background.ts";
import { createLeftWorkLooks, type LookTimes } from "../../services/maintenance/left-work.ts";
import type { Retention } from "../../services/maintenance/retention.ts";
import type { Recovery } from "../../services/orchestration/orchestrator.ts";
import { DUE_MAX } from "../../services/orchestration/wake.ts";
import type { Results } from "../../services/results/results.ts";
import type { KeyedSignals } from "../../services/signals/keyed-signals.ts";
import { countBacklog, countEnded, forgetStatistics } from "../../services/statistics/count-executions.ts";
import type { StreamTriggers } from "../../services/stream-triggers/stream-triggers.ts";
import type { Triggers } from "../../services/triggers/triggers.ts";
import type { Pools } from "../../services/workers/pools.ts";
import type { Reaper } from "../../services/workers/reaper.ts";
import type { AsOwner } from "./open-database.ts";
import type { Presence } from "./presence.ts";

/** What is looked after beside the requests. */
export interface UpkeepDeps {
  recovery: Recovery;
  reader: Pick<ExecutionReader, "sweep">;
  elsewhere: Elsewhere;
  database: Database;
  /** Is set by each look. */
  clock: DatabaseClock;
  asOwner: AsOwner;
  audit: Audit;
  keychainUpkeep: KeychainUpkeep;
  transient: Pick<TransientValues, "sweep">;
  presence: Presence;
  /** Undefined: switched off. */
  reaper: { reaper: Reaper; intervalMs: number } | undefined;
  retention: Retention;
  /** How long executions are kept, and so what started them. */
  retentionDays: number;
  results: Pick<Results, "sweep" | "removeLeftovers">;
  pools: Pick<Pools, "refresh">;
  bulk: Pick<BulkOperations, "workOff" | "end">;
  signals: Pick<KeyedSignals, "workOff">;
  /** Calls the listener when a command was parked: when something may first be done for it, milliseconds since 1970. */
  onParked(listener: (at: number) => void): void;
  /** Sends messages about approvals; gives how many it took. */
  tellPeople(): Promise<number>;
  triggers: Pick<Triggers, "sweep">;
  watching: { ends: boolean };
  streamTriggers: StreamTriggers;
  logger: Logger;
  lifecycle: Lifecycle;
}

/** A server that takes this long to process a batch counts as dead, and another one processes it too. */
const BATCH_IDLE_MS = 5_000;
/**
 * Interval of the look for work that was left, and so of the search for ready commands whose notice was lost: what another server gives back
 * is taken within a second.
 */
const POLL_MS = 700;
/** Rest of work that a look begins: it begins with the next one. */
const AFTER_LOOK_MS = 10;
/** Polling interval for the executions watched here, without a broker: an end elsewhere is noticed some 20 ms later. */
const ELSEWHERE_MS = 25;
/** Polling interval for all executions watched here: what waits for one is late by this much if a notice is lost. */
const WATCHED_MS = 1_000;
/** With {@link POLL_MS} how old what a server knows of pools may be, 2 s: another server may have made one. */
const POOLS_MS = 1_000;
/** How long people can look at operations on many executions that have ended. */
const BULK_DAYS = 30;
const DAY_MS = 86_400_000;
/** Time between two signs of life. */
const PRESENCE_MS = 10_000;
/** Expired rows deleted in one run; after a full one the next begins soon. */
const EXPIRED_MAX = 1_000;
/** How long people can look at sessions that are over. */
const SESSION_DAYS = 30;
/** Time between counts of executions that have ended. */
const COUNT_MS = 5_000;
/** Of these one transaction counts so many: some 50 ms. */
const COUNTED_MAX = 1_000;
/** Time between runs of retention. */
export const RETENTION_INTERVAL_MS = 300_000;

/**
 * Starts the background jobs: commands and batches that another process left, deadlines, the reaper, partitions of the log,
 * retention. What fails is logged and tried again; the database being away for a while is no reason to end.
 */
export function startUpkeep(deps: UpkeepDeps): void {
  const { recovery, reader, elsewhere, database, presence, audit, keychainUpkeep, transient, results } = deps;
  const { reaper, retention, logger, lifecycle, clock } = deps;
  const onError = (name: string, error: unknown) => logger.warn({ err: error, work: name }, "background work failed");
  const left = createLeftWorkLooks<keyof LeftWork>(() => lookWith(deps), ["pools"], lookTimes(clock, onError));
  deps.onParked((at) => left.lookIn(at - clock.now()));
  const whenLeft = (reason: keyof LeftWork, intervalMs = AFTER_LOOK_MS) => ({
    intervalMs,
    until: (signal: AbortSignal) => left.until(reason, signal),
  });
  const work: BackgroundWork[] = [
    { name: "look for work that was left", intervalMs: POLL_MS, runOnce: () => left.look() },
    { name: "poll for commands", ...whenLeft("commands"), runOnce: () => recovery.poll() },
    {
      name: "hear of what others moved",
      ...{ intervalMs: ELSEWHERE_MS, until: elsewhere.needed, runOnce: () => elsewhere.look() },
    },
    { name: "look at watched executions", intervalMs: WATCHED_MS, runOnce: () => elsewhere.lookAtAll() },
    { name: "recover batches", ...whenLeft("batches"), runOnce: () => recovery.recover(BATCH_IDLE_MS) },
    { name: "end overdue executions", ...whenLeft("overdue"), runOnce: () => recovery.expire() },
    { name: "forget idle executions", intervalMs: 1_000, runOnce: () => recovery.sweep() },
    { name: "forget executions that were read", intervalMs: 5_000, runOnce: () => reader.sweep() },
    { name: "read the pools of workers", ...whenLeft("pools", POOLS_MS), runOnce: () => deps.pools.refresh() },
    ...bulkWork(deps, whenLeft("bulk")),
    ...signalWork(deps, whenLeft("signals")),
    repeatWhileFull("delete old fires", RETENTION_INTERVAL_MS, EXPIRED_MAX, (limit) =>
      deleteOldFires(database, deps.retentionDays, limit),
    ),
    repeatWhileFull("delete old deliveries", RETENTION_INTERVAL_MS, EXPIRED_MAX, (limit) =>
      deleteOldDeliveries(database, deps.retentionDays, limit),
    ),
    { name: "read streams for triggers", ...whenLeft("streams"), runOnce: () => deps.streamTriggers.look() },
    messageWork(deps, whenLeft("messages")),
    { name: "fire triggers", ...whenLeft("triggers"), runOnce: () => deps.triggers.sweep() },
    ...statisticsWork(database),
    { name: "wake what has come due", ...whenLeft("waits"), runOnce: () => wakeAll(recovery) },
    { name: "say that this server lives", intervalMs: PRESENCE_MS, runOnce: () => presence.say() },
    { name: "make partitions of the log", intervalMs: DAY_MS, runOnce: () => deps.asOwner(ensureEventPartitions) },
    repeatWhileFull("delete expired values", 60_000, EXPIRED_MAX, (limit) => deleteExpiredTransients(database, limit)),
    { name: "delete entries of the keychain", intervalMs: 10_000, runOnce: () => keychainUpkeep.sweep() },
    { name: "delete transient values", intervalMs: RETENTION_INTERVAL_MS, runOnce: () => transient.sweep() },
    { name: "delete old rows of the audit log", intervalMs: RETENTION_INTERVAL_MS, runOnce: () => audit.deleteOld() },
    repeatWhileFull("delete old sessions", RETENTION_INTERVAL_MS, EXPIRED_MAX, (limit) =>
      deleteOldSessions(database, SESSION_DAYS, limit),
    ),
    { name: "delete results with what they end with", ...whenLeft("results", 5_000), runOnce: () => results.sweep() },
    repeatWhileFull("delete what results have left in stores", 60_000, EXPIRED_MAX, (limit) =>
      results.removeLeftovers(limit),
    ),
    {
      name: "delete what was kept for long enough",
      intervalMs: RETENTION_INTERVAL_MS,
      runOnce: () => retention.runOnce(),
      isBehind: retention.isBehind,
    },
  ];
  if (reaper !== undefined) {
    const { intervalMs, reaper: commands } = reaper;
    work.push({ name: "reap commands", intervalMs, runOnce: () => commands.sweep(), isBehind: commands.isBehind });
  }
  const stop = startBackground(work, { clock: systemClock, random: Math.random, onError });
  lifecycle.add("the background work", async () => {
    left.end();
    // Another server may do the same at once. Without the database it waits for the end of the lease.
    await Promise.all([stop(), retention.end().catch(() => undefined)]);
    await Promise.all([deps.bulk.end(), deps.streamTriggers.end()].map((end) => end.catch(() => undefined)));
    await reaper?.reaper.release().catch(() => undefined);
    await presence.end().catch(() => undefined);
  });
}

async function lookWith({ database, watching, clock }: Pick<UpkeepDeps, "database" | "watching" | "clock">) {
  const askedAt = performance.now();
  const { shownMs, ...found } = await findLeftWork(database);
  clock.heard(shownMs, askedAt, performance.now());
  watching.ends = found.watchers;
  return found;
}

/** Statistics are as far behind as an execution waits to be counted: {@link COUNT_MS}, and a moment for each thousand. */
function statisticsWork(database: Database): BackgroundWork[] {
  let hasBacklog = true;
  return [
    repeatWhileFull("count executions that have ended", COUNT_MS, COUNTED_MAX, (limit) => countEnded(database, limit)),
    {
      name: "count executions from before there were statistics",
      intervalMs: COUNT_MS,
      async runOnce() {
        if (hasBacklog) hasBacklog = await countBacklog(database, COUNTED_MAX);
      },
      isBehind: () => hasBacklog,
    },
    repeatWhileFull("delete old statistics", RETENTION_INTERVAL_MS, EXPIRED_MAX, (limit) =>
      forgetStatistics(database, limit),
    ),
  ];
}

/** Looks between those of {@link POLL_MS}, for what comes due before the next of them. */
function lookTimes({ now }: DatabaseClock, onError: (name: string, error: unknown) => void): LookTimes {
  return {
    after(ms, action) {
      const timer = setTimeout(action, ms);
      return () => clearTimeout(timer);
    },
    now,
    everyMs: POLL_MS,
    onError: (error) => onError("look for what is due", error),
  };
}

/** Runs of one look: each wakes at most {@link DUE_MAX}. */
const WAKES_MAX = 50;

/** Wakes all that is due. */
async function wakeAll(recovery: Pick<Recovery, "wake">): Promise<void> {
  for (let runs = 0; runs < WAKES_MAX; runs += 1) if ((await recovery.wake()) < DUE_MAX) return;
}

/** Operations on many executions, by whichever server comes first, and the deletion of old ones. */
function bulkWork(
  { bulk, database }: Pick<UpkeepDeps, "bulk" | "database">,
  when: Pick<BackgroundWork, "intervalMs" | "until">,
): BackgroundWork[] {
  let isBehind = false;
  const workOff: BackgroundWork = {
    name: "work off bulk operations",
    ...when,
    async runOnce() {
      isBehind = false;
      isBehind = await bulk.workOff();
    },
    isBehind: () => isBehind,
  };
  const clean = repeatWhileFull("delete old bulk operations", RETENTION_INTERVAL_MS, EXPIRED_MAX, (limit) =>
    deleteOldBulk(database, BULK_DAYS, limit),
  );
  return [workOff, clean];
}

/** Messages about approvals, by whichever server comes first. */
function messageWork(
  { tellPeople }: Pick<UpkeepDeps, "tellPeople">,
  when: Pick<BackgroundWork, "intervalMs" | "until">,
): BackgroundWork {
  let isBehind = false;
  return {
    name: "send messages about approvals",
    ...when,
    async runOnce() {
      isBehind = false;
      isBehind = (await tellPeople()) >= MESSAGES_MAX;
    },
    isBehind: () => isBehind,
  };
}

/** Signals to everyone, by whichever server comes first, and the deletion of old ones. */
function signalWork(
  { signals, database }: Pick<UpkeepDeps, "signals" | "database">,
  when: Pick<BackgroundWork, "intervalMs" | "until">,
): BackgroundWork[] {
  const workOff = { name: "tell signals to those who wait", ...when, runOnce: () => signals.workOff() };
  const clean = repeatWhileFull("delete old signals", 60_000, EXPIRED_MAX, (limit) =>
    deleteOldSignals(database, limit),
  );
  return [workOff, clean];
}
