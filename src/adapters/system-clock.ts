import type { Clock, Moment } from "../ports/clock.ts";

/** The longest timer there is (2^31 − 1 ms, 24.8 days); a longer one would fire at once. */
const TIMER_MAX_MS = 2_147_483_647;

/** The clock of the machine. Sleeps and timers of more than 24.8 days end then. */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const stop = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(
        () => {
          signal?.removeEventListener("abort", stop);
          resolve();
        },
        Math.min(ms, TIMER_MAX_MS),
      );
      signal?.addEventListener("abort", stop, { once: true });
    }),
  timer(ms, action) {
    const timer = setTimeout(action, Math.min(ms, TIMER_MAX_MS));
    return () => clearTimeout(timer);
  },
};

/** This moment. The threads of a process agree on it. */
export function moment(): Moment {
  return { steady: Number(process.hrtime.bigint() / 1_000_000n), wall: Date.now() };
}
