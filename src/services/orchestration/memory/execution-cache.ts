import { isTerminal } from "../../../engine/state/state.ts";
import type { Marker } from "../rounds/change-set.ts";
import type { LiveExecution } from "./load-execution.ts";

/** An execution that this process has to do with. At most one round at a time works on it. */
export interface Lane {
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
  /** Who waits until it is not busy. */
  waiting: (() => void)[];
}

/** Executions kept in memory beside those that are worked on. One of ten steps takes some 20 kB. */
const KEPT_MAX = 2_000;
/** An execution that nothing happened to for this long is forgotten: it is loaded again when something does. */
const IDLE_MS = 30_000;
/** One that has ended is only looked at, mostly right then. At a thousand a second, 30 s of them would be 600 MB. */
const ENDED_MS = 1_000;

/** The executions that are in memory. */
export interface Lanes {
  /** The lane, made when there is none. */
  of(executionId: string): Lane;
  known(executionId: string): Lane | undefined;
  /** Loads its execution unless that is under way or done. Rejects with the store's error. */
  load(lane: Lane): Promise<void>;
  /** Forgets the state: the next use loads it. */
  drop(lane: Lane): void;
  /** The round that worked on it has ended. */
  free(lane: Lane): void;
  /** Resolves when no round works on it: what one has decided and not yet written may still be taken back. */
  whenFree(lane: Lane): Promise<void>;
  /** Forgets what is idle. */
  sweep(): void;
  all(): Iterable<Lane>;
}

/** Keeps lanes. `load` gives the execution, undefined when there is none. */
export function createLanes(
  load: (executionId: string) => Promise<LiveExecution | undefined>,
  now: () => number,
): Lanes {
  const lanes = new Map<string, Lane>();
  const isIdle = (lane: Lane) => !lane.busy && lane.loading === null && lane.markers.length === 0;

  return {
    of(executionId) {
      let lane = lanes.get(executionId);
      if (lane === undefined) {
        lane = emptyLane(executionId, now());
        lanes.set(executionId, lane);
      }
      lane.usedAt = now();
      return lane;
    },
    known: (executionId) => lanes.get(executionId),
    load(lane) {
      if (lane.live !== null || lane.missing) return Promise.resolve();
      lane.loading ??= load(lane.executionId)
        .then((live) => {
          lane.live = live ?? null;
          lane.missing = live === undefined;
        })
        .finally(() => {
          lane.loading = null;
        });
      return lane.loading;
    },
    drop,
    free(lane) {
      lane.busy = false;
      lane.usedAt = now();
      // What there was not may come to be: ask again next time.
      if (lane.missing) drop(lane);
      for (const go of lane.waiting.splice(0)) go();
    },
    async whenFree(lane) {
      while (lane.busy) await new Promise<void>((resolve) => lane.waiting.push(resolve));
    },
    sweep() {
      const at = now();
      let over = lanes.size - KEPT_MAX;
      for (const [id, lane] of lanes) {
        if (!isIdle(lane)) continue;
        const isOver = over > 0 || lane.missing || lane.live === null;
        const keepMs = lane.live !== null && isTerminal(lane.live.state.status) ? ENDED_MS : IDLE_MS;
        if (!isOver && lane.usedAt > at - keepMs) continue;
        lanes.delete(id);
        over -= 1;
      }
    },
    all: () => lanes.values(),
  };
}

function emptyLane(executionId: string, usedAt: number): Lane {
  return { executionId, live: null, missing: false, busy: false, loading: null, markers: [], usedAt, waiting: [] };
}

function drop(lane: Lane): void {
  lane.live = null;
  lane.missing = false;
}
