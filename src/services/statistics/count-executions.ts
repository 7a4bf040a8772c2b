import { addDuration, addHistogram, type Histogram } from "../../platform/telemetry/histogram.ts";
import { type Database, transaction } from "../../repositories/database/database.ts";
import {
  addStatistics,
  addStepStatistics,
  deleteOldStatistics,
  type EndedExecution,
  type StatisticRow,
  type StepStatisticRow,
  takeBacklog,
  takeUncounted,
} from "../../repositories/statistics/count.ts";

/** How long statistics are kept, by the length of their rows in seconds. Days: two years are to be compared. */
export const KEPT_DAYS = { 60: 2, 3600: 35, 86400: 1_100 } as const;

/**
 * Counts executions that have ended, at most `limit`; returns how many. Any number of servers may do it at a time: each execution is
 * taken and added in one transaction, by one of them.
 */
export async function countEnded(database: Database, limit: number): Promise<number> {
  return await transaction(database, async (tx) => {
    const ended = await takeUncounted(tx, limit);
    await add(tx, ended);
    return ended.length;
  });
}

/** The same of those that had ended before there were statistics, of `limit` rows looked at; true while there are more. */
export async function countBacklog(database: Database, limit: number): Promise<boolean> {
  return await transaction(database, async (tx) => {
    const ended = await takeBacklog(tx, limit);
    await add(tx, ended ?? []);
    return ended !== undefined;
  });
}

/** Deletes what was kept for long enough, at most `limit` rows of a kind; returns how many of the kind with most. */
export async function forgetStatistics(database: Database, limit: number): Promise<number> {
  let most = 0;
  for (const [seconds, days] of Object.entries(KEPT_DAYS)) {
    most = Math.max(most, await deleteOldStatistics(database, { seconds: Number(seconds), days }, limit));
  }
  return most;
}

async function add(tx: Parameters<Parameters<typeof transaction>[1]>[0], ended: readonly EndedExecution[]) {
  const { executions, steps } = rollUp(ended);
  await addStatistics(tx, executions);
  await addStepStatistics(tx, steps);
}

interface Sum {
  completed: number;
  failed: number;
  cancelled: number;
  took: Histogram;
  waited: Histogram;
}

interface StepSum {
  runs: number;
  failed: number;
  took: Histogram;
}

/** By path and then by when a minute, an hour or a day begins, in milliseconds since 1970. */
type Sums<T> = Map<string, Map<number, T>>;

/**
 * What these executions add to statistics: one row for each playbook and time, and for each of its steps. They are added up by the shortest
 * time first, and hours and days from that: most of a thousand that end together are of a few playbooks and one minute.
 */
export function rollUp(ended: readonly EndedExecution[]): { executions: StatisticRow[]; steps: StepStatisticRow[] } {
  const minutes: Sums<Sum> = new Map();
  const hours: Sums<Map<string, StepSum>> = new Map();
  for (const { path, status, endedAt, tally, isDraft } of ended) {
    const name = isDraft === true ? undefined : COUNTED[status];
    if (name === undefined) continue;
    const sum = at(minutes, path, endedAt.getTime(), 60, noExecutions);
    sum[name] += 1;
    // When a person ends a run says nothing of how long it takes.
    if (name !== "cancelled") addDuration(sum.took, tally.durationMs);
    addHistogram(sum.waited, tally.waited);
    if (tally.steps.length === 0) continue;
    const ofHour = at(hours, path, endedAt.getTime(), 3_600, noSteps);
    for (const [step, runs, failed, took] of tally.steps) addStep(ofHour, storable(step), { runs, failed, took });
  }
  // Minutes of steps would be most of all rows.
  return {
    executions: [60, 3_600, 86_400].flatMap((seconds) =>
      rowsOf(coarser(minutes, seconds, noExecutions, addSum), seconds),
    ),
    steps: [3_600, 86_400].flatMap((seconds) => stepRowsOf(coarser(hours, seconds, noSteps, addSteps), seconds)),
  };
}

const COUNTED: Readonly<Partial<Record<EndedExecution["status"], "completed" | "failed" | "cancelled">>> = {
  COMPLETED: "completed",
  FAILED: "failed",
  CANCELLED: "cancelled",
};

const noExecutions = (): Sum => ({ completed: 0, failed: 0, cancelled: 0, took: {}, waited: {} });
const noSteps = () => new Map<string, StepSum>();

/** The sum of the playbook and the time in which this moment is, UTC. */
function at<T>(sums: Sums<T>, path: string, moment: number, seconds: number, fresh: () => T): T {
  const ofPath = sums.get(path) ?? new Map<number, T>();
  sums.set(path, ofPath);
  const begin = Math.floor(moment / (seconds * 1_000)) * seconds * 1_000;
  const sum = ofPath.get(begin) ?? fresh();
  ofPath.set(begin, sum);
  return sum;
}

/** The same by longer times. */
function coarser<T>(sums: Sums<T>, seconds: number, fresh: () => T, add: (sum: T, more: T) => void): Sums<T> {
  const longer: Sums<T> = new Map();
  for (const [path, ofPath] of sums) {
    for (const [begin, sum] of ofPath) add(at(longer, path, begin, seconds, fresh), sum);
  }
  return longer;
}

function addSum(sum: Sum, more: Sum): void {
  sum.completed += more.completed;
  sum.failed += more.failed;
  sum.cancelled += more.cancelled;
  addHistogram(sum.took, more.took);
  addHistogram(sum.waited, more.waited);
}

function addSteps(sums: Map<string, StepSum>, more: ReadonlyMap<string, StepSum>): void {
  for (const [step, sum] of more) addStep(sums, step, sum);
}

function addStep(sums: Map<string, StepSum>, step: string, { runs, failed, took }: StepSum): void {
  const sum = sums.get(step) ?? { runs: 0, failed: 0, took: {} };
  sums.set(step, sum);
  sum.runs += runs;
  sum.failed += failed;
  addHistogram(sum.took, took);
}

function rowsOf(sums: Sums<Sum>, seconds: number): StatisticRow[] {
  return [...sums].flatMap(([path, ofPath]) =>
    [...ofPath].map(([begin, { took, waited, ...counts }]) => ({
      ...{ seconds, path, at: new Date(begin).toISOString(), ...counts },
      ...{ ...columnsOf("took", took), ...columnsOf("waited", waited) },
    })),
  );
}

function stepRowsOf(sums: Sums<Map<string, StepSum>>, seconds: number): StepStatisticRow[] {
  return [...sums].flatMap(([path, ofPath]) =>
    [...ofPath].flatMap(([begin, steps]) =>
      [...steps].map(([step, { took, ...counts }]) => ({
        ...{ seconds, path, at: new Date(begin).toISOString(), step, ...counts },
        ...columnsOf("took", took),
      })),
    ),
  );
}

/** As PostgreSQL can store it. */
function storable(step: string): string {
  return step.isWellFormed() && !step.includes("\u0000") ? step : step.toWellFormed().replaceAll("\u0000", "\ufffd");
}

function columnsOf<N extends "took" | "waited">(name: N, histogram: Histogram) {
  const buckets = Object.keys(histogram).map(Number);
  return {
    [`${name}_buckets`]: buckets,
    [`${name}_counts`]: buckets.map((bucket) => histogram[bucket] ?? 0),
  } as Record<`${N}_buckets` | `${N}_counts`, number[]>;
}
