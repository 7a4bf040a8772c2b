/** Work that is done when a look has found a reason, by the names of the reasons. */
export interface LeftWorkLooks<R extends string> {
  /** Looks once; what waits for a reason that is there goes on. Rejects as the look does. */
  look(): Promise<void>;
  /** Resolves when a look finds this reason, or has found it since the last call, and when the signal is aborted. */
  until(reason: R, signal: AbortSignal): Promise<void>;
}

/**
 * One look for several works: of an idle server each would ask its database again and again, to find nothing. `keeps` are reasons of which the
 * end is one too: what has become of them is looked at once more after they are gone.
 */
export function createLeftWorkLooks<R extends string>(
  find: () => Promise<Readonly<Record<R, boolean>>>,
  keeps: readonly R[] = [],
): LeftWorkLooks<R> {
  const due = new Set<R>();
  const waiting = new Map<R, () => void>();
  let before: Readonly<Partial<Record<R, boolean>>> = Object.fromEntries(
    keeps.map((reason) => [reason, true]),
  ) as never;
  return {
    async look() {
      const found = await find();
      for (const reason of Object.keys(found) as R[]) {
        if (!found[reason] && !(keeps.includes(reason) && before[reason] === true)) continue;
        due.add(reason);
        waiting.get(reason)?.();
      }
      before = found;
    },
    async until(reason, signal) {
      if (!due.has(reason) && !signal.aborted) {
        await new Promise<void>((resolve) => {
          const end = () => {
            signal.removeEventListener("abort", end);
            waiting.delete(reason);
            resolve();
          };
          waiting.set(reason, end);
          signal.addEventListener("abort", end, { once: true });
        });
      }
      due.delete(reason);
    },
  };
}
