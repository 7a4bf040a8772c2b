import type { Database } from "../database/database.ts";

/** More than a backfill may have. */
const STARTED_MAX = 200_000;

/**
 * Times of a schedule within a range for which an execution was started, each once, with the newest of these. `to` is left out. Found by
 * their keys, which begin with the time: what was fired by hand in between is not for one of these times.
 */
export async function startedDues(
  { sql }: Database,
  triggerId: string,
  from: number,
  to: number,
): Promise<{ dueAt: Date; executionId: string }[]> {
  return await sql<{ dueAt: Date; executionId: string }[]>`
    select due_at as "dueAt", max(execution_id)::text as "executionId" from flow.trigger_fire
    where trigger_id = ${triggerId} and status = 'started'
      and key >= ${new Date(from).toISOString()} and key < ${new Date(to).toISOString()}
    group by due_at limit ${STARTED_MAX}`;
}

/**
 * How many executions of a backfill are open, at most `limit`. Looked for among the open executions of its trigger, so the time does not grow
 * with what it has started.
 */
export async function openOfBackfill(
  { sql }: Database,
  triggerId: string,
  keyEnd: string,
  limit: number,
): Promise<number> {
  const [row] = await sql<[{ open: number }]>`
    select count(*)::int as open from (
      select from flow.execution as e
      join flow.trigger_fire as f on f.execution_id = e.execution_id
      where e.started_id = ${triggerId} and e.started_kind = 'trigger' and e.ended_at is null
        and f.trigger_id = ${triggerId} and right(f.key, ${keyEnd.length}) = ${keyEnd}
      limit ${limit}
    ) as open`;
  return row.open;
}
