import type { JsonObject } from "../../schema/words/json.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import { command, execution } from "../tables/execution.ts";
import { runtime } from "../tables/runtime.ts";
import type { Reading } from "./read-snapshot.ts";

/*
 * The doctor's queries about executions, commands, workers and batches. Each is bounded, reads open rows only (by their own index),
 * and takes no lock. All times are by the database's clock.
 */

const WORKER = columnsOf(runtime, ["name", "status", "capacity", "labels", "capabilities", "heartbeatAt", "about"]);

/** A worker, and what it holds. */
export interface SeenWorker extends RowOf<typeof WORKER> {
  /** Commands that it holds. */
  held: number;
  /** Silent for longer than was asked for. */
  isSilent: boolean;
}

/** Workers that have not signed off, those that still hold something first, at most `limit`. */
export async function seenWorkers({ sql }: Reading, staleMs: number, limit: number): Promise<SeenWorker[]> {
  return await sql<SeenWorker[]>`
    select ${WORKER(sql, "r")}, coalesce(held.count, 0)::int as held,
      r.heartbeat_at <= now() - ${staleMs}::float8 * interval '1 millisecond' as "isSilent"
    from flow.runtime r left join (
      select worker, count(*) as count from flow.command where status in ('CLAIMED', 'RUNNING') group by worker
    ) as held on held.worker = r.name
    where r.kind = 'worker' and (r.status <> 'offline' or held.count > 0)
    order by coalesce(held.count, 0) desc, r.heartbeat_at desc
    limit ${limit}`;
}

/** Waiting commands with the same requirements of a worker. */
export interface WaitingCommands {
  kinds: string[];
  labels: JsonObject | null;
  count: number;
  /** When the oldest of them was issued. */
  since: Date;
  /** How long ago that was, by the database's clock. */
  ageMs: number;
  executionIds: string[];
}

/**
 * Commands of open executions that were not claimed for `staleMs`, grouped by their requirements, the oldest first. At most
 * `rowsMax` commands are looked at, and `executionsMax` executions named.
 */
export async function waitingCommands(
  { sql }: Reading,
  { staleMs, rowsMax, executionsMax }: { staleMs: number; rowsMax: number; executionsMax: number },
): Promise<WaitingCommands[]> {
  return await sql<WaitingCommands[]>`
    with waiting as (
      select c.command_id, c.execution_id, c.kinds, c.labels, c.created_at
      from flow.command c join flow.execution e on e.execution_id = c.execution_id and e.ended_at is null
      where c.status = 'PENDING' and e.status <> 'PAUSED'
        and c.created_at <= now() - ${staleMs}::float8 * interval '1 millisecond'
      order by c.command_id
      limit ${rowsMax}
    )
    select kinds, labels::text::json as labels, count(*)::int as count, min(created_at) as since,
      (extract(epoch from now() - min(created_at)) * 1000)::float8 as "ageMs",
      (array_agg(distinct execution_id::text))[1:${executionsMax}] as "executionIds"
    from waiting
    group by kinds, labels::text
    order by min(command_id)`;
}

/** Commands that one worker holds for too long, or holds although it is gone. */
export interface HeldCommands {
  worker: string;
  /** `gone`: the worker is unknown, has signed off, or is silent; `timeout`: it lives, and has them for too long. */
  reason: "gone" | "timeout";
  count: number;
  /** When the oldest of them was claimed. */
  since: Date;
  /** When the last of their leases ends: until then no other worker can claim them. */
  leaseExpiresAt: Date;
  /** It has ended. */
  isFree: boolean;
  executionIds: string[];
}

/** Commands of open executions that are held by a worker which is gone, or for longer than `hardTimeoutMs`, by worker. */
export async function strandedHeld(
  { sql }: Reading,
  { staleMs, hardTimeoutMs, executionsMax }: { staleMs: number; hardTimeoutMs: number; executionsMax: number },
): Promise<HeldCommands[]> {
  return await sql<HeldCommands[]>`
    with held as (
      select c.command_id, c.execution_id, c.worker, c.claimed_at, c.lease_expires_at,
        case when r.status is distinct from 'ready'
            or r.heartbeat_at <= now() - ${staleMs}::float8 * interval '1 millisecond' then 'gone'
          when c.claimed_at <= now() - ${hardTimeoutMs}::float8 * interval '1 millisecond' then 'timeout'
        end as reason,
        -- A worker that drains ends what it holds: it is no worse than a ready one while it is heard of.
        r.status = 'draining' and r.heartbeat_at > now() - ${staleMs}::float8 * interval '1 millisecond' as draining
      from flow.command c
      join flow.execution e on e.execution_id = c.execution_id and e.ended_at is null and e.status <> 'PAUSED'
      left join flow.runtime r on r.kind = 'worker' and r.name = c.worker
      where c.status in ('CLAIMED', 'RUNNING')
    )
    select worker, reason, count(*)::int as count, min(claimed_at) as since, max(lease_expires_at) as "leaseExpiresAt",
      max(lease_expires_at) <= now() as "isFree",
      (array_agg(distinct execution_id::text))[1:${executionsMax}] as "executionIds"
    from held
    where reason is not null and draining is not true
    group by worker, reason
    order by min(command_id)`;
}

const OPEN = columnsOf(execution, ["executionId", "path", "status"]);

/** An open execution. */
export interface OpenExecution extends RowOf<typeof OPEN> {
  /** When it was written last. */
  since: Date;
}

/**
 * Open executions that nothing will move: no command is open, no batch is to be worked out, and nothing was written for
 * `staleMs`. (A step that waits for a sub-playbook has an open command.) Oldest first.
 */
export async function motionlessExecutions({ sql }: Reading, staleMs: number, limit: number): Promise<OpenExecution[]> {
  return await sql<OpenExecution[]>`
    select ${OPEN(sql, "e")}, e.updated_at as since
    from flow.execution e
    where e.status in ('PENDING', 'RUNNING')
      and e.updated_at <= now() - ${staleMs}::float8 * interval '1 millisecond'
      and not exists (
        select from flow.command c
        where c.execution_id = e.execution_id and c.status in ('PENDING', 'PAUSED', 'PARKED', 'CLAIMED', 'RUNNING')
      )
      and e.execution_id not in (
        select unnest(b.execution_ids) from flow.batch b where b.state in ('accepted', 'processing')
      )
    order by e.execution_id
    limit ${limit}`;
}

/** Open executions that are past their deadline by more than `staleMs`, the most overdue first. */
export async function overdueExecutions({ sql }: Reading, staleMs: number, limit: number): Promise<OpenExecution[]> {
  return await sql<OpenExecution[]>`
    select ${OPEN(sql)}, deadline_at as since
    from flow.execution
    where deadline_at <= now() - ${staleMs}::float8 * interval '1 millisecond' and ended_at is null and status <> 'PAUSED'
    order by deadline_at
    limit ${limit}`;
}

const LEFT = columnsOf(command, ["commandId", "executionId"]);

/** A command that is open although its execution has ended. */
export interface LeftCommand extends RowOf<typeof LEFT> {
  /** When its execution ended. */
  endedAt: Date;
}

/** Commands that are open although their execution has ended. */
export async function leftCommands({ sql }: Reading, limit: number): Promise<LeftCommand[]> {
  return await sql<LeftCommand[]>`
    select ${LEFT(sql, "c")}, e.ended_at as "endedAt"
    from flow.command c join flow.execution e on e.execution_id = c.execution_id
    where c.status in ('PENDING', 'PAUSED', 'PARKED', 'CLAIMED', 'RUNNING') and e.ended_at is not null
    limit ${limit}`;
}

/** Batches that were accepted and not worked out for `staleMs`, counted up to `limit`; the oldest one's time, and whose. */
export async function unprocessedBatches(
  { sql }: Reading,
  { staleMs, limit, executionsMax }: { staleMs: number; limit: number; executionsMax: number },
): Promise<{ count: number; since: Date | null; executionIds: string[] }> {
  const [row] = await sql<{ count: number; since: Date | null; executionIds: string[] }[]>`
    with old as (
      select request_id, created_at, execution_ids from flow.batch
      where state in ('accepted', 'processing')
        and created_at <= now() - ${staleMs}::float8 * interval '1 millisecond'
      order by request_id
      limit ${limit}
    )
    select count(*)::int as count, min(created_at) as since,
      coalesce((
        select (array_agg(distinct id::text))[1:${executionsMax}] from old o cross join lateral unnest(o.execution_ids) as id
      ), '{}') as "executionIds"
    from old`;
  return row ?? { count: 0, since: null, executionIds: [] };
}

/** How much is open. */
export interface OpenCounts {
  /** Paused ones too. */
  executions: number;
  paused: number;
  pending: number;
  held: number;
  batches: number;
  oldestPendingSeconds: number;
}

/** How much is open, each counted up to `max`; and the age in seconds of the oldest command that waits. */
export async function openCounts({ sql }: Reading, max: number): Promise<OpenCounts> {
  const [row] = await sql<OpenCounts[]>`
    select
      (select count(*)::int from (
        select from flow.execution where status in ('PENDING', 'RUNNING', 'PAUSED') limit ${max}
      ) as e) as executions,
      (select count(*)::int from (select from flow.execution where status = 'PAUSED' limit ${max}) as p) as paused,
      (select count(*)::int from (select from flow.command where status = 'PENDING' limit ${max}) as c) as pending,
      (select count(*)::int from (
        select from flow.command where status in ('CLAIMED', 'RUNNING') limit ${max}
      ) as h) as held,
      (select count(*)::int from (
        select from flow.batch where state in ('accepted', 'processing') limit ${max}
      ) as b) as batches,
      coalesce((
        select greatest(extract(epoch from now() - created_at), 0)::float8 from flow.command
        where status = 'PENDING' order by command_id limit 1
      ), 0) as "oldestPendingSeconds"`;
  if (row === undefined) throw new Error("a select of counts returned no row");
  return row;
}
