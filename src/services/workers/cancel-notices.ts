import type { CancelledCommand } from "../orchestration/rounds/types.ts";

/** A caller that waits for the commands a worker must stop. */
export interface CancelListener {
  /** Commands to stop, as soon as there are some; empty if there were none within `ms`, or the signal was aborted. */
  next(ms: number, signal: AbortSignal): Promise<string[]>;
  close(): void;
}

/**
 * Notifies workers at once which commands to stop. A notice without a listener is dropped: heartbeats find the cancellation in
 * the database.
 */
export interface CancelNotices {
  /** Listens from now on; notices that arrive before {@link CancelListener.next} is called are kept. */
  listen(worker: string): CancelListener;
  /** Commands were reported as cancelled, by this server or another: looks them up and notifies the listeners. Never throws. */
  tell(commands: readonly CancelledCommand[]): Promise<void>;
}

interface Waiting {
  cancelled: Set<string>;
  wake: () => void;
}

/** `cancelled` returns those of the commands that are cancelled: notices from others are hints and may be forged. */
export function createCancelNotices(deps: {
  cancelled(commandIds: readonly string[]): Promise<string[]>;
  /** The database is unavailable; heartbeats will find the cancellations. */
  onFault(error: unknown): void;
}): CancelNotices {
  const listeners = new Map<string, Set<Waiting>>();
  return {
    listen(worker) {
      const waiting: Waiting = { cancelled: new Set(), wake: () => undefined };
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
        const cancelled = new Set(await deps.cancelled(wanted.map(({ commandId }) => commandId)));
        for (const { commandId, worker } of wanted) {
          if (!cancelled.has(commandId)) continue;
          for (const waiting of listeners.get(worker) ?? []) {
            waiting.cancelled.add(commandId);
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

async function hear(waiting: Waiting, ms: number, signal: AbortSignal): Promise<string[]> {
  if (waiting.cancelled.size === 0) await pause(waiting, ms, signal);
  if (waiting.cancelled.size > 0) await pause({ ...waiting, wake: () => undefined }, COMPANY_MS, signal);
  const cancelled = [...waiting.cancelled];
  waiting.cancelled.clear();
  return cancelled;
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
