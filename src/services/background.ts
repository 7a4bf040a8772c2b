import { setMaxListeners } from "node:events";
import type { Clock } from "../ports/clock.ts";

/** Work that is done again and again. */
export interface BackgroundWork {
  /** For logs. */
  name: string;
  /** Milliseconds between the end of one run and the beginning of the next; spread by a tenth. */
  intervalMs: number;
  /** One run. What it throws is told and does not end the loop. */
  runOnce(): Promise<unknown> | unknown;
}

/**
 * Runs background work until the function that is returned is called; that resolves when the runs under way have ended. Each
 * piece has its own loop, so that a slow one holds up no other.
 */
export function startBackground(
  work: readonly BackgroundWork[],
  deps: { clock: Clock; random(): number; onError(name: string, error: unknown): void },
): () => Promise<void> {
  const stop = new AbortController();
  // Every loop listens to it. Node takes eleven for a leak.
  setMaxListeners(0, stop.signal);
  const loop = async ({ name, intervalMs, runOnce }: BackgroundWork) => {
    while (!stop.signal.aborted) {
      try {
        await runOnce();
      } catch (error) {
        deps.onError(name, error);
      }
      const pauseMs = intervalMs * (0.9 + 0.2 * deps.random());
      await deps.clock.sleep(pauseMs, stop.signal).catch(() => undefined);
    }
  };
  const loops = work.map(loop);
  return async () => {
    stop.abort();
    await Promise.all(loops);
  };
}
