import type { ExecutionState } from "../../../engine/state/state.ts";
import type { Json } from "../../../schema/words/json.ts";

/** The end of an execution as its row has it. */
export interface Ending {
  path: string;
  status: ExecutionState["status"];
  /** As shown to people. Null without one. */
  result: Json;
  error: ExecutionState["error"];
}

/** The changes that a watcher subscribes to: every change of an execution, or only those after which it may have ended. */
export type Watched = "moves" | "end";

/** Called after a change; with the end, where this process has written it. */
export type MoveListener = (ending?: Ending) => void;

/** The watchers of executions. */
export interface Subscriptions {
  /** Calls the listener at each change, or when the execution may have ended, until the returned function is called. */
  watch(executionId: string, listener: MoveListener, watched?: Watched): () => void;
  /** `mayHaveEnded` is false for a change that is known not to be the last. */
  notify(executionId: string, mayHaveEnded: boolean, ending?: Ending): void;
  /** Executions with a subscriber. */
  watched(): string[];
  /** Resolves as soon as an execution has a subscriber, or the signal is aborted. */
  whenWatched(signal: AbortSignal): Promise<void>;
}

/** An empty list of subscriptions. Listeners must not throw. */
export function createSubscriptions(): Subscriptions {
  const listenersOf = new Map<string, Map<MoveListener, Watched>>();
  const waiting = new Set<() => void>();
  return {
    watch(executionId, listener, watched = "moves") {
      const listeners = listenersOf.get(executionId) ?? new Map();
      listenersOf.set(executionId, listeners);
      listeners.set(listener, watched);
      for (const goOn of waiting) goOn();
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0 && listenersOf.get(executionId) === listeners) listenersOf.delete(executionId);
      };
    },
    watched: () => [...listenersOf.keys()],
    whenWatched(signal) {
      if (listenersOf.size > 0 || signal.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const goOn = () => {
          waiting.delete(goOn);
          signal.removeEventListener("abort", goOn);
          resolve();
        };
        waiting.add(goOn);
        signal.addEventListener("abort", goOn);
      });
    },
    notify(executionId, mayHaveEnded, ending) {
      for (const [listener, watched] of listenersOf.get(executionId) ?? []) {
        if (mayHaveEnded || watched === "moves") listener(ending);
      }
    },
  };
}
