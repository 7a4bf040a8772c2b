import type { Clock } from "../../../ports/clock.ts";

/** How exact deadlines are, in milliseconds: one timer for all of them, and only while there are some. */
const TICK_MS = 25;
/**
 * Ticks that one timer sleeps through where no call is due before: a worker that waits for commands has a deadline in half a minute, and
 * looking for it 40 times a second was a third of what an idle server did.
 */
const SLEEP_TICKS_MAX = 10;
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
  /** The timer that runs: since when, until which tick, and what ends it early. */
  let sleep = { before: 0, until: 0, wake: new AbortController() };
  const slept = () => Math.min(Math.max(clock.now() - sleep.before, 0), TICK_MAX_MS);
  const nextTick = () => {
    const first = Math.floor(time / TICK_MS) + 1;
    for (let tick = first; tick < first + SLEEP_TICKS_MAX; tick += 1) if ((ticks.get(tick)?.size ?? 0) > 0) return tick;
    return first + SLEEP_TICKS_MAX - 1;
  };
  const run = async () => {
    ticking = true;
    while (open > 0) {
      const until = nextTick();
      sleep = { before: clock.now(), until, wake: new AbortController() };
      const ms = until * TICK_MS - time;
      const { wake } = sleep;
      const isWhole = await clock.sleep(ms, wake.signal).then(
        () => true,
        () => false,
      );
      const last = Math.floor(time / TICK_MS);
      time += isWhole ? Math.max(slept(), ms) : slept();
      // A call that adds another one counts from here.
      sleep.before = clock.now();
      for (let tick = last + 1; tick * TICK_MS <= time; tick += 1) callDue(tick);
    }
    ticking = false;
  };
  return {
    add(ms, due) {
      // A tick that is over is not looked at again.
      const now = ticking ? time + slept() : time;
      const tick = Math.max(Math.ceil((now + ms) / TICK_MS), Math.floor(time / TICK_MS) + 1);
      const entry = { due };
      const calls = ticks.get(tick) ?? new Set();
      ticks.set(tick, calls.add(entry));
      open += 1;
      if (!ticking) void run();
      else if (tick < sleep.until) sleep.wake.abort();
      return () => {
        if (calls.delete(entry)) open -= 1;
      };
    },
  };
}
