import { isTerminal } from "../../../engine/state/state.ts";
import type { Marker } from "../../../schema/rules/event-record.ts";
import type { LiveExecution } from "./load-execution.ts";

/** An execution that this process works with. At most one round at a time works on it. */
export interface CachedExecution {
  readonly executionId: string;
  /** Its state in memory; null while it is not loaded, or after it proved to be outdated. */
  live: LiveExecution | null;
  /** No such execution exists (yet). */
  missing: boolean;
  /** A round works on it: its state is ahead of what is written. */
  busy: boolean;
  loading: Promise<void> | null;
  /** Rows to be written with its next events. */
  markers: Marker[];
  /** Milliseconds; when it was used last. */
  usedAt: number;
}

/** Executions kept in memory beside those that rounds work on. An execution of ten steps takes some 20 kB. */
const KEPT_MAX = 2_000;
/** An execution without activity for this long is evicted: it is loaded again at its next use. */
const IDLE_MS = 30_000;
/**
 * Time to keep an execution that has ended: it is only read, mostly right after its end. At a thousand a second, 30 s of them
 * would be 600 MB.
 */
const ENDED_MS = 1_000;
/**
 * Ended executions that are kept. Where hundreds end in a second, what survives until then is copied by every collection of young objects: a
 * fifth of the time of a server that started ten thousand at once went into that.
 */
const ENDED_MAX = 256;

/** The executions in memory. */
export interface ExecutionCache {
  /** The entry; created if missing. */
  entry(executionId: string): CachedExecution;
  peek(executionId: string): CachedExecution | undefined;
  /** Loads its execution unless that is under way or done. Rejects with the store's error. */
  load(cached: CachedExecution): Promise<void>;
  /** Forgets the state: the next use loads it. */
  drop(cached: CachedExecution): void;
  /** The round that worked on it has ended. */
  free(cached: CachedExecution): void;
  /**
   * Evicts idle executions. One that a job waits for is not idle, however many there are: it would be loaded again before that job, and
   * evicted again before its turn.
   */
  sweep(isAwaited: (executionId: string) => boolean): void;
  all(): Iterable<CachedExecution>;
}

/** Keeps executions, at most `keptMax` of those that nothing works on. `load` returns the execution, or undefined if it does not exist. */
export function createExecutionCache(
  load: (executionId: string) => Promise<LiveExecution | undefined>,
  now: () => number,
  keptMax = KEPT_MAX,
): ExecutionCache {
  const entries = new Map<string, CachedExecution>();
  const isIdle = (cached: CachedExecution) => !cached.busy && cached.loading === null && cached.markers.length === 0;
  /** Executions that have ended, in the order of their ends; some are gone, some were used since. */
  const ended: string[] = [];
  const hasEnded = ({ live }: CachedExecution) => live !== null && isTerminal(live.state.status);
  const forgetEnded = () => {
    for (const id of ended.splice(0, Math.max(0, ended.length - ENDED_MAX))) {
      const cached = entries.get(id);
      if (cached !== undefined && isIdle(cached) && hasEnded(cached)) entries.delete(id);
    }
  };

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
      // An execution that is missing now may be created later: look again next time.
      if (cached.missing) drop(cached);
      if (!hasEnded(cached)) return;
      ended.push(cached.executionId);
      forgetEnded();
    },
    sweep(isAwaited) {
      const at = now();
      let over = entries.size - keptMax;
      for (const [id, cached] of entries) {
        if (!isIdle(cached) || isAwaited(id)) continue;
        const isOver = over > 0 || cached.missing || cached.live === null;
        const keepMs = hasEnded(cached) ? ENDED_MS : IDLE_MS;
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
