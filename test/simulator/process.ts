import type { SteppedClock } from "../../src/adapters/stepped-clock.ts";
import type { Faults } from "./faults.ts";
import type { Random } from "./random.ts";

/** One life of a worker's process: from its start to its crash. */
export interface Process {
  alive: boolean;
  frozenUntil: number;
  /**
   * An await point: the process may die here, and then never goes on; or stand still, and then go on as if nothing had
   * been.
   */
  gate(): Promise<void>;
}

/** Longer than a lease, and shorter than the minute that a cursor's claim may take before it counts as failed. */
const FREEZE_MS = [5_000, 50_000] as const;

const NEVER = new Promise<never>(() => {});

/** Starts a process. `died` is called when it crashes. */
export function startProcess(clock: SteppedClock, random: Random, faults: Faults, died: () => void): Process {
  const process: Process = {
    alive: true,
    frozenUntil: 0,
    async gate() {
      if (process.alive && faults.happens("crash")) {
        process.alive = false;
        died();
      }
      if (process.alive && faults.happens("freeze")) process.frozenUntil = clock.now() + random.between(...FREEZE_MS);
      while (process.alive && process.frozenUntil > clock.now()) await clock.sleep(process.frozenUntil - clock.now());
      if (!process.alive) await NEVER;
    },
  };
  return process;
}
