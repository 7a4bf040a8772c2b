import type { Clock } from "../ports/clock.ts";

/**
 * Work done in one go before timers, signals and sockets get their turn. Tools that answer at once (`noop`) would otherwise
 * run 100,000 iterations as one chain of promises, during which no signal arrives and nothing is drawn or sent.
 */
const TURN_MS = 20;

/** Turns of 20 ms: work that finds one over waits for the next. */
export interface EventLoopTurns {
  isOver(): boolean;
  next(): Promise<void>;
}

/** Begins the first turn. */
export function createEventLoopTurns(clock: Pick<Clock, "busy">): EventLoopTurns {
  const busy = () => clock.busy?.() ?? performance.now();
  let began = busy();
  let next: Promise<void> | undefined;
  return {
    isOver: () => busy() - began > TURN_MS,
    next() {
      next ??= new Promise((resolve) => {
        setImmediate(() => {
          began = busy();
          next = undefined;
          resolve();
        });
      });
      return next;
    },
  };
}
