import type { PendingQuery, Row } from "postgres";
import type { Histogram } from "../../platform/telemetry/histogram.ts";
import { patternRegex } from "../../schema/rules/access-rules.ts";
import { isPathPattern } from "../../schema/rules/execution-filter.ts";
import type { Database } from "../database/database.ts";
import { pathFilter, type Visible } from "../database/page.ts";

/** Which statistics: those of rows of one length. */
export interface StatisticsQuery extends Visible {
  /** Length of the rows that are read. */
  seconds: number;
  /** From this moment, and before that one. */
  since: Date;
  until: Date;
  /** Of one playbook, or of all that fit a pattern; undefined: all. */
  path: string | undefined;
}

/** Executions that have ended, added up. */
export interface AddedUp {
  completed: number;
  failed: number;
  cancelled: number;
  took: Histogram;
  waited: Histogram;
}

/** By buckets of this length, from 1970 on; those without executions are left out. */
export async function statisticsByTime(
  database: Database,
  query: StatisticsQuery,
  bucketSeconds: number,
): Promise<(AddedUp & { at: Date })[]> {
  const { sql } = database;
  return await sql<(AddedUp & { at: Date })[]>`
    ${addedUp(
      database,
      query,
      sql`date_bin(${bucketSeconds}::float8 * interval '1 second', at, '1970-01-01T00:00:00Z'::timestamptz)`,
    )}
    select key as at, ${sql.unsafe(SUMS)} order by key`;
}

/** By playbook: those of which most failed, or most ran, `limit` at most. */
export async function statisticsByPath(
  database: Database,
  query: StatisticsQuery,
  first: "failed" | "count",
  limit: number,
): Promise<(AddedUp & { path: string })[]> {
  const { sql } = database;
  return await sql<(AddedUp & { path: string })[]>`
    ${addedUp(database, query, sql`path`)}
    select key as path, ${sql.unsafe(SUMS)}
    order by ${first === "failed" ? sql`failed desc,` : sql``} completed + failed + cancelled desc, key
    limit ${limit}`;
}

/** SQL: what is read of what was added up; see {@link addedUp}. */
const SUMS = `completed::float8 as completed, failed::float8 as failed, cancelled::float8 as cancelled,
      coalesce(took.histogram, '{}') as took, coalesce(waited.histogram, '{}') as waited
    from counted left join took using (key) left join waited using (key)`;

type Piece = PendingQuery<Row[]>;

/** SQL: the rows that are meant, added up by a key. */
function addedUp({ sql }: Database, query: StatisticsQuery, key: Piece): Piece {
  return sql`
    with picked as materialized (
      select ${key} as key, completed, failed, cancelled, took_buckets, took_counts, waited_buckets, waited_counts
      from flow.statistic where ${meant(sql, query)}
    ), counted as materialized (
      select key, sum(completed) as completed, sum(failed) as failed, sum(cancelled) as cancelled from picked group by key
    ), took as (${histogramOf(sql, "took")}), waited as (${histogramOf(sql, "waited")})`;
}

function histogramOf(sql: Database["sql"], column: "took" | "waited"): Piece {
  return sql`
      select key, json_object_agg(bucket, n) as histogram
      from (
        select key, bucket, sum(n) as n
        from picked, ${sql.unsafe(`unnest(${column}_buckets, ${column}_counts)`)} as h (bucket, n)
        group by key, bucket
      ) as of_buckets
      group by key`;
}

/** Runs of a step, added up. */
export interface StepAddedUp {
  path: string;
  step: string;
  runs: number;
  failed: number;
  took: Histogram;
}

/** Steps of which most runs ended, `limit` at most. */
export async function statisticsOfSteps(
  { sql }: Database,
  query: StatisticsQuery,
  limit: number,
): Promise<StepAddedUp[]> {
  return await sql<StepAddedUp[]>`
    with picked as materialized (
      select path, step, runs, failed, took_buckets, took_counts from flow.step_statistic where ${meant(sql, query)}
    ), counted as materialized (
      select path, step, sum(runs) as runs, sum(failed) as failed from picked group by path, step
      order by sum(runs) desc, path, step limit ${limit}
    ), took as (
      select path, step, json_object_agg(bucket, n) as histogram
      from (
        select path, step, bucket, sum(n) as n
        from picked join counted using (path, step), unnest(took_buckets, took_counts) as h (bucket, n)
        group by path, step, bucket
      ) as of_buckets
      group by path, step
    )
    select path, step, counted.runs::float8 as runs, counted.failed::float8 as failed, coalesce(took.histogram, '{}') as took
    from counted left join took using (path, step)`;
}

function meant(sql: Database["sql"], { seconds, since, until, path, visible }: StatisticsQuery): Piece {
  const ofPath =
    path === undefined ? sql`` : isPathPattern(path) ? sql`and path ~ ${patternRegex(path)}` : sql`and path = ${path}`;
  const ofVisible = visible === undefined ? sql`` : sql`and ${pathFilter(sql, sql`path`, visible)}`;
  return sql`seconds = ${seconds} and at >= ${since} and at < ${until} ${ofPath} ${ofVisible}`;
}
