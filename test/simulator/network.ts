import type { SteppedClock } from "../../src/adapters/stepped-clock.ts";
import type { Faults } from "./faults.ts";
import type { Random } from "./random.ts";

/** Messages that take time, and may be lost, doubled, and overtake each other; so may their answers. */
export interface Network {
  /**
   * Asks until there is an answer. `handle` is called for every message that arrives; undefined means that nobody was
   * there. Never resolves once the asker is dead.
   */
  ask<T>(asker: { alive: boolean }, handle: () => T | undefined): Promise<T>;
  /** Asks once; undefined when no answer came in time. */
  askOnce<T>(asker: { alive: boolean }, handle: () => T | undefined): Promise<T | undefined>;
  /** Tells somebody something, maybe. */
  tell(action: () => void): void;
}

const RESEND_MS = 400;

export function createNetwork(clock: SteppedClock, random: Random, faults: Faults): Network {
  const latency = () => (faults.happens("delayed") ? random.between(500, 8_000) : random.between(1, 40));
  const deliver = (action: () => void) => {
    const copies = faults.happens("doubled") ? 2 : 1;
    for (let copy = 0; copy < copies; copy += 1) if (!faults.happens("lost")) clock.after(latency(), action);
  };
  const send = <T>(handle: () => T | undefined, answered: (answer: T) => void) =>
    deliver(() => {
      const answer = handle();
      if (answer !== undefined) deliver(() => answered(answer));
    });

  return {
    tell: deliver,
    ask: (asker, handle) =>
      new Promise((resolve) => {
        let isAnswered = false;
        const attempt = () => {
          if (isAnswered || !asker.alive) return;
          send(handle, (answer) => {
            if (isAnswered || !asker.alive) return;
            isAnswered = true;
            takeBack();
            resolve(answer);
          });
          takeBack = clock.after(RESEND_MS, attempt);
        };
        let takeBack = () => {};
        attempt();
      }),
    askOnce: (asker, handle) =>
      new Promise((resolve) => {
        const takeBack = clock.after(2 * RESEND_MS, () => asker.alive && resolve(undefined));
        send(handle, (answer) => {
          takeBack();
          if (asker.alive) resolve(answer);
        });
      }),
  };
}
