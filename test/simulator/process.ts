import type { Clock } from "../../src/ports/clock.ts";
import type { SteppedClock } from "../../src/testing/stepped-clock.ts";
import type { FaultPlan, Faults } from "./faults.ts";
import type { Random } from "./random.ts";

/** What all virtual processes share. */
export interface World {
  clock: SteppedClock;
  random: Random;
  faults: Faults;
}

/** One life of a process: from its start to its crash. */
export interface Process {
  alive: boolean;
  /**
   * An await point: the process may die here, and then never goes on; or stand still, and then go on as if nothing had
   * been.
   */
  gate(): Promise<void>;
  /** Calls when it dies; the answer takes that back. */
  onDeath(call: () => void): () => void;
  /** Something that it does after a time, if it lives and does not stand still then. */
  after(ms: number, action: () => void): void;
  /** Something that it does again and again; one that stands still misses its turns. */
  repeat(everyMs: number, action: () => void): void;
  /** The system's clock as this process sees it. Both ends of a sleep are await points. */
  clock: Clock;
}

/** How a process may break. */
export interface Weakness {
  crash?: keyof FaultPlan;
  freeze?: keyof FaultPlan;
  /** How long it stands still, from and to. */
  freezeMs?: readonly [number, number];
  /** Milliseconds by which its clock is wrong at the moment. */
  offset?(): number;
  /** No sleep is shorter: a busy process is late. */
  shortestSleepMs?: number;
}

/** Starts a process. */
export function startProcess({ clock, random, faults }: World, weakness: Weakness): Process {
  const { crash, freeze, freezeMs = [1_000, 5_000], offset = () => 0, shortestSleepMs = 0 } = weakness;
  const mourners = new Set<() => void>();
  let frozenUntil = 0;
  const process: Process = {
    alive: true,
    async gate() {
      if (process.alive && crash !== undefined && faults.happens(crash)) {
        process.alive = false;
        for (const mourner of mourners) mourner();
      }
      if (process.alive && freeze !== undefined && faults.happens(freeze)) {
        frozenUntil = clock.now() + random.between(...freezeMs);
      }
      while (process.alive && frozenUntil > clock.now()) await clock.sleep(frozenUntil - clock.now());
      // A promise of its own: one for all would hold on to all that ever waited for it.
      if (!process.alive) await new Promise<never>(() => {});
    },
    onDeath(call) {
      mourners.add(call);
      return () => void mourners.delete(call);
    },
    after(ms, action) {
      clock.after(ms, () => {
        if (process.alive && frozenUntil <= clock.now()) action();
      });
    },
    repeat(everyMs, action) {
      clock.after(everyMs, () => {
        if (!process.alive) return;
        if (frozenUntil <= clock.now()) action();
        process.repeat(everyMs, action);
      });
    },
    clock: {
      now: () => Math.floor(clock.now()) + offset(),
      // No run of a seed may depend on how fast the machine is.
      busy: () => 0,
      async sleep(ms, signal) {
        await process.gate();
        await clock.sleep(Math.max(ms, shortestSleepMs), signal);
        await process.gate();
      },
    },
  };
  return process;
}
