import { isTerminal } from "../../../engine/state/state.ts";
import type { Json } from "../../../schema/words/json.ts";
import type { LiveExecution } from "./load-execution.ts";

/** A row for people, beside the events. */
export interface Marker {
  type: "batch.accepted" | "batch.completed";
  at: number;
  context: Record<string, Json>;
}

/** An execution that this process has to do with. At most one round at a time works on it. */
export interface CachedExecution {
  readonly executionId: string;
  /** Its state in memory; null while it is not loaded, or after it turned out to be out of date. */
  live: LiveExecution | null;
  /** There is no such execution (so far). */
  missing: boolean;
  /** A round works on it: its state is ahead of what is written. */
  busy: boolean;
  loading: Promise<void> | null;
  /** Rows that go along with its next events. */
  markers: Marker[];
  /** Milliseconds; when it was used last. */
  usedAt: number;
}

/** Executions kept in memory beside those that are worked on. One of ten steps takes some 20 kB. */
const KEPT_MAX = 2_000;
/** An execution that nothing happened to for this long is forgotten: it is loaded again when something does. */
const IDLE_MS = 30_000;
/** One that has ended is only looked at, mostly right then. At a thousand a second, 30 s of them would be 600 MB. */
const ENDED_MS = 1_000;

/** The executions that are in memory. */
export interface ExecutionCache {
  /** The entry, made when there is none. */
  entry(executionId: string): CachedExecution;
  peek(executionId: string): CachedExecution | undefined;
  /** Loads its execution unless that is under way or done. Rejects with the store's error. */
  load(cached: CachedExecution): Promise<void>;
  /** Forgets the state: the next use loads it. */
  drop(cached: CachedExecution): void;
  /** The round that worked on it has ended. */
  free(cached: CachedExecution): void;
  /** Forgets what is idle. */
  sweep(): void;
  all(): Iterable<CachedExecution>;
}

/** Keeps executions. `load` gives the execution, undefined when there is none. */
export function createExecutionCache(
  load: (executionId: string) => Promise<LiveExecution | undefined>,
  now: () => number,
): ExecutionCache {
  const entries = new Map<string, CachedExecution>();
  const isIdle = (cached: CachedExecution) => !cached.busy && cached.loading === null && cached.markers.length === 0;

  return {
    entry(executionId) {
      let cached = entries.get(executionId);
      if (cached === undefined) {
        cached = emptyEntry(executionId, now());
        entries.set(executionId, cached);
      }
      cached.usedAt = now();
      return cached;
    },
    peek: (executionId) => entries.get(executionId),
    load(cached) {
      if (cached.live !== null || cached.missing) return Promise.resolve();
      cached.loading ??= load(cached.executionId)
        .then((live) => {
          cached.live = live ?? null;
          cached.missing = live === undefined;
        })
        .finally(() => {
          cached.loading = null;
        });
      return cached.loading;
    },
    drop,
    free(cached) {
      cached.busy = false;
      cached.usedAt = now();
      // What there was not may come to be: ask again next time.
      if (cached.missing) drop(cached);
    },
    sweep() {
      const at = now();
      let over = entries.size - KEPT_MAX;
      for (const [id, cached] of entries) {
        if (!isIdle(cached)) continue;
        const isOver = over > 0 || cached.missing || cached.live === null;
        const keepMs = cached.live !== null && isTerminal(cached.live.state.status) ? ENDED_MS : IDLE_MS;
        if (!isOver && cached.usedAt > at - keepMs) continue;
        entries.delete(id);
        over -= 1;
      }
    },
    all: () => entries.values(),
  };
}

function emptyEntry(executionId: string, usedAt: number): CachedExecution {
  return { executionId, live: null, missing: false, busy: false, loading: null, markers: [], usedAt };
}

function drop(cached: CachedExecution): void {
  cached.live = null;
  cached.missing = false;
}
