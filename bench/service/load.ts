import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

/** What a load gave. */
export interface Load {
  /** From the first start to the last end, ms. */
  ms: number;
  /** How long each one took, ms, in the order of ending. */
  latencies: number[];
}

/**
 * Closed loop: runs `count` times, `inFlight` at a time, the next as soon as one ends. After a failure no more are started; it
 * rejects with the first one when all have ended, so that nothing is running while the next thing is measured.
 */
export async function closedLoop(count: number, inFlight: number, run: () => Promise<unknown>): Promise<Load> {
  const latencies: number[] = [];
  const start = performance.now();
  const failures: unknown[] = [];
  let started = 0;
  const runLoop = async () => {
    while (started < count && failures.length === 0) {
      started += 1;
      const begin = performance.now();
      await run().catch((error: unknown) => failures.push(error));
      latencies.push(performance.now() - begin);
    }
  };
  await Promise.all(Array.from({ length: Math.min(inFlight, count) }, runLoop));
  if (failures.length > 0) throw failures[0];
  return { ms: performance.now() - start, latencies };
}

/**
 * Runs once to warm up and then `count` times, one after the other, but begins no run after `withinMs` in all. How long each took, ms: the
 * first counts only where it is the only one.
 */
export async function timesWithin(count: number, withinMs: number, run: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  const start = performance.now();
  do {
    const begin = performance.now();
    await run();
    times.push(performance.now() - begin);
  } while (times.length <= count && performance.now() - start < withinMs);
  return times.length > 1 ? times.slice(1) : times;
}

/** What arrivals at a steady rate gave. */
export interface Arrivals extends Load {
  /** Too many were open at once: the rest did not arrive, and `latencies` are of those before. */
  overrun: boolean;
}

/**
 * Open loop: `perSecond` starts a second for `seconds`, however long each takes. A latency counts from the moment at which
 * the start was due, not from when it could be made: a stall shows in every arrival that it delayed. More than `openMax`
 * open at once, by default those of two seconds, are a queue that only grows. Rejects as {@link closedLoop} does.
 */
export async function openLoop(
  perSecond: number,
  seconds: number,
  run: () => Promise<unknown>,
  openMax = perSecond * 2,
): Promise<Arrivals> {
  const latencies: number[] = [];
  const total = Math.round(perSecond * seconds);
  const runs: Promise<unknown>[] = [];
  const failures: unknown[] = [];
  const start = performance.now();
  let overrun = false;
  for (let index = 0; index < total && !overrun && failures.length === 0; index += 1) {
    const due = start + (index * 1_000) / perSecond;
    // Those that are due already start in one go.
    if (due > performance.now()) await sleep(due - performance.now());
    const ended = run().then(
      () => latencies.push(performance.now() - due),
      (error: unknown) => failures.push(error),
    );
    runs.push(ended);
    overrun = runs.length - latencies.length > openMax;
  }
  await Promise.all(runs);
  if (failures.length > 0) throw failures[0];
  return { ms: performance.now() - start, latencies, overrun };
}
