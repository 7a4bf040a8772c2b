import type { PendingQuery, Row } from "postgres";
import type { Database } from "../database/database.ts";
import type { ClaimableCommand } from "./claimable-commands.ts";

/** What counts as stranded (interface specification, Command reaper). */
export interface ReaperPolicy {
  staleMs: number;
  hardTimeoutMs: number;
  /** A command that has been PENDING for this long is published again. */
  pendingMs: number;
}

/** A command whose notification is to be published again. */
export interface StrandedCommand {
  commandId: string;
  executionId: string;
  /** `pending`: not claimed; `worker`: its worker is missing, not ready or stale; `timeout`: held for too long. */
  reason: "pending" | "worker" | "timeout";
}

/** A command that a worker has lost. */
export interface LostCommand extends StrandedCommand {
  worker: string;
}

/** The position of a walk over held commands, ordered by worker and command: everything after it is still to be read. */
export interface HeldPlace {
  worker: string;
  commandId: string;
}

/** The beginning of a walk. */
export const FIRST_HELD: HeldPlace = { worker: "", commandId: "0" };

/**
 * Stranded commands of open executions, oldest first, at most `limit`, from the id `after` on, without those of {@link
 * findLost}. It changes nothing: claims decide what happens to them. If a sweep finds `limit` commands, the next sweep
 * continues after the last of them, so that a hundred commands that no worker can run do not hide the hundred and first. It
 * reads only open commands, over the index of PENDING commands and the index of held commands, which are at most as many as
 * workers can hold.
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
      where c.status in ('CLAIMED', 'RUNNING') and c.command_id > ${after} and c.lease_expires_at > now()
    )
    select command_id as "commandId", execution_id as "executionId", reason
    from (select * from pending union all select * from held where reason is not null) as stranded
    order by command_id
    limit ${limit}`;
}

/**
 * Commands of open executions that a worker held and that may be claimed now, by worker and age, at most `limit` after a
 * position: their leases have expired, and their worker is missing, not ready or stale, or has held them for too long. Lost
 * commands are found first, however many other commands wait.
 */
export async function findLost(
  { sql }: Database,
  { staleMs, hardTimeoutMs }: Omit<ReaperPolicy, "pendingMs">,
  after: HeldPlace,
  limit: number,
): Promise<LostCommand[]> {
  return await sql<LostCommand[]>`
    with recursive ${holders(sql, after)}, judged as (
      select h.worker, r.status is distinct from 'ready'
        or r.heartbeat_at <= now() - ${staleMs}::float8 * interval '1 millisecond' as is_lost
      from holder h left join flow.runtime r on r.kind = 'worker' and r.name = h.worker
      where h.worker is not null
    )
    select c.command_id as "commandId", c.execution_id as "executionId", judged.worker,
      case when judged.is_lost then 'worker' else 'timeout' end as reason
    from judged cross join lateral (
      select command_id, execution_id from flow.command
      where worker = judged.worker and status in ('CLAIMED', 'RUNNING') and lease_expires_at <= now()
        and (worker, command_id) > (${after.worker}, ${after.commandId}::bigint)
        and (judged.is_lost or claimed_at <= now() - ${hardTimeoutMs}::float8 * interval '1 millisecond')
      order by command_id
      limit ${limit}
    ) as c
    join flow.execution e on e.execution_id = c.execution_id and e.ended_at is null
    order by judged.worker, c.command_id
    limit ${limit}`;
}

/**
 * Commands that a worker has given back, or lost: it has signed off, or its row is gone, and their leases have expired. At most
 * `limit`.
 * Every server runs this every second; it costs one lookup for each worker that holds commands.
 */
export async function findReturned({ sql }: Database, limit: number): Promise<ClaimableCommand[]> {
  return await sql<ClaimableCommand[]>`
    with recursive ${holders(sql, FIRST_HELD)}
    select c.command_id as "commandId", c.execution_id as "executionId", c.kinds, c.labels, c.attempt,
      case when r.status is null then h.worker end as "lostBy"
    from holder h left join flow.runtime r on r.kind = 'worker' and r.name = h.worker
    cross join lateral (
      select command_id, execution_id, kinds, labels, attempt from flow.command
      where worker = h.worker and status in ('CLAIMED', 'RUNNING') and lease_expires_at <= now()
      order by command_id
      limit ${limit}
    ) as c
    where r.status is null or r.status = 'offline'
    limit ${limit}`;
}

/**
 * `holder`: the names of workers that hold commands, each once, by jumping from one to the next in the index. The last is null.
 */
function holders(sql: Database["sql"], { worker }: HeldPlace): PendingQuery<Row[]> {
  return sql`holder as (
      select (
        select worker from flow.command
        where status in ('CLAIMED', 'RUNNING') and worker >= ${worker} order by worker limit 1
      ) as worker
      union all
      select (
        select c.worker from flow.command c
        where c.status in ('CLAIMED', 'RUNNING') and c.worker > holder.worker order by c.worker limit 1
      ) from holder where holder.worker is not null
    )`;
}
