import { addHistogram, percentilesOf } from "../../platform/telemetry/histogram.ts";
import type { Database } from "../../repositories/database/database.ts";
import type { Visible } from "../../repositories/database/page.ts";
import {
  type AddedUp,
  type StatisticsQuery,
  statisticsByPath,
  statisticsByTime,
  statisticsOfSteps,
} from "../../repositories/statistics/read.ts";
import {
  BUCKET_SECONDS,
  BUCKETS_MAX,
  type BucketName,
  type StatsAnswer,
  type Totals,
} from "../../schema/api/overview.ts";
import { FlowError } from "../../schema/words/errors.ts";

/** What statistics are asked for. */
export interface StatisticsRequest extends Visible {
  path?: string;
  /** RFC 3339. Default: a day before `until`. */
  since?: string;
  /** Default: now. */
  until?: string;
  bucket: BucketName;
  /** Also by playbook, in this order. */
  paths?: "failed" | "slowest" | "count";
}

/** Reads statistics. */
export type Statistics = (request: StatisticsRequest) => Promise<StatsAnswer>;

const DAY_MS = 86_400_000;
/** Playbooks and steps of an answer. */
const LISTED_MAX = 100;
/** The slowest of them are looked for among so many that ran most. */
const LOOKED_AT_MAX = 1_000;

/**
 * Executions over time, as they ended, added up from the rollup. Throws `FlowError` INVALID_INPUT for a time that is not one, or has too many buckets.
 */
export function createStatistics(deps: { database: Database; now(): number }): Statistics {
  const { database } = deps;
  return async (request) => {
    const width = BUCKET_SECONDS[request.bucket] * 1_000;
    const { since, until } = rangeOf(request, width, deps.now());
    const query: StatisticsQuery = {
      seconds: ROWS_OF[request.bucket],
      since: new Date(since),
      until: new Date(until),
      path: request.path,
      visible: request.visible,
    };
    const [found, steps, paths] = await Promise.all([
      statisticsByTime(database, query, width / 1_000),
      stepsOf(database, query),
      request.paths === undefined ? undefined : pathsOf(database, query, request.paths),
    ]);
    const total: AddedUp = { completed: 0, failed: 0, cancelled: 0, took: {}, waited: {} };
    for (const bucket of found) addTo(total, bucket);
    const known = new Map(found.map((bucket) => [bucket.at.getTime(), bucket]));
    const buckets: StatsAnswer["buckets"] = [];
    for (let at = since; at < until; at += width) {
      const { success_rate: _, ...rest } = totalsOf(known.get(at) ?? EMPTY);
      buckets.push({ at: new Date(at).toISOString(), ...rest });
    }
    return {
      bucket: request.bucket,
      since: new Date(since).toISOString(),
      until: new Date(until).toISOString(),
      buckets,
      total: totalsOf(total),
      steps,
      ...(paths !== undefined && { paths }),
    };
  };
}

const EMPTY: AddedUp = { completed: 0, failed: 0, cancelled: 0, took: {}, waited: {} };

/** Length of the rows of which a bucket is made, in seconds. */
const ROWS_OF: Readonly<Record<BucketName, number>> = { "1m": 60, "5m": 60, "1h": 3_600, "1d": 86_400 };

/** From the beginning of the first bucket to the end of the last one, in milliseconds since 1970. */
function rangeOf(request: StatisticsRequest, width: number, now: number): { since: number; until: number } {
  const end = request.until === undefined ? now : Date.parse(request.until);
  const begin = request.since === undefined ? end - DAY_MS : Date.parse(request.since);
  if (begin >= end) throw refused("since", "must be before 'until'");
  const since = Math.floor(begin / width) * width;
  const until = Math.ceil(end / width) * width;
  const count = (until - since) / width;
  if (count > BUCKETS_MAX) {
    const message = `gives ${count} buckets of ${request.bucket}: ask for ${BUCKETS_MAX} at most, or for longer ones`;
    throw refused("since", message);
  }
  return { since, until };
}

function refused(path: string, message: string): FlowError {
  return new FlowError("INVALID_INPUT", `The query is not valid: '${path}' ${message}`, {
    detail: { errors: [{ path, message }] },
  });
}

function addTo(total: AddedUp, more: AddedUp): void {
  total.completed += more.completed;
  total.failed += more.failed;
  total.cancelled += more.cancelled;
  addHistogram(total.took, more.took);
  addHistogram(total.waited, more.waited);
}

function totalsOf({ completed, failed, cancelled, took, waited }: AddedUp): Totals {
  return {
    counts: { COMPLETED: completed, FAILED: failed, CANCELLED: cancelled },
    success_rate: completed + failed === 0 ? null : completed / (completed + failed),
    duration: percentilesOf(took),
    waiting: percentilesOf(waited),
  };
}

/** The slowest first. Steps are counted by whole hours, or days. */
async function stepsOf(database: Database, query: StatisticsQuery): Promise<StatsAnswer["steps"]> {
  const seconds = Math.max(3_600, query.seconds);
  const since = new Date(Math.floor(query.since.getTime() / (seconds * 1_000)) * seconds * 1_000);
  const found = await statisticsOfSteps(database, { ...query, seconds, since }, LOOKED_AT_MAX);
  return found
    .map(({ path, step, runs, failed, took }) => ({
      path,
      step,
      count: runs,
      failed,
      p95: percentilesOf(took)?.p95 ?? 0,
    }))
    .sort((left, right) => right.p95 - left.p95 || right.count - left.count)
    .slice(0, LISTED_MAX);
}

async function pathsOf(
  database: Database,
  query: StatisticsQuery,
  order: NonNullable<StatisticsRequest["paths"]>,
): Promise<NonNullable<StatsAnswer["paths"]>> {
  const first = order === "failed" ? "failed" : "count";
  const limit = order === "slowest" ? LOOKED_AT_MAX : LISTED_MAX;
  const found = await statisticsByPath(database, query, first, limit);
  const paths = found.map(({ path, ...sums }) => ({ path, ...totalsOf(sums) }));
  if (order === "slowest") paths.sort((left, right) => (right.duration?.p95 ?? 0) - (left.duration?.p95 ?? 0));
  return paths.slice(0, LISTED_MAX);
}
