import type { Database } from "../../repositories/database/database.ts";
import {
  deleteEntriesOf,
  deleteExpiredEntries,
  deleteUnusedEntries,
  findEndedOwners,
} from "../../repositories/keychain/cleanup.ts";
import { deleteKeychainLeases } from "../../repositories/keychain/leases.ts";

/** Looks after the keychain beside the requests. */
export interface KeychainUpkeep {
  /** Called when an execution gets its first keychain entry. */
  owned(executionId: string): void;
  /** These executions have ended. Never throws; asks the database only when one of them owns entries. */
  ended(executionIds: readonly string[]): void;
  /**
   * Deletes the entries of ended executions, including those that another server ended, and entries that expired long ago;
   * returns the number of deleted entries. To be called every few seconds.
   */
  sweep(): Promise<number>;
}

/** Owners of entries that this server remembers, the latest. The sweep finds those of other servers, and those beyond it. */
const OWNERS_MAX = 10_000;
/** Rows of one statement. */
const ROWS_MAX = 500;
/** Statements of one kind in one run; the next run goes on. */
const ROUNDS_MAX = 20;
/** An expired entry is still reported as expired for a day, or a month after its last use where it can be renewed. */
const EXPIRED_DAYS = 1;
const UNUSED_DAYS = 30;

/**
 * Deletes entries that can no longer be read. Executions without entries cost nothing when they end: this server knows which of
 * its executions have entries, and the sweep starts from the entries, not from the executions.
 */
export function createKeychainUpkeep({ database }: { database: Database }): KeychainUpkeep {
  const owners = new Set<string>();
  /** Owners that have ended and whose entries are to be deleted. */
  let left: string[] = [];
  let isRemoving = false;
  /** Where the walk over owners goes on. */
  let place = "0";

  const removeOf = async (executionIds: readonly string[]): Promise<number> => {
    let removed = 0;
    for (let count = ROWS_MAX; count === ROWS_MAX; removed += count) {
      count = await deleteEntriesOf(database, executionIds, ROWS_MAX);
    }
    return removed;
  };
  /** One statement at a time, however many end at once. */
  const removeLeft = async () => {
    isRemoving = true;
    try {
      while (left.length > 0) await removeOf(left.splice(0, ROWS_MAX));
    } catch {
      // The database is away, for one: the sweep finds them.
      left = [];
    }
    isRemoving = false;
  };
  const sweepEnded = async (): Promise<number> => {
    let removed = 0;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const { executionIds, next } = await findEndedOwners(database, place, ROWS_MAX);
      if (executionIds.length > 0) removed += await removeOf(executionIds);
      place = next ?? "0";
      if (next === undefined) return removed;
    }
    return removed;
  };
  const rounds = async (remove: () => Promise<number>): Promise<number> => {
    let removed = 0;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const count = await remove();
      removed += count;
      if (count < ROWS_MAX) break;
    }
    return removed;
  };
  return {
    owned(executionId) {
      owners.add(executionId);
      if (owners.size <= OWNERS_MAX) return;
      // Executions that ended at another server are not announced here: the oldest are mostly those.
      const [oldest] = owners;
      if (oldest !== undefined) owners.delete(oldest);
    },
    ended(executionIds) {
      for (const executionId of executionIds) if (owners.delete(executionId)) left.push(executionId);
      if (left.length > 0 && !isRemoving) void removeLeft();
    },
    async sweep() {
      const ended = await sweepEnded();
      const expired = await rounds(() => deleteExpiredEntries(database, EXPIRED_DAYS, ROWS_MAX));
      const unused = await rounds(() => deleteUnusedEntries(database, UNUSED_DAYS, ROWS_MAX));
      await rounds(() => deleteKeychainLeases(database, ROWS_MAX));
      return ended + expired + unused;
    },
  };
}
