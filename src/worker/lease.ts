import type { Moment } from "../ports/clock.ts";

/** Whether this worker may assume that it still owns what it runs. */
export interface Lease {
  /** The server has answered a heartbeat that was sent then: what runs was renewed, no earlier than that, for so long. */
  renewed(sentAt: Moment, leaseMs: number): void;
  /**
   * Undefined while the last good heartbeat is younger than the lease. Else resolves with the next good one, or when the signal
   * aborts: what was lost meanwhile is aborted by then.
   */
  held(signal: AbortSignal): Promise<void> | undefined;
}

/**
 * The worker's lease: no new work starts for a claim that another worker may have taken because this process, its network or
 * its server stopped for a while. Nothing is held back before the first heartbeat. `onLost` is called when something starts to
 * wait.
 */
export function createLease(now: () => Moment, onLost: () => void): Lease {
  let last: { sentAt: Moment; leaseMs: number } | undefined;
  const waiting = new Set<() => void>();
  const isHeld = () => {
    if (last === undefined) return false;
    const { steady, wall } = now();
    // Whichever says that more time has passed: one stands still in a sleep, the other may be set back.
    return Math.max(steady - last.sentAt.steady, wall - last.sentAt.wall) < last.leaseMs;
  };
  return {
    renewed(sentAt, leaseMs) {
      last = { sentAt, leaseMs };
      if (!isHeld()) return;
      for (const go of waiting) go();
      waiting.clear();
    },
    held(signal) {
      if (isHeld() || signal.aborted) return undefined;
      if (waiting.size === 0) onLost();
      return new Promise((resolve) => {
        const go = () => {
          waiting.delete(go);
          signal.removeEventListener("abort", go);
          resolve();
        };
        waiting.add(go);
        signal.addEventListener("abort", go, { once: true });
      });
    },
  };
}
