import type { Database } from "../../repositories/database/database.ts";
import { forgetRemoved, type Taken, takeLeftovers } from "../../repositories/results/delete.ts";
import type { Removal } from "../../repositories/results/results.ts";
import type { RemovalReason, ResultsObserver } from "./observer.ts";
import type { PayloadStores } from "./storage-tiers.ts";

/** Removes payloads where they are, and then their rows. */
export interface ResultRemover {
  /**
   * Removes payloads that no reader finds any more. Never throws: what could not be removed keeps its row, and is tried again
   * by {@link leftovers}.
   */
  remove(removals: readonly Removal[]): Promise<void>;
  /** The second half of taking results away: their payloads. Gives how many results were taken. */
  removeTaken(taken: Taken, reason: RemovalReason): Promise<number>;
  /** Removes what processes that died, or stores that were away, have left; at most `limit`. Gives how many it tried. */
  leftovers(limit: number): Promise<number>;
}

/** Payloads that are removed at a time. */
const AT_A_TIME = 8;

/** Over the stores of a server. */
export function createResultRemover(deps: {
  database: Database;
  stores: PayloadStores;
  observer: ResultsObserver;
}): ResultRemover {
  const { database, stores, observer } = deps;
  const removeOne = async ({ store: name, location }: Removal): Promise<boolean> => {
    try {
      const store = stores.get(name);
      // Its settings were taken away: the payload cannot be reached until they are back.
      if (store === undefined) throw new Error(`the store ${name} is not configured here any more`);
      await store.remove(location);
      return true;
    } catch (error) {
      observer.failed(name, "remove", error);
      return false;
    }
  };
  const remove = async (removals: readonly Removal[]) => {
    for (let from = 0; from < removals.length; from += AT_A_TIME) {
      const some = removals.slice(from, from + AT_A_TIME);
      const isGone = await Promise.all(some.map(removeOne));
      const gone = some.filter((_, index) => isGone[index]);
      await forgetRemoved(database, gone).catch((error: unknown) => observer.failed("kv", "forget", error));
    }
  };
  return {
    remove,
    async removeTaken({ count, removals }, reason) {
      if (count > 0) observer.removed(reason, count);
      await remove(removals);
      return count;
    },
    async leftovers(limit) {
      const removals = await takeLeftovers(database, limit);
      await remove(removals);
      return removals.length;
    },
  };
}
