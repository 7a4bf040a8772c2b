import { createWaiter } from "../../platform/concurrency/change-signal.ts";
import { agentsMark } from "../../repositories/catalog/catalog-search.ts";
import type { Database } from "../../repositories/database/database.ts";
import { FlowError } from "../../schema/words/errors.ts";

/** Notifies listeners when the set of agents has changed, on whichever server. */
export interface AgentChanges {
  /**
   * `changed` after each change from now on, to the abort of `signal`; `idle` about once a second when there was none. Throws
   * `FlowError` UNAVAILABLE when too many listen already.
   */
  follow(signal: AbortSignal): AsyncGenerator<"changed" | "idle">;
}

/** Polling interval while there are listeners: one short statement. */
const LOOK_MS = 2_000;
/** Between two signs of life. */
const IDLE_MS = 1_000;
/** Those who listen hold a connection each. */
const LISTENERS_MAX = 1_000;

/** Polls a database, only while there are listeners. */
export function createAgentChanges({ database }: { database: Database }): AgentChanges {
  const listeners = new Set<() => void>();
  let timer: NodeJS.Timeout | undefined;
  let mark: Promise<string | undefined> = Promise.resolve(undefined);
  // If the database is unavailable for a moment, the changes are found later.
  const read = (before?: string) => agentsMark(database).catch(() => before);
  const look = async (last: typeof mark) => {
    const before = await last;
    const now = await read(before);
    if (before !== undefined && now !== before) for (const listener of listeners) listener();
    return now;
  };
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    if (timer === undefined) {
      mark = read();
      timer = setInterval(() => {
        mark = look(mark);
      }, LOOK_MS).unref();
    }
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  };
  return {
    follow(signal) {
      if (listeners.size >= LISTENERS_MAX) {
        throw new FlowError(
          "UNAVAILABLE",
          `${LISTENERS_MAX} clients listen to changes of the agents; that is all there may be`,
        );
      }
      return changesOf(subscribe, signal);
    },
  };
}

async function* changesOf(
  subscribe: (listener: () => void) => () => void,
  signal: AbortSignal,
): AsyncGenerator<"changed" | "idle"> {
  const waiter = createWaiter(subscribe);
  try {
    while (!signal.aborted) yield (await waiter.wait(IDLE_MS, signal)) ? "changed" : "idle";
  } finally {
    waiter.close();
  }
}
