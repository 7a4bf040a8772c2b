import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../ports/clock.ts";

/**
 * Time that moves only on request. Sleepers wake in the order of their times, and those with equal times in the order in which
 * they started to sleep, so that a run is the same every time and takes no longer than its work.
 */
export interface SteppedClock extends Clock {
  /** Calls `action` once, after `ms` milliseconds. The answer takes it back. */
  after(ms: number, action: () => void): () => void;
  /** Lets go on what can without time moving, then moves time to the next wake-up. False when nothing waits. */
  step(): Promise<boolean>;
  /** Moves time forward by `ms` milliseconds, with all that happens on the way. */
  advance(ms: number): Promise<void>;
  /** Runs work that takes real time; {@link runUntil} lets no time pass until it has ended, or `signal` releases it. */
  hold<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /**
   * Runs until `work` has settled, and answers as it does. Whenever nothing else is left to do, time jumps to the moment at
   * which the first sleeper wakes: five minutes of back-off take microseconds. Where `work` waits for something that is neither
   * on this clock nor held, that is waited for; a sleep beside it is over at once all the same.
   */
  runUntil<T>(work: Promise<T>): Promise<T>;
}

/**
 * A stepped clock that stands at `startMs`, milliseconds since 1970 (UTC). `busy` is how long work has taken, for those to whom
 * it must take some; default: none.
 */
export function createSteppedClock(startMs: number, busy: () => number = () => 0): SteppedClock {
  const timers = createTimers();
  let now = startMs;
  let announce: () => void = () => undefined;
  const holds = createHolds(() => announce());

  const after = (ms: number, action: () => void) => {
    const timer: Timer = { at: now + Math.max(0, ms), serial: 0, action };
    timers.add(timer);
    announce();
    return () => {
      timer.action = undefined;
    };
  };

  const fireNext = (untilMs: number) => {
    const timer = timers.takeUntil(untilMs);
    if (timer === undefined) return false;
    now = Math.max(now, timer.at);
    timer.action?.();
    return true;
  };

  const step = async () => {
    await settle();
    return fireNext(Number.POSITIVE_INFINITY);
  };

  /** Resolves with the next timer, and with the end of held work. */
  const change = () =>
    new Promise<void>((resolve) => {
      announce = resolve;
    });

  return {
    now: () => now,
    busy,
    after,
    step,
    sleep: (ms, signal) => sleepBy(after, ms, signal),
    async advance(ms) {
      const until = now + ms;
      do await settle();
      while (fireNext(until));
      now = until;
    },
    hold: holds.hold,
    async runUntil(work) {
      let isOver = false;
      const end = () => {
        isOver = true;
      };
      const over = work.then(end, end);
      for (;;) {
        await settle();
        if (isOver) return await work;
        if (readsFiles()) continue;
        if (holds.any() || !fireNext(Number.POSITIVE_INFINITY)) await Promise.race([over, change()]);
      }
    },
  };
}

function sleepBy(after: SteppedClock["after"], ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      takeBack();
      reject(signal?.reason);
    };
    const takeBack = after(ms, () => {
      signal?.removeEventListener("abort", stop);
      resolve();
    });
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Work that takes real time. `onRelease` is called at the end of each. */
function createHolds(onRelease: () => void) {
  let held = 0;
  return {
    any: () => held > 0,
    async hold<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
      let isHeld = true;
      const release = () => {
        if (isHeld) held -= 1;
        isHeld = false;
        onRelease();
      };
      held += 1;
      signal?.addEventListener("abort", release, { once: true });
      try {
        return await work();
      } finally {
        signal?.removeEventListener("abort", release);
        release();
      }
    },
  };
}

/**
 * Runs every promise reaction that is due: the event loop comes round only when none is left. Twice, because work that yields
 * meanwhile (batches until the next turn) comes back in the second round. Nothing may yield by elapsed time (`busy`): on a slow
 * machine that is any number of times, and the clock would move with work left to do.
 */
async function settle(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

/**
 * A run that loads a sub-playbook or a stored result is not idle although no promise of it is ready. All else that takes real
 * time is held.
 */
function readsFiles(): boolean {
  return process.getActiveResourcesInfo().some((resource) => /^(FSReq|CloseReq)/.test(resource));
}

interface Timer {
  at: number;
  /** Order of timers of the same time. */
  serial: number;
  /** Undefined: taken back. */
  action: (() => void) | undefined;
}

/** Timers by time: a binary heap, since a simulation has hundreds waiting and takes them one by one. */
function createTimers() {
  const heap: Timer[] = [];
  let serial = 0;
  const isBefore = (left: Timer, right: Timer) =>
    left.at < right.at || (left.at === right.at && left.serial < right.serial);

  const sinkLast = () => {
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      const left = heap[child];
      const right = heap[child + 1];
      if (left !== undefined && right !== undefined && isBefore(right, left)) child += 1;
      const least = heap[child];
      if (least === undefined || !isBefore(least, last)) break;
      heap[index] = least;
      index = child;
    }
    heap[index] = last;
  };

  return {
    add(timer: Timer) {
      serial += 1;
      timer.serial = serial;
      let index = heap.push(timer) - 1;
      while (index > 0) {
        const above = (index - 1) >> 1;
        const parent = heap[above];
        if (parent === undefined || isBefore(parent, timer)) break;
        heap[index] = parent;
        index = above;
      }
      heap[index] = timer;
    },
    /** The next timer that was not taken back, if its time has come by `untilMs`. */
    takeUntil(untilMs: number): Timer | undefined {
      for (let first = heap[0]; first !== undefined; first = heap[0]) {
        if (first.action !== undefined && first.at > untilMs) return undefined;
        sinkLast();
        if (first.action !== undefined) return first;
      }
      return undefined;
    },
  };
}
