import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExecutionChange, ExecutionStore, IssuedCommand } from "../../src/ports/execution-store.ts";
import { type StoreRows, storeRows } from "../support/database/store-rows.ts";

/** A store, and what its port does not tell: times are milliseconds since 1970. */
export interface StoreUnderTest {
  store: ExecutionStore;
  executionRow(id: string): Promise<{ status: string; progress: number; result: unknown; error: unknown } | undefined>;
  commandRow(id: string): Promise<CommandSeen | undefined>;
  batchRow(id: string): Promise<{ state: string; code: string | null; commandsGenerated: number } | undefined>;
  /** Registers a worker whose last heartbeat is so old; it is stale after a minute. */
  worker(name: string, silentSeconds: number): Promise<void>;
  /** Moves the times of a claim. The hard timeout is half an hour. */
  claimed(commandId: string, at: { secondsAgo: number; leaseSeconds: number }): Promise<void>;
  /** As if the batch had not changed for an hour. */
  leaveBatch(requestId: string): Promise<void>;
  /** Whether the store refused a key that is taken. */
  isDuplicateKey(error: unknown): boolean;
  close(): Promise<void>;
}

/** State of a command as the store keeps it. */
export interface CommandSeen {
  status: string;
  attempt: number;
  worker: string | null;
  claimedAt: number | null;
  leaseExpiresAt: number | null;
}

/** What a test works with. */
export interface Bench extends StoreUnderTest {
  rows: StoreRows;
  write(...executions: ExecutionChange[]): ReturnType<ExecutionStore["flush"]>;
  /** An execution that began. */
  begun(): Promise<ExecutionChange>;
  /** One with a command. */
  issued(more?: Partial<IssuedCommand>): Promise<{ change: ExecutionChange; commandId: string }>;
  eventIds(executionId: string): Promise<number[]>;
}

/** Declares a test on an empty store of its own. */
export type Check = (what: string, body: (bench: Bench) => Promise<void>) => void;

/** The tests of the stores that `open` gives. */
export function checkOn(open: () => Promise<StoreUnderTest>): Check {
  return (what, body) => {
    test(what, { timeout: 300_000 }, async () => {
      const under = await open();
      try {
        await body(benchOf(under));
      } finally {
        await under.close();
      }
    });
  };
}

function benchOf(under: StoreUnderTest): Bench {
  const { store } = under;
  const rows = storeRows();
  const write = (...executions: ExecutionChange[]) => store.flush({ executions, batches: [] });
  return {
    ...under,
    rows,
    write,
    async begun() {
      const change = rows.begin();
      assert.deepEqual([...(await write(change)).moved], [change.executionId]);
      return change;
    },
    async issued(more = {}) {
      const change = rows.begin();
      const command = rows.issue(change, more);
      await write({ ...change, issued: [command] });
      return { change, commandId: command.commandId };
    },
    eventIds: async (executionId) => (await store.eventsAfter(executionId, 0, 1_000)).map(({ event_id }) => event_id),
  };
}
