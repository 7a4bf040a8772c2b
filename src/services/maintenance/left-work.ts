/** Work that is done when a look has found a reason, by the names of the reasons. */
export interface LeftWorkLooks<R extends string> {
  /** Looks once; what waits for a reason that is there goes on. Rejects as the look does. */
  look(): Promise<void>;
  /** Looks once more after so many milliseconds, beside the looks that are made anyway. */
  lookIn(ms: number): void;
  /** Resolves when a look finds this reason, or has found it since the last call, and when the signal is aborted. */
  until(reason: R, signal: AbortSignal): Promise<void>;
  /** No further look is made by itself. */
  end(): void;
}

/** When looks are made by themselves. */
export interface LookTimes {
  /** Calls once after so many milliseconds; the answer takes it back. */
  after(ms: number, action: () => void): () => void;
  /** Milliseconds since 1970. */
  now(): number;
  /** The time between two looks that are made anyway: what is due later is left to those. */
  everyMs: number;
  /** A look that was made by itself has failed. */
  onError(error: unknown): void;
}

/** What a look has found, and in how many milliseconds there will be the next thing; null: unknown. */
type Found<R extends string> = Readonly<Record<R, boolean>> & { readonly nextMs?: number | null };

/** Least time between two looks that are made by themselves, ms: what is due at times close to each other is done together. */
const SPACING_MS = 20;

/**
 * One look for several works: of an idle server each would ask its database again and again, to find nothing. `keeps` are reasons of which the
 * end is one too: what has become of them is looked at once more after they are gone. What a look finds to be due before the next one gets a
 * look of its own at its time: nothing is late by the time between two looks, and where nothing is due no look is added.
 */
export function createLeftWorkLooks<R extends string>(
  find: () => Promise<Found<R>>,
  keeps: readonly R[] = [],
  times?: LookTimes,
): LeftWorkLooks<R> {
  const due = new Set<R>();
  const waiting = new Map<R, () => void>();
  let before: Readonly<Partial<Record<R, boolean>>> = Object.fromEntries(
    keeps.map((reason) => [reason, true]),
  ) as never;
  const timer = createTimer(times, () => look());
  const look = async () => {
    const { nextMs, ...reasons } = await find();
    const found = reasons as unknown as Readonly<Record<R, boolean>>;
    for (const reason of Object.keys(found) as R[]) {
      if (!found[reason] && !(keeps.includes(reason) && before[reason] === true)) continue;
      due.add(reason);
      waiting.get(reason)?.();
    }
    before = found;
    if (nextMs != null) timer.in(nextMs);
  };
  return {
    look,
    lookIn: timer.in,
    end: timer.end,
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

/** One timer, for the soonest of the moments that it was set to. */
function createTimer(times: LookTimes | undefined, look: () => Promise<void>) {
  let set: { at: number; cancel(): void } | undefined;
  let isOver = false;
  return {
    in(ms: number) {
      if (times === undefined || isOver || ms >= times.everyMs) return;
      const waitMs = Math.max(SPACING_MS, ms);
      const at = times.now() + waitMs;
      if (set !== undefined && set.at <= at) return;
      set?.cancel();
      const cancel = times.after(waitMs, () => {
        set = undefined;
        look().catch(times.onError);
      });
      set = { at, cancel };
    },
    end() {
      isOver = true;
      set?.cancel();
    },
  };
}
