import assert from "node:assert/strict";
import { type FaultPlan, NO_FAULTS } from "./faults.ts";
import { commandStories } from "./invariants/commands.ts";
import { assertInvariants } from "./invariants/invariants.ts";
import { rootsWithLoss } from "./invariants/losses.ts";
import { PLAYBOOKS, type Simulated } from "./playbooks.ts";
import { simulate } from "./simulate.ts";

/** A run that broke an invariant. */
export interface Failure {
  seed: number;
  playbook: string;
  message: string;
}

/** Seeds that follow one another, both ends included. */
export interface SeedRange {
  first: number;
  last: number;
}

/** What many runs came to. */
export interface Summary {
  runs: number;
  failures: Failure[];
  /** Faults of all runs, by kind. */
  faults: Record<keyof FaultPlan, number>;
  /** Claims after the first: a worker was lost, or taken for lost. */
  reclaims: number;
  /** Executions with a command that failed after too many lost claims. */
  lost: number;
}

/** Failures after which the rest is not worth the time. */
const FAILURES_MAX = 5;

/** The playbook that a seed runs when none is named. */
export function playbookOf(seed: number): Simulated {
  const playbook = PLAYBOOKS[seed % PLAYBOOKS.length];
  assert.ok(playbook);
  return playbook;
}

/** Runs a seed and checks everything. Throws what fails. */
export async function runSeed(seed: number, playbook: Simulated, summary?: Summary): Promise<void> {
  const run = await simulate(playbook, seed);
  await assertInvariants(run);
  if (summary === undefined) return;
  summary.runs += 1;
  for (const kind of Object.keys(run.faults.counts) as (keyof FaultPlan)[]) {
    summary.faults[kind] += run.faults.counts[kind];
  }
  summary.lost += rootsWithLoss(run).size;
  for (const { claims } of commandStories(run.tables.store)) summary.reclaims += Math.max(0, claims - 1);
}

/** Runs every seed of these ranges whose number, divided by `threads`, leaves `index`. */
export async function runSeeds(ranges: readonly SeedRange[], index: number, threads: number): Promise<Summary> {
  const summary: Summary = { runs: 0, failures: [], faults: { ...NO_FAULTS }, reclaims: 0, lost: 0 };
  for (const { first, last } of ranges) {
    for (let seed = first; seed <= last && summary.failures.length < FAILURES_MAX; seed += 1) {
      if (seed % threads !== index) continue;
      const playbook = playbookOf(seed);
      try {
        await runSeed(seed, playbook, summary);
      } catch (error) {
        const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
        summary.failures.push({ seed, playbook: playbook.name, message });
      }
    }
  }
  return summary;
}
