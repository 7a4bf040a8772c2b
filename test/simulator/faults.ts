import type { SteppedClock } from "../../src/testing/stepped-clock.ts";
import type { Random } from "./random.ts";

/** How likely each fault is in one run, each time it could happen. */
export interface FaultPlan {
  /** A call of a server, or its answer, is lost. */
  lost: number;
  /** A call comes twice, perhaps to two servers. */
  doubled: number;
  /** A call or an answer is on its way for seconds, so that later ones overtake it. */
  delayed: number;
  /** A worker dies at an await point. */
  crash: number;
  /** A worker stands still for longer than its lease, and then goes on as if nothing had been. */
  freeze: number;
  /** A server dies at an await point: before a statement, while it is under way, or after it. */
  serverCrash: number;
  /** A server stands still for seconds. */
  serverFreeze: number;
  /** The store takes a statement back because another one was in its way. */
  storeBusy: number;
  /** The connection to the store breaks before the statement has arrived. */
  storeAway: number;
  /** It breaks after the statement was carried out. */
  answerAway: number;
  /** It breaks, and the statement is carried out seconds later. */
  storeLate: number;
  /** A statement takes seconds. */
  storeSlow: number;
  /** A notice of the broker is lost. */
  noticeLost: number;
  /** It comes twice. */
  noticeDoubled: number;
  /** It comes seconds later. */
  noticeDelayed: number;
  /** A caller reports what is not true. */
  noticeForged: number;
  /** The clock of a server or of a worker jumps, tried once every ten seconds. */
  jump: number;
}

/** The faults of one run, which end so that the run can. */
export interface Faults {
  readonly plan: FaultPlan;
  /** True when a fault of that kind is to happen here. */
  happens(kind: keyof FaultPlan): boolean;
  /** How many there were. */
  readonly counts: Record<keyof FaultPlan, number>;
  /** From now on nothing breaks any more. */
  end(): void;
}

/** After this time nothing breaks any more: what is left must then end. */
const FAULTS_UNTIL_MS = 120_000;
/** Faults of one run: a run that is hit at every step would only be long. */
const FAULTS_MAX = 60;

/** Most that a fault may be likely. */
const MOST: FaultPlan = {
  lost: 0.2,
  doubled: 0.3,
  delayed: 0.2,
  crash: 0.04,
  freeze: 0.01,
  serverCrash: 0.03,
  serverFreeze: 0.005,
  storeBusy: 0.15,
  storeAway: 0.06,
  answerAway: 0.06,
  storeLate: 0.03,
  storeSlow: 0.06,
  noticeLost: 0.8,
  noticeDoubled: 0.5,
  noticeDelayed: 0.5,
  noticeForged: 0.2,
  jump: 0.5,
};

/** No faults at all. */
export const NO_FAULTS: FaultPlan = planOf(() => 0);

/** Chooses which kinds of fault this run has, and how many of them. One run in eight has none, one only those of the broker. */
export function planFaults(random: Random, clock: SteppedClock): Faults {
  const startedAt = clock.now();
  const weather = random.between(1, 8);
  const isOut = (kind: keyof FaultPlan) => weather === 1 || (weather === 2 && !kind.startsWith("notice"));
  const plan = planOf((kind) => (isOut(kind) || random.chance(0.6) ? 0 : MOST[kind] * random.next()));
  return watchFaults(plan, random, () => clock.now() - startedAt < FAULTS_UNTIL_MS);
}

/** Faults by a given plan, as long as `mayHappen`. */
export function watchFaults(plan: FaultPlan, random: Random, mayHappen: () => boolean): Faults {
  const counts = { ...NO_FAULTS };
  let total = 0;
  let hasEnded = false;
  return {
    plan,
    counts,
    end: () => {
      hasEnded = true;
    },
    happens(kind) {
      const share = plan[kind];
      if (share === 0 || hasEnded || total >= FAULTS_MAX || !random.chance(share) || !mayHappen()) return false;
      counts[kind] += 1;
      total += 1;
      return true;
    },
  };
}

function planOf(share: (kind: keyof FaultPlan) => number): FaultPlan {
  const kinds = Object.keys(MOST) as (keyof FaultPlan)[];
  return Object.fromEntries(kinds.map((kind) => [kind, share(kind)])) as unknown as FaultPlan;
}
