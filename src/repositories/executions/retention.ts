import { firstIdAt } from "../../platform/system/ids.ts";
import type { Database } from "../database/database.ts";

/*
 * Deletion of rows that were kept for long enough (FLOW_RETENTION_DAYS), in statements of a bounded number of rows. No table
 * has an index for it: ids grow in time, so "older than" is a range of the primary key, and a walk over it passes the few
 * rows that stay. Events are not deleted here: they go with their month (`old-partitions.ts`).
 */

/** The moment so many days ago, by the database's clock. */
export async function daysAgo({ sql }: Database, days: number): Promise<Date> {
  const [row] = await sql<[{ moment: Date }]>`select now() - ${days}::float8 * interval '1 day' as moment`;
  return row.moment;
}

/** A page of a walk over the ids of a table. */
export interface Walked {
  /** Where the next page begins; undefined after the last one. */
  next: string | undefined;
}

/**
 * Reads `limit` executions after an id that began before `endedBefore`, and returns those that also ended before it. A child
 * stays as long as its caller and the root of its tree: a tree is deleted as a whole.
 */
export async function findOutdatedExecutions(
  { sql }: Database,
  endedBefore: Date,
  after: string,
  limit: number,
): Promise<Walked & { executionIds: string[] }> {
  const [row] = await sql<[{ seen: number; last: string | null; executionIds: string[] }]>`
    with page as materialized (
      select execution_id, parent_execution_id, root_execution_id, ended_at from flow.execution
      where execution_id > ${after} and execution_id < ${firstIdAt(endedBefore.getTime())}
      order by execution_id
      limit ${limit}
    )
    select (select count(*)::int from page) as seen, (select max(execution_id) from page) as last, array(
      select execution_id from page
      where ended_at < ${endedBefore} and not exists (
        select from flow.execution above
        where above.execution_id in (page.parent_execution_id, page.root_execution_id)
          and (above.ended_at is null or above.ended_at >= ${endedBefore})
      )
      order by execution_id
    ) as "executionIds"`;
  return { executionIds: row.executionIds, next: nextOf(row, limit) };
}

/**
 * Deletes the rows, the labels and the snapshots of those of these executions that have ended; returns how many. A row that a late event is
 * writing at this moment is left for the next walk.
 */
export async function deleteExecutionRows({ sql }: Database, executionIds: readonly string[]): Promise<number> {
  const { count } = await sql`
    with outdated as materialized (
      select execution_id from flow.execution
      where execution_id = any(${[...executionIds]}::bigint[]) and ended_at is not null
      for update skip locked
    ), unlabelled as (
      delete from flow.execution_label l using outdated where l.execution_id = outdated.execution_id
    ), forgotten as (
      delete from flow.execution_snapshot s using outdated where s.execution_id = outdated.execution_id
    ), forgotten_past as (
      delete from flow.past_snapshot s using outdated where s.execution_id = outdated.execution_id
    ), approvals as (
      delete from flow.approval a using outdated where a.execution_id = outdated.execution_id returning a.approval_id
    ), decisions as (
      delete from flow.approval_decision d using approvals where d.approval_id = approvals.approval_id
    ), messages as (
      delete from flow.approval_message m using approvals where m.approval_id = approvals.approval_id
    )
    delete from flow.execution e using outdated where e.execution_id = outdated.execution_id`;
  return count;
}

/**
 * Looks at `limit` commands after an id that were issued before a moment, and deletes those whose execution is gone; gives how
 * many. No index finds the commands of an execution that have ended.
 */
export async function deleteCommandsLeft(
  { sql }: Database,
  issuedBefore: Date,
  after: string,
  limit: number,
): Promise<Walked & { deleted: number }> {
  const [row] = await sql<[{ seen: number; last: string | null; deleted: number }]>`
    with page as materialized (
      select command_id, execution_id from flow.command
      where command_id > ${after} and command_id < ${firstIdAt(issuedBefore.getTime())}
      order by command_id
      limit ${limit}
    ), deleted as (
      delete from flow.command c using page
      where c.command_id = page.command_id
        and not exists (select from flow.execution e where e.execution_id = page.execution_id)
      returning c.command_id
    )
    select (select count(*)::int from page) as seen, (select max(command_id) from page) as last,
      (select count(*)::int from deleted) as deleted`;
  return { deleted: row.deleted, next: nextOf(row, limit) };
}

/**
 * Deletes at most `limit` batches after an id that came before a moment and had ended by then, the oldest first; gives how
 * many. The next page begins after the last of this one: from the beginning, each would pass all that the ones before it have
 * deleted, until a vacuum.
 */
export async function deleteBatches(
  { sql }: Database,
  endedBefore: Date,
  after: string,
  limit: number,
): Promise<Walked & { deleted: number }> {
  const [row] = await sql<[{ seen: number; last: string | null; deleted: number }]>`
    with page as materialized (
      select request_id from flow.batch
      where request_id > ${after} and request_id < ${firstIdAt(endedBefore.getTime())}
        and state in ('completed', 'failed') and updated_at < ${endedBefore}
      order by request_id
      limit ${limit}
      for update skip locked
    ), deleted as (
      delete from flow.batch b using page where b.request_id = page.request_id
      returning b.request_id
    )
    select (select count(*)::int from page) as seen, (select max(request_id) from page) as last,
      (select count(*)::int from deleted) as deleted`;
  return { deleted: row.deleted, next: nextOf(row, limit) };
}

function nextOf({ seen, last }: { seen: number; last: string | null }, limit: number): string | undefined {
  return seen < limit || last === null ? undefined : last;
}
