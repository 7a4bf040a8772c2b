import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { transient } from "../tables/runtime.ts";

/*
 * Transient values of executions: rows of `flow.transient` in a bucket per execution.
 */

const WRITTEN = columnsOf(transient, ["revision", "expiresAt"]);
const FOUND = columnsOf(transient, ["value", "revision", "expiresAt"]);
const LISTED = columnsOf(transient, ["key", "revision", "expiresAt", "updatedAt"]);

/** A value as it is kept. */
export interface ExecutionValue extends RowOf<typeof WRITTEN> {
  key: string;
}

/** One of a list, without the value. */
export interface ExecutionValueListed extends RowOf<typeof LISTED> {
  bytes: number;
}

/** The result of a write. */
export type ValueWrite = { status: "saved"; value: ExecutionValue } | { status: "ended" | "full" | "unknown" };

/**
 * Writes a value of an execution that is open, unless that has `keysMax` others already. `ttlMs` null: it lives as long as the
 * execution and a day more.
 */
export async function putExecutionValue(
  { sql }: Database,
  executionId: string,
  entry: { key: string; json: string; ttlMs: number | null; keysMax: number },
): Promise<ValueWrite> {
  const bucket = bucketOf(executionId);
  const { key, json, ttlMs, keysMax } = entry;
  const [row] = await sql<{ isOpen: boolean; isFull: boolean; revision: number | null; expiresAt: Date | null }[]>`
    with execution as materialized (
      select ended_at is null as "isOpen" from flow.execution where execution_id = ${executionId}
    ), others as materialized (
      select count(*) >= ${keysMax}::int as "isFull"
      from (select from flow.transient where bucket = ${bucket} and key <> ${key} limit ${keysMax}) counted
    ), written as (
      insert into flow.transient as present (bucket, key, value, revision, expires_at)
      select ${bucket}, ${key}, ${Buffer.from(json)}, ${firstRevision(sql)},
        clock_timestamp() + ${ttlMs}::float8 * interval '1 millisecond'
      from execution, others where "isOpen" and not "isFull"
      on conflict (bucket, key) do update set
        value = excluded.value, revision = greatest(present.revision + 1, excluded.revision),
        expires_at = excluded.expires_at, updated_at = now()
      returning ${WRITTEN(sql, "present")}
    )
    select execution.*, others.*, written.* from execution cross join others left join written on true`;
  if (row === undefined) return { status: "unknown" };
  if (row.revision !== null) {
    return { status: "saved", value: { key, revision: row.revision, expiresAt: row.expiresAt } };
  }
  return { status: row.isOpen ? "full" : "ended" };
}

/** The live value, or undefined. Also of an execution that has ended, until it is deleted. */
export async function findExecutionValue(
  { sql }: Database,
  executionId: string,
  key: string,
): Promise<(ExecutionValue & { json: string }) | undefined> {
  const [row] = await sql<RowOf<typeof FOUND>[]>`
    select ${FOUND(sql)} from flow.transient
    where bucket = ${bucketOf(executionId)} and key = ${key} and (expires_at is null or expires_at > clock_timestamp())`;
  if (row === undefined) return undefined;
  const { value, revision, expiresAt } = row;
  return { key, json: Buffer.from(value).toString("utf8"), revision, expiresAt };
}

/** Deletes a value where there is one. */
export async function deleteExecutionValue({ sql }: Database, executionId: string, key: string): Promise<void> {
  await sql`delete from flow.transient where bucket = ${bucketOf(executionId)} and key = ${key}`;
}

/** At most `limit` live values of an execution after a key, in the order of keys. */
export async function listExecutionValues(
  { sql }: Database,
  executionId: string,
  limit: number,
  after = "",
): Promise<ExecutionValueListed[]> {
  return await sql<ExecutionValueListed[]>`
    select ${LISTED(sql)}, octet_length(value) as bytes
    from flow.transient
    where bucket = ${bucketOf(executionId)} and key > ${after}
      and (expires_at is null or expires_at > clock_timestamp())
    order by key
    limit ${limit}`;
}

/** Deletes every value of an execution. */
export async function deleteExecutionValues({ sql }: Database, executionId: string): Promise<void> {
  await sql`delete from flow.transient where bucket = ${bucketOf(executionId)}`;
}

/**
 * Reads the next `limit` executions that have values, after a bucket, and deletes the values of those that ended more than
 * `keptDays` ago or are gone; returns how many, and where the walk continues.
 */
export async function deleteValuesLeft(
  { sql }: Database,
  after: string,
  keptDays: number,
  limit: number,
): Promise<{ deleted: number; next: string | undefined }> {
  const [row] = await sql<[{ seen: number; last: string | null; deleted: number }]>`
    with buckets as materialized (
      select distinct bucket from flow.transient
      where bucket > ${after} and bucket >= ${PREFIX} and bucket < ${BEHIND}
      order by bucket
      limit ${limit}
    ), over as materialized (
      select bucket from buckets where not exists (
        select from flow.execution e
        where e.execution_id = substr(bucket, ${PREFIX.length + 1})::bigint
          and (e.ended_at is null or e.ended_at > now() - ${keptDays}::float8 * interval '1 day')
      )
    ), deleted as (
      delete from flow.transient t using over where t.bucket = over.bucket returning 1
    )
    select (select count(*)::int from buckets) as seen, (select max(bucket) from buckets) as last,
      (select count(*)::int from deleted) as deleted`;
  return { deleted: row.deleted, next: row.seen < limit ? undefined : (row.last ?? undefined) };
}

/**
 * Deletes at most `limit` expired values, the oldest first; gives how many. Fewer than `limit`: no more are left, or another
 * process deletes them now.
 */
export async function deleteExpiredTransients({ sql }: Database, limit: number): Promise<number> {
  const deleted = await sql`
    with expired as materialized (
      select bucket, key from flow.transient
      where expires_at <= clock_timestamp()
      order by expires_at
      limit ${limit}
      for update skip locked
    )
    delete from flow.transient using expired
    where transient.bucket = expired.bucket and transient.key = expired.key`;
  return deleted.count;
}

const PREFIX = "execution:";
/** The first text after all that begin with {@link PREFIX}: the column is ordered by bytes. */
const BEHIND = "execution;";

function bucketOf(executionId: string): string {
  return `${PREFIX}${executionId}`;
}

/**
 * Revisions begin at the microseconds of the database's clock, not at 1: a revision that was read before a value was deleted
 * must not match the value that came after it. Below 2^53 until the year 2255.
 */
function firstRevision(sql: Database["sql"]) {
  return sql`(extract(epoch from clock_timestamp()) * 1000000)::bigint`;
}
