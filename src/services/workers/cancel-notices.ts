import type { StoppedIterations, StoppedWork } from "../../repositories/workers/workers.ts";
import type { CancelledCommand } from "../orchestration/rounds/types.ts";

/** What a worker must stop. */
export interface Stops {
  commands: string[];
  iterations: StoppedIterations[];
}

/** A caller that waits for what a worker must stop. */
export interface CancelListener {
  /** What is to stop, as soon as there is something; empty if there was nothing within `ms`, or the signal was aborted. */
  next(ms: number, signal: AbortSignal): Promise<Stops>;
  close(): void;
}

/**
 * Notifies workers at once what to stop. A notice without a listener is dropped: heartbeats find the cancellation in the
 * database.
 */
export interface CancelNotices {
  /** Listens from now on; notices that arrive before {@link CancelListener.next} is called are kept. */
  listen(worker: string): CancelListener;
  /**
   * Commands were reported as cancelled, or as with an iteration that was ended by hand, by this server or another: looks them up
   * and notifies the listeners. Never throws.
   */
  tell(commands: readonly CancelledCommand[]): Promise<void>;
}

interface Waiting {
  stops: Map<string, StoppedWork>;
  wake: () => void;
}

/** `stopped` returns what is to stop of the commands: notices from others are hints and may be forged. */
export function createCancelNotices(deps: {
  stopped(commandIds: readonly string[]): Promise<StoppedWork[]>;
  /** The database is unavailable; heartbeats will find the cancellations. */
  onFault(error: unknown): void;
}): CancelNotices {
  const listeners = new Map<string, Set<Waiting>>();
  return {
    listen(worker) {
      const waiting: Waiting = { stops: new Map(), wake: () => undefined };
      const all = listeners.get(worker) ?? new Set();
      listeners.set(worker, all.add(waiting));
      return {
        next: (ms, signal) => hear(waiting, ms, signal),
        close() {
          all.delete(waiting);
          if (all.size === 0 && listeners.get(worker) === all) listeners.delete(worker);
        },
      };
    },
    async tell(commands) {
      const wanted = commands.filter(({ worker }) => listeners.has(worker));
      if (wanted.length === 0) return;
      try {
        const stopped = await deps.stopped(wanted.map(({ commandId }) => commandId));
        const found = new Map(stopped.map((work) => [work.commandId, work]));
        for (const { commandId, worker } of wanted) {
          const work = found.get(commandId);
          if (work === undefined) continue;
          for (const waiting of listeners.get(worker) ?? []) {
            waiting.stops.set(commandId, work);
            waiting.wake();
          }
        }
      } catch (error) {
        deps.onFault(error);
      }
    },
  };
}

/** Commands of one execution are reported together: waits a short while for the others. */
const COMPANY_MS = 20;

async function hear(waiting: Waiting, ms: number, signal: AbortSignal): Promise<Stops> {
  if (waiting.stops.size === 0) await pause(waiting, ms, signal);
  if (waiting.stops.size > 0) await pause({ ...waiting, wake: () => undefined }, COMPANY_MS, signal);
  const found = [...waiting.stops.values()];
  waiting.stops.clear();
  return {
    commands: found.filter(({ isCancelled }) => isCancelled).map(({ commandId }) => commandId),
    iterations: found
      .filter(({ iterations }) => iterations.length > 0)
      .map(({ commandId, iterations }) => ({ commandId, iterations })),
  };
}

/** Returns when a notice wakes it, the time is over, or the signal is aborted. */
function pause(waiting: Waiting, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      waiting.wake = () => undefined;
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end, { once: true });
    waiting.wake = end;
  });
}
