import { createPostgresExecutionStore } from "../../src/adapters/postgres-execution-store.ts";
import { openDatabase } from "../../src/repositories/database/database.ts";
import { violatedConstraint } from "../../src/repositories/database/error-codes.ts";
import { createServiceDatabase } from "../support/database/postgres.ts";
import { POLICY, storeSetup } from "../support/database/store-setup.ts";
import { createMemoryStore, DuplicateKey, type MemoryStore } from "../support/engine/memory-store.ts";
import { createMemoryWorkers } from "../support/engine/memory-workers.ts";
import type { CommandSeen, StoreUnderTest } from "./execution-store-bench.ts";
import { exerciseExecutionStore } from "./execution-store-contract.ts";

async function openPostgres(): Promise<StoreUnderTest> {
  const database = openDatabase((await createServiceDatabase()).url, { connectionsMax: 3 });
  const { sql } = database;
  const setup = storeSetup(database);
  return {
    store: createPostgresExecutionStore({ database, policy: POLICY, processor: "server-1" }),
    async executionRow(id) {
      type Row = { status: string; progress: number; result: unknown; error: unknown };
      const [row] = await sql<Row[]>`
        select status, progress, result, error from flow.execution where execution_id = ${id}`;
      return row;
    },
    async commandRow(id) {
      type Row = Omit<CommandSeen, "claimedAt" | "leaseExpiresAt"> & { claimed: Date | null; lease: Date | null };
      const [row] = await sql<Row[]>`
        select status, attempt, worker, claimed_at as claimed, lease_expires_at as lease
        from flow.command where command_id = ${id}`;
      if (row === undefined) return undefined;
      const { claimed, lease, ...rest } = row;
      return { ...rest, claimedAt: claimed?.getTime() ?? null, leaseExpiresAt: lease?.getTime() ?? null };
    },
    async batchRow(id) {
      const [row] = await sql<{ state: string; code: string | null; commandsGenerated: number }[]>`
        select state, code, commands_generated as "commandsGenerated" from flow.batch where request_id = ${id}`;
      return row && { ...row };
    },
    worker: (name, silentSeconds) => setup.worker(name, { silentSeconds }),
    async claimed(commandId, { secondsAgo, leaseSeconds }) {
      await sql`
        update flow.command set claimed_at = now() - ${secondsAgo}::float8 * interval '1 second',
          lease_expires_at = now() + ${leaseSeconds}::float8 * interval '1 second'
        where command_id = ${commandId}`;
    },
    async leaveBatch(requestId) {
      await sql`update flow.batch set updated_at = now() - interval '1 hour' where request_id = ${requestId}`;
    },
    close: () => database.close(),
    isDuplicateKey: (error) => /_for_idempotency$/.test(violatedConstraint(error) ?? ""),
  };
}

async function openMemory(): Promise<StoreUnderTest> {
  let at = Date.now();
  const now = () => at;
  const times = { ...POLICY, leaseMs: 120_000, graceMs: 10_000 };
  const workers = createMemoryWorkers(now, () => store, times);
  const store: MemoryStore = createMemoryStore(now, workers.mayReclaim);
  return {
    store,
    async executionRow(id) {
      const row = store.executions.get(id);
      if (row === undefined) return undefined;
      const { status, progress, result = null, error = null } = row;
      return { status, progress, result, error };
    },
    async commandRow(id) {
      const row = store.commands.get(id);
      if (row === undefined) return undefined;
      const { status, attempt, worker, claimedAt, leaseExpiresAt } = row;
      return { status, attempt, worker, claimedAt, leaseExpiresAt };
    },
    async batchRow(id) {
      const row = store.batches.get(id);
      return row && { state: row.state, code: row.code ?? null, commandsGenerated: row.commandsGenerated };
    },
    async worker(name, silentSeconds) {
      const present = at;
      at -= silentSeconds * 1_000;
      workers.register(name);
      at = present;
    },
    async claimed(commandId, { secondsAgo, leaseSeconds }) {
      const row = store.commands.get(commandId);
      const times = { claimedAt: at - secondsAgo * 1_000, leaseExpiresAt: at + leaseSeconds * 1_000 };
      if (row !== undefined) Object.assign(row, times);
    },
    async leaveBatch(requestId) {
      const row = store.batches.get(requestId);
      if (row !== undefined) row.updatedAt = at - 3_600_000;
    },
    close: async () => undefined,
    isDuplicateKey: (error) => error instanceof DuplicateKey,
  };
}

exerciseExecutionStore("executions in PostgreSQL", openPostgres);
exerciseExecutionStore("executions in memory", openMemory);
