import type { Clock } from "../../../ports/clock.ts";

/** Interval at which due calls are looked for, in milliseconds: one timer for all of them, and only while there are some. */
const TICK_MS = 25;
/**
 * Most time that one tick counts for: a clock that jumps by an hour neither ends all waits at once nor makes them an hour
 * longer.
 */
const TICK_MAX_MS = 1_000;

/** Calls to be made unless they are cancelled, as almost all of them are. */
export interface Deadlines {
  /** Calls `due` after about `ms`; the returned function cancels that. */
  add(ms: number, due: () => void): () => void;
}

/**
 * Deadlines on a clock. A timer and an abort signal for each of thousands of requests a second would cost more than this: the
 * calls of one tick stand together, so that neither adding, nor cancelling, nor a tick looks at the others.
 */
export function createDeadlines(clock: Clock): Deadlines {
  /** By the number of their tick. */
  const ticks = new Map<number, Set<{ due: () => void }>>();
  let open = 0;
  /** Milliseconds of all ticks so far. */
  let time = 0;
  let ticking = false;
  const callDue = (tick: number) => {
    const calls = ticks.get(tick);
    ticks.delete(tick);
    for (const entry of calls ?? []) {
      calls?.delete(entry);
      open -= 1;
      entry.due();
    }
  };
  const run = async () => {
    ticking = true;
    while (open > 0) {
      const before = clock.now();
      await clock.sleep(TICK_MS);
      const last = Math.floor(time / TICK_MS);
      time += Math.min(Math.max(clock.now() - before, TICK_MS), TICK_MAX_MS);
      for (let tick = last + 1; tick * TICK_MS <= time; tick += 1) callDue(tick);
    }
    ticking = false;
  };
  return {
    add(ms, due) {
      // A tick that is over is not looked at again.
      const tick = Math.max(Math.ceil((time + ms) / TICK_MS), Math.floor(time / TICK_MS) + 1);
      const entry = { due };
      const calls = ticks.get(tick) ?? new Set();
      ticks.set(tick, calls.add(entry));
      open += 1;
      if (!ticking) void run();
      return () => {
        if (calls.delete(entry)) open -= 1;
      };
    },
  };
}
