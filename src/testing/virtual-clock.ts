import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../ports/clock.ts";
import { createSteppedClock } from "./stepped-clock.ts";

/** Time that passes only while all work sleeps, beside work that takes real time. */
export interface VirtualClock extends Clock {
  /** Runs work that takes real time; virtual time stands still until it has ended, or `signal` tells it to. */
  hold<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /**
   * Runs until `work` has settled and answers as it does. Whenever nothing else is left to do, time jumps to the moment
   * at which the first sleeper wakes: five minutes of back-off take microseconds.
   */
  runUntil<T>(work: Promise<T>): Promise<T>;
}

/** A virtual clock that stands at `startMs`, milliseconds since 1970 (UTC). */
export function createVirtualClock(startMs: number): VirtualClock {
  const stepped = createSteppedClock(startMs);
  let holds = 0;
  let announce: () => void = () => undefined;
  const change = () =>
    new Promise<void>((resolve) => {
      announce = resolve;
    });

  return {
    now: () => stepped.now(),
    sleep(ms, signal) {
      const slept = stepped.sleep(ms, signal);
      announce();
      return slept;
    },
    async hold(work, signal) {
      let isHeld = true;
      const release = () => {
        if (isHeld) holds -= 1;
        isHeld = false;
        announce();
      };
      holds += 1;
      signal?.addEventListener("abort", release, { once: true });
      try {
        return await work();
      } finally {
        signal?.removeEventListener("abort", release);
        release();
      }
    },
    async runUntil(work) {
      let isOver = false;
      const end = () => {
        isOver = true;
      };
      const over = work.then(end, end);
      for (;;) {
        await nextTurn();
        if (isOver) return await work;
        if (readsFiles()) continue;
        if (holds > 0 || !(await stepped.step())) await Promise.race([over, change()]);
      }
    },
  };
}

/**
 * A run that loads a sub-playbook or a stored result is not idle although no promise of it is ready. All else that takes
 * real time is held.
 */
function readsFiles(): boolean {
  return process.getActiveResourcesInfo().some((resource) => /^(FSReq|CloseReq)/.test(resource));
}
