/** Waits for a signalled change, without missing one that came between two waits. */
export interface Waiter {
  /**
   * Ends with the next change (at once when there was one since the last wait), after `ms`, or when `signal` is aborted. True
   * when there was a change.
   */
  wait(ms: number, signal?: AbortSignal): Promise<boolean>;
  /** Stops listening. */
  close(): void;
}

/** Listens from now on. `subscribe` gives the function that ends it. */
export function createWaiter(subscribe: (listener: () => void) => () => void): Waiter {
  let changed = false;
  let wake: (() => void) | undefined;
  const close = subscribe(() => {
    changed = true;
    wake?.();
  });
  return {
    close,
    async wait(ms, signal) {
      if (!changed && signal?.aborted !== true && ms > 0) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
          signal?.addEventListener("abort", wake, { once: true });
        });
        if (wake !== undefined) signal?.removeEventListener("abort", wake);
        wake = undefined;
      }
      const wasChanged = changed;
      changed = false;
      return wasChanged;
    },
  };
}
