import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../../ports/clock.ts";

/** How long a server decides before timers and sockets have their turn, milliseconds. One more decision may follow. */
const TURN_MS = 20;

/** Turns of 20 ms for decisions: one that finds its turn over waits for the event loop to come round. */
export interface Turns {
  isOver(): boolean;
  /** The event loop has come round: a turn begins. */
  begin(): void;
  next(): Promise<void>;
}

/** Begins the first turn. */
export function createTurns(clock: Pick<Clock, "busy">): Turns {
  const busy = () => clock.busy?.() ?? performance.now();
  let began = busy();
  const begin = () => {
    began = busy();
  };
  return {
    isOver: () => busy() - began > TURN_MS,
    begin,
    async next() {
      await setImmediate();
      begin();
    },
  };
}
