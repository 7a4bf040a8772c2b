import type { PendingQuery, Row } from "postgres";
import { FIRST_ID_MS, IDS_PER_MS } from "../../platform/system/ids.ts";
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
 * reads PENDING commands over their index, and of the held ones those that {@link suspects} has.
 */
export async function findStranded(
  { sql }: Database,
  policy: ReaperPolicy,
  after: string,
  limit: number,
): Promise<StrandedCommand[]> {
  return await sql<StrandedCommand[]>`
    with recursive pending as (
      select c.command_id, c.execution_id, 'pending' as reason
      from flow.command c join flow.execution e on e.execution_id = c.execution_id and e.ended_at is null and e.status <> 'PAUSED'
      where c.status = 'PENDING' and c.command_id > ${after}
        and c.created_at <= now() - ${policy.pendingMs}::float8 * interval '1 millisecond'
      order by c.command_id
      limit ${limit}
    ), ${suspects(sql, policy, FIRST_HELD)}, held as (
      select c.command_id, c.execution_id, suspect.reason
      from suspect cross join lateral (
        select c.command_id, c.execution_id from flow.command c
        where c.worker = suspect.worker and c.status in ('CLAIMED', 'RUNNING')
          and c.command_id > ${after} and c.command_id < suspect.before
          and c.lease_expires_at > now() and c.claimed_at <= suspect.claimed_until
        order by c.command_id + 0
        limit ${limit}
      ) as c join flow.execution e on e.execution_id = c.execution_id and e.ended_at is null and e.status <> 'PAUSED'
    )
    select command_id as "commandId", execution_id as "executionId", reason
    from (select * from pending union all select * from held) as stranded
    order by command_id
    limit ${limit}`;
}

/**
 * Commands of open executions that a worker held and that may be claimed now, by worker and age, at most `limit` after a
 * position: their leases have expired, and their worker is missing, not ready or stale, or has held them for too long. Lost
 * commands are found first, however many other commands wait. It reads only commands that {@link suspects} has, worker by worker
 * in the order of their names, and stops when it has `limit`: sorted as a whole, each page would cost as much as all of them.
 */
export async function findLost(
  { sql }: Database,
  policy: Omit<ReaperPolicy, "pendingMs">,
  after: HeldPlace,
  limit: number,
): Promise<LostCommand[]> {
  return await sql<LostCommand[]>`
    with recursive ${suspects(sql, policy, after)}
    select command_id as "commandId", execution_id as "executionId", worker, reason
    from (select suspect.worker, suspect.reason, c.command_id, c.execution_id from suspect cross join lateral (
      select c.command_id, c.execution_id from flow.command c
      where c.worker = suspect.worker and c.status in ('CLAIMED', 'RUNNING')
        and c.command_id > suspect.after and c.command_id < suspect.before
        and c.lease_expires_at <= now() and c.claimed_at <= suspect.claimed_until
      order by c.command_id + 0
      limit ${limit}
    ) as c join flow.execution e on e.execution_id = c.execution_id and e.ended_at is null and e.status <> 'PAUSED' limit ${limit}) as first
    order by worker, command_id`;
}

/** The smallest id that no command can have that was claimed at the time `at`: a minute for clocks that differ. */
function idsUntil(sql: Database["sql"], at: PendingQuery<Row[]>): PendingQuery<Row[]> {
  return sql`(floor(extract(epoch from ${at}) * 1000)::bigint + 60000 - ${FIRST_ID_MS}) * ${IDS_PER_MS}`;
}

/**
 * `suspect`: the workers that hold commands, from the place `after` on, and which of these are to be looked at. Of a worker that
 * is missing, not ready or stale: all (`worker`). Of any other: those that it has held for too long (`timeout`). These were issued
 * before that time, and ids follow the clock: so of a hundred thousand commands that healthy workers hold, only those are read
 * that were issued so long ago. Sort what is joined to it by `command_id + 0`: in the order of the primary key the planner would read
 * that, and with it every command that has ended.
 */
function suspects(
  sql: Database["sql"],
  { staleMs, hardTimeoutMs }: Omit<ReaperPolicy, "pendingMs">,
  after: HeldPlace,
): PendingQuery<Row[]> {
  const longAgo = sql`now() - ${hardTimeoutMs}::float8 * interval '1 millisecond'`;
  const isLost = sql`(r.status is distinct from 'ready'
        or r.heartbeat_at <= now() - ${staleMs}::float8 * interval '1 millisecond')`;
  return sql`${holders(sql, after)}, suspect as materialized (
      select h.worker, case when ${isLost} then 'worker' else 'timeout' end as reason,
        case when h.worker = ${after.worker} then ${after.commandId}::bigint else 0 end as after,
        case when ${isLost} then 9223372036854775807 else ${idsUntil(sql, longAgo)} end as before,
        case when ${isLost} then 'infinity' else ${longAgo} end as claimed_until
      from holder h left join flow.runtime r on r.kind = 'worker' and r.name = h.worker
      where h.worker is not null
      order by h.worker
    )`;
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
      select c.command_id, c.execution_id, c.kinds, c.labels, c.attempt
      from flow.command c join flow.execution e on e.execution_id = c.execution_id and e.status <> 'PAUSED'
      where c.worker = h.worker and c.status in ('CLAIMED', 'RUNNING') and c.lease_expires_at <= now()
      order by c.command_id
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
