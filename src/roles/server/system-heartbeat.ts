import { hostname } from "node:os";
import { moment, systemClock } from "../../adapters/system-clock.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { POOL_LABEL, SERVER_POOL } from "../../schema/rules/pool-label.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { Workers } from "../../services/workers/workers.ts";
import type { Lease } from "../../worker/lease.ts";
import type { Worker } from "../../worker/loop/worker.ts";

/** What {@link keepRegistered} needs. */
export interface SystemHeartbeatParts {
  name: string;
  /** Of this process alone. */
  instance: string;
  capacity: number;
  capabilities: readonly string[];
  version: string;
  /** The longest time between two heartbeats; three in each lease. */
  intervalMs: number;
  workers: Pick<Workers, "register" | "heartbeat" | "deregister">;
  /** What runs now. */
  running(): { commandId: string; attempt: number }[];
  work: Pick<Worker, "start" | "cancelled" | "iterationsCancelled" | "lost">;
  lease: Lease;
  logger: Logger;
}

/** The worker's place among the workers of the database. */
export interface SystemHeartbeat {
  /** Sends a heartbeat now. */
  beat(): void;
  /** Registers anew. */
  register(): void;
  /** Leaves: what the worker still holds may be claimed by other servers at once. */
  leave(): Promise<void>;
}

/** Until the database is asked again that did not answer. */
const RETRY_MS = 1_000;
/** After a cancelled command was found: it ends within milliseconds, and is not to be found again. */
const NEWS_MS = 250;

/**
 * Registers the worker inside a server, starts it when that has succeeded, and renews the leases of what it runs until it leaves.
 * On the thread that all of it runs on: where that stands still, nothing of the server goes on, and another one takes its commands.
 */
export function keepRegistered(parts: SystemHeartbeatParts): SystemHeartbeat {
  const { name, instance, workers, work, lease, logger } = parts;
  const leaving = new AbortController();
  let isRegistered = false;
  let isStarted = false;
  let intervalMs = parts.intervalMs;
  let now = new AbortController();
  const renewed = (sentAt: ReturnType<typeof moment>, leaseMs: number) => {
    intervalMs = Math.min(parts.intervalMs, leaseMs / 3);
    lease.renewed(sentAt, leaseMs);
  };
  const register = async () => {
    const { capacity, capabilities, version } = parts;
    const about = { pid: process.pid, hostname: hostname(), version, isolation: "runs no code", instance };
    const labels = { [POOL_LABEL]: SERVER_POOL };
    const sentAt = moment();
    const { leaseMs } = await workers.register({ name, capacity, labels, capabilities, about, instance });
    isRegistered = true;
    renewed(sentAt, leaseMs);
    if (!isStarted) work.start();
    isStarted = true;
  };
  /** Gives the time until the next heartbeat. */
  const beat = async (): Promise<number> => {
    const [running, sentAt] = [parts.running(), moment()];
    const waitMs = Math.min(intervalMs, 30_000);
    const told = await workers.heartbeat({ name, instance, running, draining: false, waitMs }, now.signal);
    for (const id of told.cancel) work.cancelled(id);
    for (const { commandId, iterations } of told.iterations) work.iterationsCancelled(commandId, iterations);
    for (const { commandId, attempt } of running) if (told.lost.includes(commandId)) work.lost(commandId, attempt);
    renewed(sentAt, told.leaseMs);
    if (told.cancel.length + told.iterations.length + told.lost.length > 0) return NEWS_MS;
    return Math.max(0, intervalMs - (moment().steady - sentAt.steady));
  };
  const once = async (): Promise<number> => {
    try {
      if (!isRegistered) await register();
      return await beat();
    } catch (error) {
      if (error instanceof FlowError && error.code === "unknown") isRegistered = false;
      logger.warn({ reason: messageOf(error) }, "the worker for system playbooks could not renew its leases");
      return RETRY_MS;
    }
  };
  const live = async () => {
    while (!leaving.signal.aborted) {
      now = new AbortController();
      const pauseMs = await once();
      await systemClock.sleep(pauseMs, now.signal).catch(() => undefined);
    }
  };
  const lived = live();
  return {
    beat: () => now.abort(),
    register() {
      isRegistered = false;
      now.abort();
    },
    async leave() {
      leaving.abort();
      now.abort();
      await lived;
      await workers.deregister(name, instance).catch(() => undefined);
    },
  };
}
