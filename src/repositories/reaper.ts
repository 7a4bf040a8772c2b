import type { Database } from "./database.ts";

/** What counts as stranded (interface specification, Command reaper). */
export interface ReaperPolicy {
  staleMs: number;
  hardTimeoutMs: number;
  /** A command that has been PENDING for so long is told again. */
  pendingMs: number;
}

/** A command whose notification is to be published again. */
export interface StrandedCommand {
  commandId: string;
  executionId: string;
  /** `pending`: nobody took it; `worker`: its worker is missing, not ready or stale; `timeout`: held for too long. */
  reason: "pending" | "worker" | "timeout";
}

/**
 * Commands of open executions that are stranded, oldest first, at most `limit`, from the id `after` on. Nothing is changed:
 * claiming decides what becomes of them. A sweep that found `limit` of them goes on after the last in the next one, so that a
 * hundred commands which nobody can run do not hide the hundred and first.
 *
 * It walks open commands only, over the index of PENDING ones and that of held ones, which are at most what workers can hold.
 */
export async function findStranded(
  { sql }: Database,
  { staleMs, hardTimeoutMs, pendingMs }: ReaperPolicy,
  after: string,
  limit: number,
): Promise<StrandedCommand[]> {
  return await sql<StrandedCommand[]>`
    with pending as (
      select c.command_id, c.execution_id, 'pending' as reason
      from flow.command c join flow.execution e on e.execution_id = c.execution_id and e.ended_at is null
      where c.status = 'PENDING' and c.command_id > ${after}
        and c.created_at <= now() - ${pendingMs}::float8 * interval '1 millisecond'
      order by c.command_id
      limit ${limit}
    ), held as (
      select c.command_id, c.execution_id,
        case when r.status is distinct from 'ready'
            or r.heartbeat_at <= now() - ${staleMs}::float8 * interval '1 millisecond' then 'worker'
          when c.claimed_at <= now() - ${hardTimeoutMs}::float8 * interval '1 millisecond' then 'timeout'
        end as reason
      from flow.command c
      join flow.execution e on e.execution_id = c.execution_id and e.ended_at is null
      left join flow.runtime r on r.kind = 'worker' and r.name = c.worker
      where c.status in ('CLAIMED', 'RUNNING') and c.command_id > ${after}
    )
    select command_id as "commandId", execution_id as "executionId", reason
    from (select * from pending union all select * from held where reason is not null) as stranded
    order by command_id
    limit ${limit}`;
}
