import type { Clock } from "../ports/clock.ts";
import { systemClock } from "./system-clock.ts";

/** A clock that goes by the database's. */
export interface DatabaseClock extends Clock {
  /**
   * Tells what the database's clock showed, in milliseconds since 1970, and when it was asked and had answered, by {@link Clock.busy}.
   */
  heard(shownMs: number, askedAt: number, answeredAt: number): void;
}

/** It is set only where it is wrong by more than this, ms: small differences would make it go back and forth. */
const AGREES_MS = 20;

/**
 * The clock of a server: a steady one, which is set by the database's whenever that is heard. So servers whose machines differ by hours agree
 * on how long a wait is and whether a signature is old, and a machine's clock that jumps moves nothing. Until it has heard the database it
 * shows the machine's time.
 *
 * @param busy milliseconds that never go back.
 */
export function createDatabaseClock(machine: Clock = systemClock, busy = () => performance.now()): DatabaseClock {
  /** What it shows where `busy` is 0. */
  let origin = machine.now() - busy();
  return {
    ...machine,
    now: () => Math.floor(origin + busy()),
    heard(shownMs, askedAt, answeredAt) {
      // The database looked at its clock at some moment in between.
      const [least, most] = [shownMs - answeredAt, shownMs - askedAt];
      if (origin < least - AGREES_MS) origin = least;
      else if (origin > most + AGREES_MS) origin = most;
    },
  };
}
