/** What a watcher wants to hear of: every move of an execution, or those after which it may have ended. */
export type Watched = "moves" | "end";

/** Who wants to know when an execution moves. */
export interface Watchers {
  /** Calls the listener at each move, or when it may have ended, until the function that is returned is called. */
  watch(executionId: string, listener: () => void, watched?: Watched): () => void;
  /** `mayHaveEnded` is false for a move that is known not to be its last. */
  tell(executionId: string, mayHaveEnded: boolean): void;
  /** Executions that somebody watches. */
  watched(): string[];
}

/** An empty list of watchers. Listeners must not throw. */
export function createWatchers(): Watchers {
  const watchers = new Map<string, Map<() => void, Watched>>();
  return {
    watch(executionId, listener, watched = "moves") {
      const listeners = watchers.get(executionId) ?? new Map();
      watchers.set(executionId, listeners);
      listeners.set(listener, watched);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0 && watchers.get(executionId) === listeners) watchers.delete(executionId);
      };
    },
    watched: () => [...watchers.keys()],
    tell(executionId, mayHaveEnded) {
      for (const [listener, watched] of watchers.get(executionId) ?? []) {
        if (mayHaveEnded || watched === "moves") listener();
      }
    },
  };
}
