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

/** Deadlines on a clock. A timer and an abort signal for each of thousands of requests a second would cost more than this. */
export function createDeadlines(clock: Clock): Deadlines {
  const open = new Set<{ at: number; due: () => void }>();
  /** Milliseconds of all ticks so far. */
  let time = 0;
  let ticking = false;
  const tick = async () => {
    ticking = true;
    while (open.size > 0) {
      const before = clock.now();
      await clock.sleep(TICK_MS);
      time += Math.min(Math.max(clock.now() - before, TICK_MS), TICK_MAX_MS);
      for (const entry of open) {
        if (entry.at > time) continue;
        open.delete(entry);
        entry.due();
      }
    }
    ticking = false;
  };
  return {
    add(ms, due) {
      const entry = { at: time + ms, due };
      open.add(entry);
      if (!ticking) void tick();
      return () => void open.delete(entry);
    },
  };
}
