import type { Json, JsonObject } from "../../schema/words/json.ts";
import type { Database } from "../database/database.ts";

/** An execution that has ended, and from which triggers it descends. */
export interface WatchedEnd {
  executionId: string;
  path: string;
  status: string;
  result: Json;
  error: JsonObject | null;
  endedAt: Date;
  /** Triggers that started it, or an execution from which it came: by parent, rerun or trigger. */
  ancestors: string[];
  /** How many ends of executions led to it, one after another. */
  chain: number;
}

/** Longest chain of ends that is looked back on. */
export const CHAIN_MAX = 16;

/** Takes ends that triggers may watch, for this long. Those that another server is taking are passed over. */
export async function takeWatchedEnds({ sql }: Database, leaseMs: number, limit: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    with ready as (
      select execution_id from flow.watched_end where wake_at <= now() order by wake_at limit ${limit}
      for update skip locked
    )
    update flow.watched_end as w set wake_at = now() + ${leaseMs}::float8 * interval '1 millisecond'
    from ready where w.execution_id = ready.execution_id
    returning w.execution_id as id`;
  return rows.map(({ id }) => id);
}

/**
 * What has ended, by their ids; those that were deleted since are left out, and drafts, which start nothing of others. Each walks back to where it came from: parents and originals are few,
 * and a chain of triggers ends after {@link CHAIN_MAX}.
 */
export async function readEnds({ sql }: Database, executionIds: readonly string[]): Promise<WatchedEnd[]> {
  return await sql<WatchedEnd[]>`
    with recursive above as (
      select e.execution_id as root, e.execution_id, e.parent_execution_id, e.rerun_of, e.started_kind, e.started_id, 0 as chain
      from flow.execution as e where e.execution_id = any(${[...executionIds]}::bigint[])
      union
      select a.root, e.execution_id, e.parent_execution_id, e.rerun_of, e.started_kind, e.started_id, came.chain
      from above as a
      cross join lateral (
        select a.parent_execution_id as id, a.chain where a.parent_execution_id is not null
        union all select a.rerun_of, a.chain where a.rerun_of is not null
        union all select f.cause_id, a.chain + 1 from flow.trigger_fire as f
          where f.execution_id = a.execution_id and f.cause_id is not null and a.chain < ${CHAIN_MAX}
      ) as came
      join flow.execution as e on e.execution_id = came.id
    ), descent as (
      select root, max(chain) as chain,
        array(select distinct b.started_id::text from above as b where b.root = above.root and b.started_kind = 'trigger') as ancestors
      from above group by root
    )
    select e.execution_id as "executionId", e.path, e.status, e.result, e.error, e.ended_at as "endedAt",
      d.ancestors, d.chain
    from flow.execution as e join descent as d on d.root = e.execution_id
    where e.ended_at is not null and e.version > 0 order by e.execution_id`;
}

/** Forgets ends for which all triggers have fired. */
export async function deleteWatchedEnds({ sql }: Database, executionIds: readonly string[]): Promise<void> {
  await sql`delete from flow.watched_end where execution_id = any(${[...executionIds]}::bigint[])`;
}
