import type { Clock } from "../ports/clock.ts";

/** Time that passes only where somebody sleeps. */
export interface VirtualClock extends Clock {
  /** Runs work that takes real time; virtual time stands still until it has ended. */
  hold<T>(work: () => Promise<T>): Promise<T>;
}

/**
 * A clock for runs that must not wait. Whenever nothing else is left to do in this process, it jumps to the moment at
 * which the first sleeper wakes: five minutes of back-off take microseconds, and the order of events is that of real time.
 */
export function createVirtualClock(startMs: number): VirtualClock {
  let now = startMs;
  let holds = 0;
  let turn: NodeJS.Immediate | undefined;
  /** In the order in which they wake. */
  const sleepers: Sleeper[] = [];

  const plan = () => {
    if (holds === 0 && sleepers.length > 0) turn ??= setImmediate(jump);
  };
  const jump = () => {
    turn = undefined;
    if (holds > 0) return;
    if (!readsFiles()) {
      const next = sleepers.shift();
      if (next === undefined) return;
      now = Math.max(now, next.at);
      next.wake();
    }
    plan();
  };

  return {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const stop = () => {
          sleepers.splice(sleepers.indexOf(sleeper), 1);
          reject(signal?.reason);
        };
        const wake = () => {
          signal?.removeEventListener("abort", stop);
          resolve();
        };
        const sleeper = { at: now + Math.max(0, ms), wake };
        signal?.addEventListener("abort", stop, { once: true });
        insert(sleepers, sleeper);
        plan();
      }),
    async hold(work) {
      holds += 1;
      try {
        return await work();
      } finally {
        holds -= 1;
        plan();
      }
    },
  };
}

interface Sleeper {
  at: number;
  wake: () => void;
}

/** After those of the same moment: who slept first wakes first. */
function insert(sleepers: Sleeper[], sleeper: Sleeper): void {
  let low = 0;
  let high = sleepers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sleepers[middle]?.at ?? 0) <= sleeper.at) low = middle + 1;
    else high = middle;
  }
  sleepers.splice(low, 0, sleeper);
}

/**
 * A run that loads a sub-playbook or a stored result is not idle although no promise of it is ready. Everything else that
 * takes real time is held.
 */
function readsFiles(): boolean {
  return process.getActiveResourcesInfo().some((resource) => resource.startsWith("FSReq"));
}
