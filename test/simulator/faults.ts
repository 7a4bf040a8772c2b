import type { SteppedClock } from "../../src/adapters/stepped-clock.ts";
import type { Random } from "./random.ts";

/** How likely each fault is in one run, each time it could happen. */
export interface FaultPlan {
  /** A message, or its answer, is lost. */
  lost: number;
  doubled: number;
  /** A message is on its way for seconds, so that later ones overtake it. */
  delayed: number;
  /** A worker dies at an await point. */
  crash: number;
  /** A worker stands still for longer than its lease, and then goes on as if nothing had been. */
  freeze: number;
  /** The server dies before it has committed what it was told. */
  beforeCommit: number;
  /** The server dies after the commit, before it has answered. */
  afterCommit: number;
  /** The clock of the server or of a worker jumps, tried once every ten seconds. */
  jump: number;
}

/** The faults of one run, which end so that the run can. */
export interface Faults {
  readonly plan: FaultPlan;
  /** True when a fault of that kind is to happen here. */
  happens(kind: keyof FaultPlan): boolean;
  /** How many there were. */
  readonly counts: Record<keyof FaultPlan, number>;
}

/** After this time nothing breaks any more: what is left must then end. */
const FAULTS_UNTIL_MS = 180_000;
/** Faults of one run: a run that is hit at every step would only be long. */
const FAULTS_MAX = 60;

/** Chooses which kinds of fault this run has, and how many of them; one run in eight has none. */
export function planFaults(random: Random, clock: SteppedClock): Faults {
  const startedAt = clock.now();
  const isCalm = random.chance(1 / 8);
  const share = (most: number) => (isCalm || random.chance(0.4) ? 0 : most * random.next());
  const plan: FaultPlan = {
    lost: share(0.3),
    doubled: share(0.4),
    delayed: share(0.2),
    crash: share(0.06),
    freeze: share(0.02),
    beforeCommit: share(0.04),
    afterCommit: share(0.04),
    jump: share(0.6),
  };
  return watchFaults(plan, random, () => clock.now() - startedAt < FAULTS_UNTIL_MS);
}

/** No faults at all. */
export const NO_FAULTS: FaultPlan = {
  lost: 0,
  doubled: 0,
  delayed: 0,
  crash: 0,
  freeze: 0,
  beforeCommit: 0,
  afterCommit: 0,
  jump: 0,
};

/** Faults by a given plan, as long as `mayHappen`. */
export function watchFaults(plan: FaultPlan, random: Random, mayHappen: () => boolean): Faults {
  const counts = { ...NO_FAULTS };
  let total = 0;
  return {
    plan,
    counts,
    happens(kind) {
      const share = plan[kind];
      if (share === 0 || total >= FAULTS_MAX || !random.chance(share) || !mayHappen()) return false;
      counts[kind] += 1;
      total += 1;
      return true;
    },
  };
}
