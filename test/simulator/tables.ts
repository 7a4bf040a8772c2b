import type { LogEntry } from "../../src/schema/rules/event-record.ts";
import type { Json } from "../../src/schema/words/json.ts";
import { createMemoryStore, isHeld, type MemoryStore } from "../support/engine/memory-store.ts";
import { createMemoryWorkers, type MemoryWorkers, type WorkerTimes } from "../support/engine/memory-workers.ts";
import type { Ledger } from "./ledger.ts";

/** How long things hold: those of the service, shorter, so that a run sees all of them end. */
export const TIMES = {
  leaseMs: 20_000,
  staleMs: 12_000,
  hardTimeoutMs: 60_000,
  graceMs: 5_000,
} satisfies WorkerTimes;

/** Everything that lasts when all processes die. */
export interface Tables {
  store: MemoryStore;
  workers: MemoryWorkers;
  payloads: Map<string, Json>;
  /** Stores a worker's result, if its claim is the present one. */
  saveClaimed(ref: string, json: string, commandId: string, attempt: number): string | undefined;
}

/** Empty tables; `now` is the store's clock. */
export function createTables(now: () => number, ledger: Ledger): Tables {
  const store: MemoryStore = createMemoryStore(now, (row) => workers.mayReclaim(row));
  const workers: MemoryWorkers = createMemoryWorkers(now, () => store, TIMES);
  const payloads = new Map<string, Json>();
  noWaitEndsEarly(store, now, ledger);
  return {
    store,
    workers,
    payloads,
    saveClaimed(ref, json, commandId, attempt) {
      const row = store.commands.get(commandId);
      if (row === undefined || !isHeld(row) || row.attempt !== attempt) return undefined;
      payloads.set(ref, JSON.parse(json));
      // Each claim's payload counts as another, as the answers of real tools are.
      const sha256 = `${commandId}#${attempt}`;
      ledger.store(ref, sha256);
      return sha256;
    },
  };
}

/** A wait for a time is over when it has come by the store's clock, whatever those of the servers show. */
function noWaitEndsEarly(store: MemoryStore, now: () => number, ledger: Ledger): void {
  const { flush } = store;
  const isEarly = (event: LogEntry["event"]) => {
    if (event.type !== "command.woken" || event.signal !== undefined || event.approval !== undefined) return false;
    const due = store.waits.get(event.command_id)?.dueAt;
    return due == null || due > now();
  };
  store.flush = async (writing) => {
    const early = writing.executions.filter(({ events }) => events.some(({ event }) => isEarly(event)));
    const outcome = await flush(writing);
    for (const { executionId } of early)
      if (outcome.moved.has(executionId)) ledger.breach(`A wait of ${executionId} was over before its time`);
    return outcome;
  };
}
