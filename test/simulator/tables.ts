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
