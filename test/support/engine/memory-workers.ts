import type { RunningEntry } from "../../../src/adapters/server/running-table.ts";
import { type CommandRow, isHeld, type MemoryStore } from "./memory-store.ts";

/** Times of the claim policy, in milliseconds. */
export interface WorkerTimes {
  leaseMs: number;
  /** A worker without a heartbeat for so long is stale. */
  staleMs: number;
  /** A claim that is older may be taken from a healthy worker too, once its lease is over. */
  hardTimeoutMs: number;
  /** A held command that its worker does not list counts as given up when its claim is older. */
  graceMs: number;
}

/** What a heartbeat finds, as `repositories/workers/workers` does. */
export interface FoundByHeartbeat {
  cancelled: string[];
  lost: string[];
  unlisted: string[];
}

/** The table of workers in memory: registrations, heartbeats, and what follows from them for the commands that they hold. */
export interface MemoryWorkers {
  register(name: string): void;
  /** Undefined if no worker of that name is registered. */
  heartbeat(name: string, running: readonly RunningEntry[]): FoundByHeartbeat | undefined;
  /** The claim policy (Worker protocol). */
  mayReclaim(row: CommandRow): boolean;
  /** Commands for the reaper to tell of again. */
  stranded(): string[];
}

/** Opens an empty table over a store; `store` is called late, because the store's policy asks this table. */
export function createMemoryWorkers(now: () => number, store: () => MemoryStore, times: WorkerTimes): MemoryWorkers {
  const heartbeats = new Map<string, number>();
  const isGone = (name: string | null) =>
    (heartbeats.get(name ?? "") ?? Number.NEGATIVE_INFINITY) <= now() - times.staleMs;
  const isOld = ({ claimedAt }: CommandRow) => (claimedAt ?? 0) <= now() - times.hardTimeoutMs;
  const fateOf = (name: string, { command_id, attempt }: RunningEntry) => {
    const row = store().commands.get(command_id);
    if (row === undefined && attempt === 1) return "ended";
    if (row === undefined || row.attempt !== attempt) return "lost";
    if (isHeld(row)) return row.worker === name ? "held" : "lost";
    return row.status === "CANCELLED" ? "cancelled" : "ended";
  };
  return {
    register: (name) => void heartbeats.set(name, now()),
    heartbeat(name, running) {
      if (!heartbeats.has(name)) return undefined;
      heartbeats.set(name, now());
      const found: FoundByHeartbeat = { cancelled: [], lost: [], unlisted: [] };
      for (const entry of running) {
        const fate = fateOf(name, entry);
        if (fate === "cancelled" || fate === "lost") found[fate].push(entry.command_id);
        const row = store().commands.get(entry.command_id);
        if (fate === "held" && row !== undefined) row.leaseExpiresAt = now() + times.leaseMs;
      }
      const listed = new Set(running.map(({ command_id }) => command_id));
      for (const row of store().commands.values()) {
        if (row.worker !== name || !isHeld(row) || listed.has(row.commandId)) continue;
        if ((row.claimedAt ?? 0) <= now() - times.graceMs) found.unlisted.push(row.commandId);
      }
      return found;
    },
    mayReclaim: (row) => (row.leaseExpiresAt ?? 0) <= now() && (isGone(row.worker) || isOld(row)),
    stranded: () =>
      [...store().commands.values()]
        .filter((row) => row.status === "PENDING" || (isHeld(row) && (isGone(row.worker) || isOld(row))))
        .map(({ commandId }) => commandId),
  };
}
