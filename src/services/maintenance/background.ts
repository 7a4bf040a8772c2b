import { setMaxListeners } from "node:events";
import type { Clock } from "../../ports/clock.ts";

/** Work that is done again and again. */
export interface BackgroundWork {
  /** For logs. */
  name: string;
  /** Milliseconds between the end of one run and the beginning of the next; spread by a tenth. */
  intervalMs: number;
  /**
   * Resolves when there may be something to do, and when the signal is aborted; awaited before each run. Default: always. A timer of 25 ms
   * would wake an idle server 40 times a second.
   */
  until?(signal: AbortSignal): Promise<void>;
  /** One run. An error is logged and does not end the loop. */
  runOnce(): Promise<unknown> | unknown;
  /** Asked after a run: there is more to do, and the next one begins after {@link SOON_MS}. Default: never. */
  isBehind?(): boolean;
}

/**
 * Work of which one run does at most `limit` items and returns their number: after a full run there may be more, and the next
 * one begins soon.
 */
export function repeatWhileFull(
  name: string,
  intervalMs: number,
  limit: number,
  runOnce: (limit: number) => Promise<number>,
): BackgroundWork {
  let done = 0;
  return {
    name,
    intervalMs,
    async runOnce() {
      done = await runOnce(limit);
    },
    isBehind: () => done >= limit,
  };
}

/** Pause of work that is behind, in milliseconds: others get their turn. */
const SOON_MS = 100;

/**
 * Runs background work until the function that is returned is called; that resolves when the runs under way have ended. Each
 * piece has its own loop, so that a slow one does not delay the others.
 */
export function startBackground(
  work: readonly BackgroundWork[],
  deps: { clock: Clock; random(): number; onError(name: string, error: unknown): void },
): () => Promise<void> {
  const stop = new AbortController();
  // Every loop listens to it. Node takes eleven for a leak.
  setMaxListeners(0, stop.signal);
  const loop = async ({ name, intervalMs, runOnce, isBehind = () => false, until }: BackgroundWork) => {
    while (!stop.signal.aborted) {
      await until?.(stop.signal);
      if (stop.signal.aborted) return;
      let isSoon = false;
      try {
        await runOnce();
        isSoon = isBehind();
      } catch (error) {
        deps.onError(name, error);
      }
      const pauseMs = (isSoon ? Math.min(SOON_MS, intervalMs) : intervalMs) * (0.9 + 0.2 * deps.random());
      await deps.clock.sleep(pauseMs, stop.signal).catch(() => undefined);
    }
  };
  const loops = work.map(loop);
  return async () => {
    stop.abort();
    await Promise.all(loops);
  };
}
