/**
 * How many commands a worker may take; one whose iterations run at once counts as more. A slot is free, promised to a claim that
 * was sent and not answered, or taken by a command. A command that waits for a sub-playbook gives its slot back meanwhile:
 * otherwise parents that wait for children could take all slots, and the children would never run. When its child has ended it
 * goes on at once, whatever the number of free slots, so that for a moment there may be more commands than slots; until that is
 * over nothing is claimed. So it is with the last command of an answer, which may count as more than there were slots left.
 */
export interface Slots {
  /** Slots that are neither taken nor promised; negative while there are more commands than slots. */
  free(): number;
  promise(count: number): void;
  unpromise(count: number): void;
  /** Default: one. */
  take(count?: number): void;
  giveBack(count?: number): void;
  /** Slots that are taken. */
  taken(): number;
  /** Resolves when a slot is free; rejects with the signal's reason when it aborts. */
  untilFree(signal: AbortSignal): Promise<void>;
}

/** `capacity` free slots. */
export function createSlots(capacity: number): Slots {
  let taken = 0;
  let promised = 0;
  let wake = () => {};
  const free = () => capacity - taken - promised;
  const changed = () => {
    if (free() > 0) wake();
  };
  return {
    free,
    promise(count) {
      promised += count;
    },
    unpromise(count) {
      promised -= count;
      changed();
    },
    take(count = 1) {
      taken += count;
    },
    giveBack(count = 1) {
      taken -= count;
      changed();
    },
    taken: () => taken,
    untilFree: (signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) {
          reject(signal.reason);
          return;
        }
        const stop = () => {
          wake = () => {};
          reject(signal.reason);
        };
        wake = () => {
          wake = () => {};
          signal.removeEventListener("abort", stop);
          resolve();
        };
        signal.addEventListener("abort", stop, { once: true });
        changed();
      }),
  };
}
