import type { Database } from "../database/database.ts";

/**
 * Deletes entries whose execution has ended, and entries that expired long ago. The statements are bounded; locked rows are
 * skipped.
 */

/** Deletes the entries of those of these executions that have ended or are gone; returns their number. */
export async function deleteEntriesOf(
  { sql }: Database,
  executionIds: readonly string[],
  limit: number,
): Promise<number> {
  const { count } = await sql`
    with page as materialized (
      select k.cache_key from flow.keychain k
      where k.execution_id = any(${[...executionIds]}::bigint[])
        and not exists (select from flow.execution e where e.execution_id = k.execution_id and e.ended_at is null)
      limit ${limit}
      for update skip locked
    )
    delete from flow.keychain k using page where k.cache_key = page.cache_key`;
  return count;
}

/**
 * Looks at the next `limit` executions after an id that own entries, and gives those that have ended or are gone, and where
 * the walk goes on; undefined at its end.
 */
export async function findEndedOwners(
  { sql }: Database,
  after: string,
  limit: number,
): Promise<{ executionIds: string[]; next: string | undefined }> {
  const [row] = await sql<[{ seen: number; last: string | null; executionIds: string[] }]>`
    with owners as materialized (
      select distinct execution_id from flow.keychain
      where execution_id > ${after}
      order by execution_id
      limit ${limit}
    )
    select (select count(*)::int from owners) as seen, (select max(execution_id) from owners) as last, array(
      select execution_id from owners
      where not exists (
        select from flow.execution e where e.execution_id = owners.execution_id and e.ended_at is null
      )
    ) as "executionIds"`;
  return { executionIds: row.executionIds, next: row.seen < limit ? undefined : (row.last ?? undefined) };
}

/** Deletes at most `limit` entries without `auto_renew` that expired more than `days` ago; gives how many. */
export async function deleteExpiredEntries({ sql }: Database, days: number, limit: number): Promise<number> {
  const { count } = await sql`
    with page as materialized (
      select cache_key from flow.keychain
      where not auto_renew and expires_at <= now() - ${days}::float8 * interval '1 day'
      order by expires_at
      limit ${limit}
      for update skip locked
    )
    delete from flow.keychain k using page where k.cache_key = page.cache_key`;
  return count;
}

/**
 * Deletes at most `limit` entries with `auto_renew` that have expired and were not read for `days`; gives how many.
 */
export async function deleteUnusedEntries({ sql }: Database, days: number, limit: number): Promise<number> {
  const { count } = await sql`
    with page as materialized (
      select cache_key from flow.keychain
      where auto_renew and expires_at <= now() and accessed_at <= now() - ${days}::float8 * interval '1 day'
      order by expires_at
      limit ${limit}
      for update skip locked
    )
    delete from flow.keychain k using page where k.cache_key = page.cache_key`;
  return count;
}
