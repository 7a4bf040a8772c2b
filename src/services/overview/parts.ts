import type { BatchNumbers, ListedWorker } from "../../repositories/doctor/overview.ts";
import type { WaitingCommands } from "../../repositories/doctor/stuck-work.ts";
import { OVERVIEW_COUNT_MAX, type Overview, type OverviewWorker, type QueueGroup } from "../../schema/api/overview.ts";
import { whyWaiting } from "../diagnosis/waiting.ts";
import type { Reaper, SweepMade } from "../workers/reaper.ts";

/* The parts of the overview, from what the database has. */

/** An idle worker claims within milliseconds; below this age a waiting command is normal. */
const SOON_MS = 3_000;

/** A worker as it is shown. */
export function workerPart(worker: ListedWorker, staleMs: number): OverviewWorker {
  const { name, status, capacity, running, labels, about, heartbeatAgeMs } = worker;
  return {
    name,
    status: status !== "offline" && heartbeatAgeMs > staleMs ? "stale" : status,
    capacity,
    running,
    kinds: worker.capabilities,
    labels,
    about,
    heartbeat_age_ms: heartbeatAgeMs,
    registered_at: worker.createdAt.toISOString(),
    commands: worker.commands.map((command) => ({
      command_id: command.commandId,
      execution_id: command.executionId,
      path: command.path,
      step: command.step,
      attempt: command.attempt,
      claimed_at: new Date(command.claimedAt).toISOString(),
      lease_expires_at: new Date(command.leaseExpiresAt).toISOString(),
    })),
  };
}

/** Waiting commands, grouped by what they require, with the reason why they wait. */
export function queuePart(
  waiting: readonly WaitingCommands[],
  workers: readonly OverviewWorker[],
  nowMs: number,
): NonNullable<Overview["queue"]> {
  const seen = workers.map((worker) => ({
    status: worker.status === "stale" ? ("ready" as const) : worker.status,
    isSilent: worker.status === "stale",
    capabilities: worker.kinds,
    labels: worker.labels,
    held: worker.running,
    capacity: worker.capacity,
  }));
  const groups = waiting.map((group): QueueGroup => {
    const oldestMs = Math.max(0, nowMs - group.since.getTime());
    const why = whyWaiting(group, seen);
    return {
      kinds: group.kinds,
      labels: group.labels,
      count: group.count,
      oldest_ms: oldestMs,
      why: why === "unnoticed" && oldestMs < SOON_MS ? "soon" : why,
      execution_ids: group.executionIds,
    };
  });
  const count = groups.reduce((sum, group) => sum + group.count, 0);
  return {
    waiting: bounded(count),
    oldest_ms: groups.length === 0 ? null : Math.max(...groups.map((group) => group.oldest_ms)),
    groups,
  };
}

/** How batches stand. */
export function batchesPart(batches: BatchNumbers): NonNullable<Overview["batches"]> {
  const { failed, looked, code, message, failedAt } = batches;
  return {
    accepted: bounded(batches.accepted),
    processing: bounded(batches.processing),
    oldest_ms: batches.oldestMs,
    failed: failedAt === null ? null : { count: failed, of: looked, code, message, at: failedAt.toISOString() },
  };
}

/** The reaper as it is set up here. */
export type SeenReaper = Pick<Reaper, "made"> & { enabled: boolean; intervalMs: number };

/** What the reaper does. `holder`: who sweeps by the clock. */
export function reaperPart(
  { enabled, intervalMs, made }: SeenReaper,
  holder: string | null,
): NonNullable<Overview["reaper"]> {
  const { last, found } = made();
  return {
    enabled,
    interval_seconds: intervalMs / 1_000,
    holder,
    last: last === undefined ? null : sweepPart(last),
    found: found.map(sweepPart),
  };
}

function sweepPart({ at, asked, found }: SweepMade) {
  return { at: new Date(at).toISOString(), asked, ...found };
}

/** A count that ended one above the most. */
export function bounded(count: number): { count: number; more: boolean } {
  return { count: Math.min(count, OVERVIEW_COUNT_MAX), more: count > OVERVIEW_COUNT_MAX };
}
