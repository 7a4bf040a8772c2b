import { createPostgresExecutionStore } from "../../../src/adapters/postgres-execution-store.ts";
import type { ExecutionChange, ExecutionStore, IssuedCommand } from "../../../src/ports/execution-store.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { CLAIMED, storeRows } from "./store-rows.ts";

/** What the tests of statements on commands start from: an execution, its commands in any state, workers of any age. */
export interface StoreSetup {
  store: ExecutionStore;
  /** Writes a command of an execution of its own, and gives both. */
  command(more?: Partial<IssuedCommand>): Promise<{ commandId: string; change: ExecutionChange }>;
  /** One that a worker holds, claimed and with a lease as many seconds from now. */
  held(worker: string, at?: { claimedSeconds?: number; leaseSeconds?: number }): Promise<string>;
  /** A worker's row whose last heartbeat is as many seconds old. */
  worker(name: string, more?: { status?: string; silentSeconds?: number }): Promise<void>;
}

export const POLICY = { staleMs: 60_000, hardTimeoutMs: 1_800_000 };

/** Over an open database with the service's schema; ids from `firstId` on. */
export function storeSetup(database: Database, firstId?: number): StoreSetup {
  const { sql } = database;
  const rows = storeRows(firstId);
  const store = createPostgresExecutionStore({ database, policy: POLICY, processor: "server" });
  const setup: StoreSetup = {
    store,
    async command(more = {}) {
      const change = rows.begin();
      const issued = rows.issue(change, more);
      await store.flush({ executions: [{ ...change, issued: [issued] }], batches: [] });
      return { commandId: issued.commandId, change };
    },
    async held(worker, { claimedSeconds = -60, leaseSeconds = 60 } = {}) {
      const { commandId } = await setup.command({ ...CLAIMED, worker });
      await sql`
        update flow.command set claimed_at = now() + ${claimedSeconds}::float8 * interval '1 second',
          lease_expires_at = now() + ${leaseSeconds}::float8 * interval '1 second'
        where command_id = ${commandId}`;
      return commandId;
    },
    async worker(name, { status = "ready", silentSeconds = 0 } = {}) {
      await sql`
        insert into flow.runtime (runtime_id, kind, name, status, capacity, heartbeat_at)
        values (${rows.next()}, 'worker', ${name}, ${status}, 4, now() - ${silentSeconds}::float8 * interval '1 second')`;
    },
  };
  return setup;
}
