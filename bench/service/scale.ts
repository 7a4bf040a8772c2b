/** How much of everything a run measures. */
export interface Scale {
  /** B1: workflows of a round, and rounds, of which the middle one counts. */
  workflows: number;
  rounds: number;
  /** B2: runs of the forty steps. */
  singles: number;
  /** B3: items of a loop, and how often it runs. */
  fans: readonly { items: number; runs: number }[];
  /** B4: steps of the chain, iterations of the loop. */
  chainSteps: number;
  iterations: number;
  /** B5: seconds of steady arrivals, and of each rate on the way to the knee. */
  arrivalSeconds: number;
  rampSeconds: number;
  /** B6: bytes of a result, and how many workflows of ten steps have such results. */
  payloads: readonly { bytes: number; workflows: number }[];
  /** Seconds for which a service is watched that does nothing. */
  idleSeconds: number;
  /** Statements on the way to the database's own limit. */
  statements: number;
}

/** A run that counts: about ten minutes, peers included. */
export const FULL: Scale = {
  workflows: 1_000,
  rounds: 3,
  singles: 50,
  fans: [
    { items: 100, runs: 15 },
    { items: 1_000, runs: 5 },
    { items: 10_000, runs: 3 },
  ],
  chainSteps: 1_000,
  iterations: 100_000,
  arrivalSeconds: 60,
  rampSeconds: 6,
  payloads: [
    { bytes: 1_600, workflows: 300 },
    { bytes: 16_000, workflows: 150 },
    { bytes: 160_000, workflows: 40 },
  ],
  idleSeconds: 30,
  statements: 2_000,
};

/** A look in about two minutes. */
export const QUICK: Scale = {
  workflows: 200,
  rounds: 1,
  singles: 15,
  fans: [
    { items: 100, runs: 5 },
    { items: 1_000, runs: 2 },
  ],
  chainSteps: 300,
  iterations: 20_000,
  arrivalSeconds: 10,
  rampSeconds: 3,
  payloads: [
    { bytes: 1_600, workflows: 60 },
    { bytes: 16_000, workflows: 30 },
    { bytes: 160_000, workflows: 10 },
  ],
  idleSeconds: 10,
  statements: 800,
};
