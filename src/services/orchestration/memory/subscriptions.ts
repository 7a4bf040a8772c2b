/** The changes that a watcher subscribes to: every change of an execution, or only those after which it may have ended. */
export type Watched = "moves" | "end";

/** The watchers of executions. */
export interface Subscriptions {
  /** Calls the listener at each change, or when the execution may have ended, until the returned function is called. */
  watch(executionId: string, listener: () => void, watched?: Watched): () => void;
  /** `mayHaveEnded` is false for a change that is known not to be the last. */
  notify(executionId: string, mayHaveEnded: boolean): void;
  /** Executions with a subscriber. */
  watched(): string[];
}

/** An empty list of subscriptions. Listeners must not throw. */
export function createSubscriptions(): Subscriptions {
  const listenersOf = new Map<string, Map<() => void, Watched>>();
  return {
    watch(executionId, listener, watched = "moves") {
      const listeners = listenersOf.get(executionId) ?? new Map();
      listenersOf.set(executionId, listeners);
      listeners.set(listener, watched);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0 && listenersOf.get(executionId) === listeners) listenersOf.delete(executionId);
      };
    },
    watched: () => [...listenersOf.keys()],
    notify(executionId, mayHaveEnded) {
      for (const [listener, watched] of listenersOf.get(executionId) ?? []) {
        if (mayHaveEnded || watched === "moves") listener();
      }
    },
  };
}
