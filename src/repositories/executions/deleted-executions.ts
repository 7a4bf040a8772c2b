import type { Database } from "../database/database.ts";

/*
 * Deleting executions whose results others may refer to. Who deletes says so first, and looks then for reruns that refer to the results;
 * who begins a rerun writes it first, and looks then whether its original is being deleted. So of two that come together one sees the
 * other at least.
 */

/** Says that executions are being deleted; what lineage shows of them stays for now. */
export async function announceDeletion({ sql }: Database, executionIds: readonly string[]): Promise<void> {
  await sql`
    insert into flow.deleted_execution (execution_id, path, version, status, parent_execution_id, rerun_of)
    select execution_id, path, version, status, parent_execution_id, rerun_of from flow.execution
    where execution_id = any(${[...executionIds]}::bigint[]) and ended_at is not null
    on conflict do nothing`;
}

/** True if an execution is being deleted, or is gone. */
export async function isBeingDeleted({ sql }: Database, executionId: string): Promise<boolean> {
  const [row] = await sql<[{ isGone: boolean }]>`
    select exists (select from flow.deleted_execution where execution_id = ${executionId})
      or not exists (select from flow.execution where execution_id = ${executionId}) as "isGone"`;
  return row.isGone;
}

/**
 * The executions whose results go with these, which are about to be deleted: of these those to whose results no other execution refers, and
 * those that were deleted before, and to whose results only these refer. What is being deleted itself refers to nothing any more.
 */
export async function findResultOwners({ sql }: Database, executionIds: readonly string[]): Promise<string[]> {
  const ids = [...executionIds];
  const rows = await sql<{ id: string }[]>`
    with going as materialized (select unnest(${ids}::bigint[]) as id),
    owners as (
      select id from going
      union
      select unnest(e.refers_to) from flow.execution e where e.execution_id = any(${ids}::bigint[])
    )
    select owners.id::text as id from owners
    where (owners.id in (select id from going)
        or not exists (select from flow.execution e where e.execution_id = owners.id))
      and not exists (
        select from flow.execution e
        where e.refers_to @> array[owners.id] and e.refers_to is not null and e.execution_id <> all(${ids}::bigint[])
          -- Of two that are deleted at the same moment each would leave the results to the other.
          and not exists (select from flow.deleted_execution going where going.execution_id = e.execution_id)
      )`;
  return rows.map(({ id }) => id);
}

/** Most stubs above each other that one deletion looks at: the next deletion of the line goes on. */
const LINE_MAX = 64;

/**
 * Removes what lineage shows of deleted executions from which none descends any more: these, and those that they descend from.
 */
export async function forgetDeleted({ sql }: Database, executionIds: readonly string[]): Promise<void> {
  let ids = [...executionIds];
  for (let round = 0; round < LINE_MAX && ids.length > 0; round += 1) {
    const rows = await sql<{ above: string | null }[]>`
      with gone as (
        delete from flow.deleted_execution d
        where d.execution_id = any(${ids}::bigint[])
          and not exists (select from flow.execution e where e.execution_id = d.execution_id)
          and not exists (select from flow.execution e where e.rerun_of = d.execution_id and e.rerun_of is not null)
          and not exists (
            select from flow.execution e where e.parent_execution_id = d.execution_id and e.parent_execution_id is not null)
          and not exists (
            select from flow.execution e
            where e.started_id = d.execution_id and e.started_kind = 'execution' and e.parent_execution_id is null)
          and not exists (
            select from flow.trigger_fire f join flow.execution e on e.execution_id = f.execution_id
            where f.cause_id = d.execution_id and f.cause_id is not null)
          and not exists (select from flow.deleted_execution o where o.rerun_of = d.execution_id)
          and not exists (select from flow.deleted_execution o where o.parent_execution_id = d.execution_id)
        returning d.rerun_of, d.parent_execution_id
      )
      select distinct above::text as above from gone, unnest(array[rerun_of, parent_execution_id]) as above
      where above is not null`;
    ids = rows.flatMap(({ above }) => above ?? []);
  }
}
