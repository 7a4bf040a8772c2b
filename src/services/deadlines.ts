import type { Clock } from "../ports/clock.ts";

/** How often due ones are looked for, in milliseconds: one timer for all of them, and only while there are some. */
const TICK_MS = 25;

/** Calls that are to be made unless they are cancelled, which almost all of them are. */
export interface Deadlines {
  /** Calls `due` after about `ms`; the function that is returned cancels that. */
  add(ms: number, due: () => void): () => void;
}

/** Deadlines on a clock. A timer and an abort signal for each of thousands of requests a second would cost more than this. */
export function createDeadlines(clock: Clock): Deadlines {
  const open = new Set<{ at: number; due: () => void }>();
  let ticking = false;
  const tick = async () => {
    ticking = true;
    while (open.size > 0) {
      await clock.sleep(TICK_MS);
      const now = clock.now();
      for (const entry of open) {
        if (entry.at > now) continue;
        open.delete(entry);
        entry.due();
      }
    }
    ticking = false;
  };
  return {
    add(ms, due) {
      const entry = { at: clock.now() + ms, due };
      open.add(entry);
      if (!ticking) void tick();
      return () => void open.delete(entry);
    },
  };
}
