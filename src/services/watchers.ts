/** Who wants to know when an execution moves. */
export interface Watchers {
  /** Calls the listener at each move, until the function that is returned is called. */
  watch(executionId: string, listener: () => void): () => void;
  tell(executionId: string): void;
}

/** An empty list of watchers. Listeners must not throw. */
export function createWatchers(): Watchers {
  const watchers = new Map<string, Set<() => void>>();
  return {
    watch(executionId, listener) {
      const listeners = watchers.get(executionId) ?? new Set();
      watchers.set(executionId, listeners);
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0 && watchers.get(executionId) === listeners) watchers.delete(executionId);
      };
    },
    tell(executionId) {
      for (const listener of watchers.get(executionId) ?? []) listener();
    },
  };
}
