import type { EndTally } from "../../ports/execution-store.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database, Transaction } from "../database/database.ts";
import { uncountedExecution } from "../tables/statistic.ts";

/*
 * How executions get into statistics: each is taken from where it waits and added in one transaction, so it counts once, whichever server dies
 * meanwhile.
 */

const ENDED = columnsOf(uncountedExecution, ["path", "status", "endedAt", "tally"]);

/** An execution that has ended. A draft's counts nowhere: its figures would be taken for those of what is registered. */
export type EndedExecution = RowOf<typeof ENDED> & { isDraft?: boolean };

/** Takes the oldest executions that are not counted yet, at most `limit`. Others that count at the same time get other ones. */
export async function takeUncounted({ sql }: Transaction, limit: number): Promise<EndedExecution[]> {
  return await sql<EndedExecution[]>`
    with taken as materialized (
      select execution_id from flow.uncounted_execution
      order by execution_id limit ${limit}
      for update skip locked
    )
    delete from flow.uncounted_execution as u where execution_id in (select execution_id from taken)
    returning ${ENDED(sql)}, exists (
      select from flow.execution as e where e.execution_id = u.execution_id and e.version = 0) as "isDraft"`;
}

/**
 * The next executions that had ended before there were statistics, from the rows that are left, of `limit` looked at; undefined after the
 * last one, none while another server is at it, which holds the row.
 */
export async function takeBacklog({ sql }: Transaction, limit: number): Promise<EndedExecution[] | undefined> {
  const [place] = await sql<{ executionId: string; endedBefore: Date }[]>`
    select execution_id as "executionId", ended_before as "endedBefore" from flow.statistic_backlog
    limit 1 for update skip locked`;
  if (place === undefined) {
    const [other] = await sql`select from flow.statistic_backlog limit 1`;
    return other && [];
  }
  const rows = await sql<(Omit<EndedExecution, "tally"> & { executionId: string; durationMs: number })[]>`
    select execution_id as "executionId", path, status, ended_at as "endedAt",
      extract(epoch from ended_at - started_at)::float8 * 1000 as "durationMs"
    from flow.execution
    where execution_id > ${place.executionId}
    order by execution_id limit ${limit}`;
  const last = rows.at(-1)?.executionId;
  if (rows.length < limit || last === undefined) await sql`delete from flow.statistic_backlog`;
  else await sql`update flow.statistic_backlog set execution_id = ${last}`;
  return rows
    .filter(({ endedAt }) => endedAt !== null && endedAt <= place.endedBefore)
    .map(({ executionId: _, durationMs, ...row }) => ({ ...row, tally: bare(durationMs) }));
}

/** Of its commands and steps the row says nothing. */
function bare(durationMs: number): EndTally {
  return { durationMs: Math.max(0, durationMs), waited: {}, steps: [] };
}

/** What is added to the row of a playbook and a time. A histogram is two lists of the same length. */
export interface StatisticRow {
  seconds: number;
  path: string;
  /** RFC 3339. */
  at: string;
  completed: number;
  failed: number;
  cancelled: number;
  took_buckets: number[];
  took_counts: number[];
  waited_buckets: number[];
  waited_counts: number[];
}

/** The same of one of its steps. */
export interface StepStatisticRow
  extends Pick<StatisticRow, "seconds" | "path" | "at" | "took_buckets" | "took_counts"> {
  step: string;
  runs: number;
  failed: number;
}

/** SQL: the histogram of the row `s` with the one that comes. */
const merged = (column: "took" | "waited") => `(${column}_buckets, ${column}_counts) = (
      select coalesce(array_agg(bucket order by bucket), '{}'), coalesce(array_agg(n order by bucket), '{}')
      from (
        select bucket, sum(n)::int as n
        from unnest(s.${column}_buckets || excluded.${column}_buckets, s.${column}_counts || excluded.${column}_counts) as h (bucket, n)
        group by bucket
      ) as both_of_them)`;

/** Adds to statistics, each row once in a call. Rows are locked in the order of their keys: no two calls wait for each other. */
export async function addStatistics({ sql }: Transaction, rows: readonly StatisticRow[]): Promise<void> {
  if (rows.length === 0) return;
  await sql`
    insert into flow.statistic as s
    select * from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as r (
      seconds int, path text, at timestamptz, completed int, failed int, cancelled int,
      took_buckets smallint[], took_counts int[], waited_buckets smallint[], waited_counts int[])
    order by seconds, path collate "C", at
    on conflict (seconds, path, at) do update set
      completed = s.completed + excluded.completed,
      failed = s.failed + excluded.failed,
      cancelled = s.cancelled + excluded.cancelled,
      ${sql.unsafe(merged("took"))},
      ${sql.unsafe(merged("waited"))}`;
}

/** {@link addStatistics} of steps. */
export async function addStepStatistics({ sql }: Transaction, rows: readonly StepStatisticRow[]): Promise<void> {
  if (rows.length === 0) return;
  await sql`
    insert into flow.step_statistic as s
    select * from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as r (
      seconds int, path text, at timestamptz, step text, runs int, failed int, took_buckets smallint[], took_counts int[])
    order by seconds, path collate "C", at, step collate "C"
    on conflict (seconds, path, at, step) do update set
      runs = s.runs + excluded.runs,
      failed = s.failed + excluded.failed,
      ${sql.unsafe(merged("took"))}`;
}

/** Deletes rows of this length that began before this age, at most `limit` of each table; returns how many. */
export async function deleteOldStatistics(
  { sql }: Database,
  { seconds, days }: { seconds: number; days: number },
  limit: number,
): Promise<number> {
  const old = sql`seconds = ${seconds} and at < now() - ${days}::float8 * interval '1 day'`;
  const executions = await sql`
    delete from flow.statistic where (seconds, path, at) in (
      select seconds, path, at from flow.statistic where ${old} order by at limit ${limit})`;
  const steps = await sql`
    delete from flow.step_statistic where (seconds, path, at, step) in (
      select seconds, path, at, step from flow.step_statistic where ${old} order by at limit ${limit})`;
  return Math.max(executions.count, steps.count);
}
