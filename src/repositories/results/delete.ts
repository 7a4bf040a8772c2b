import type { ISql } from "postgres";
import type { Database } from "../database/database.ts";
import { isFinalResult, isOver, isOwner, type Removal, removalColumns, removalJson } from "./results.ts";
import { WRITING_MS_MAX } from "./write.ts";

/*
 * Deletion of results. A payload in its row is deleted with it; for a payload elsewhere the row stays, as `deleting`, until the
 * payload is removed: readers do not find it any more, and after a crash in between it is found by {@link takeLeftovers}.
 */

/** The results that one statement deleted. */
export interface Taken {
  /** Results that readers found before. */
  count: number;
  /** Payloads that are to be removed where they are, then {@link forgetRemoved}. */
  removals: Removal[];
}

/** Results that are past their time, at most `limit`. */
export function takeExpired({ sql }: Database, limit: number): Promise<Taken> {
  return take(
    sql,
    sql`
    select execution_id, ref, writing from flow.result
    where expires_at <= now() and state = 'stored'
    order by expires_at
    limit ${limit}
    for update skip locked`,
  );
}

/** All results of executions, whatever their scope, at most `limit`. Payloads that are being written are deleted later. */
export function takeAll({ sql }: Database, executionIds: readonly string[], limit: number): Promise<Taken> {
  return take(
    sql,
    sql`
    select execution_id, ref, writing from flow.result
    where execution_id = any(${[...executionIds]}::bigint[]) and state = 'stored'
    limit ${limit}
    for update`,
  );
}

/** Results of one step, those that go with it and were stored before a moment, at most `limit`. */
export function takeOfStep(
  { sql }: Database,
  /** `prefix`: what their references begin with. */
  { executionId, prefix, before }: { executionId: string; prefix: string; before: Date },
  limit: number,
): Promise<Taken> {
  return take(
    sql,
    sql`
    select execution_id, ref, writing from flow.result
    where execution_id = ${executionId} and scope = 'step' and state = 'stored' and starts_with(ref, ${prefix})
      and created_at < ${before}
    limit ${limit}
    for update skip locked`,
  );
}

/**
 * Results that go with executions which have ended, at most `limit`: those of scope `step` and `execution` of these
 * executions, and those of scope `workflow` in the trees that they are the root of. What is left of them then, the
 * executions' own results, is permanent from then on.
 */
export async function takeEnded(
  { sql }: Database,
  owner: "execution" | "root",
  ids: readonly string[],
  limit: number,
): Promise<Taken> {
  const ofOwner =
    owner === "root"
      ? sql`r.root_execution_id = any(${[...ids]}::bigint[]) and r.scope = 'workflow'`
      : sql`r.execution_id = any(${[...ids]}::bigint[]) and r.scope in ('step', 'execution')`;
  const taken = await take(
    sql,
    sql`
    select r.execution_id, r.ref, r.writing
    from flow.result r left join flow.execution owner on ${isOwner(sql)}
    where ${ofOwner} and r.state = 'stored' and (owner.execution_id is null or ${isOver(sql)})
    limit ${limit}
    for update of r skip locked`,
  );
  if (taken.count < limit) {
    await sql`
      update flow.result r set scope = 'permanent'
      from flow.execution owner
      where ${ofOwner} and r.state = 'stored' and ${isOwner(sql)} and owner.ended_at is not null
        and ${isFinalResult(sql)}`;
  }
  return taken;
}

/**
 * Payloads that a process left half written or half removed, at most `limit`, the oldest first. They are this caller's for a
 * minute: a failed removal is not tried again at once.
 */
export async function takeLeftovers({ sql }: Database, limit: number): Promise<Removal[]> {
  return await sql<Removal[]>`
    with page as materialized (
      select execution_id, ref, writing from flow.result
      where state <> 'stored' and created_at < now() - interval '1 minute'
        and (state = 'deleting' or created_at < now() - ${WRITING_MS_MAX}::float8 * interval '1 millisecond')
      order by created_at
      limit ${limit}
      for update skip locked
    )
    update flow.result r set state = 'deleting', created_at = now()
    from page
    where r.execution_id = page.execution_id and r.ref = page.ref and r.writing = page.writing
    returning ${removalColumns(sql, "r")}`;
}

/** The payloads are gone where they were, or were never there: so are their rows. */
export async function forgetRemoved({ sql }: Database, removals: readonly Removal[]): Promise<void> {
  if (removals.length === 0) return;
  await sql`
    delete from flow.result r
    using unnest(${removals.map(({ executionId }) => executionId)}::bigint[],
      ${removals.map(({ ref }) => ref)}::text[], ${removals.map(({ writing }) => writing)}::text[])
      as gone (execution_id, ref, writing)
    where r.execution_id = gone.execution_id and r.ref = gone.ref and r.writing = gone.writing and r.state <> 'stored'`;
}

/** `page` selects the keys of the results that go. */
async function take(sql: ISql, page: ReturnType<ISql>): Promise<Taken> {
  const [row] = await sql<[Taken]>`
    with page as materialized (${page}),
    dropped as (
      delete from flow.result r using page
      where r.execution_id = page.execution_id and r.ref = page.ref and r.writing = page.writing and r.location is null
    ), marked as (
      update flow.result r set state = 'deleting', writing = gen_random_uuid()::text, created_at = now()
      from page
      where r.execution_id = page.execution_id and r.ref = page.ref and r.writing = page.writing
        and r.location is not null
      returning r.execution_id, r.ref, r.writing, r.store, r.location
    )
    select (select count(*)::int from page) as count, coalesce((
      select json_agg(${removalJson(sql)}) from marked
    ), '[]') as removals`;
  return row;
}
