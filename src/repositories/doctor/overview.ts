import { columnsOf, jsonFields, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { command } from "../tables/execution.ts";
import { runtime } from "../tables/runtime.ts";
import type { Reading } from "./read-snapshot.ts";

/*
 * Queries of the overview. Each statement reads open rows by their own index, or a bounded number of the newest rows, so that a page
 * which asks every few seconds costs the same at any size of the tables.
 */

const WORKER = columnsOf(runtime, ["name", "status", "capacity", "labels", "capabilities", "about", "createdAt"]);

/** A worker as the overview lists it. */
export interface ListedWorker extends RowOf<typeof WORKER> {
  running: number;
  heartbeatAgeMs: number;
  commands: HeldCommand[];
}

const HELD = ["commandId", "executionId", "step", "attempt"] as const;
const HELD_FIELDS = jsonFields(command, HELD, "c");

/** A command that a worker has. Times are milliseconds since 1970. */
export interface HeldCommand extends Pick<typeof command.$inferSelect, (typeof HELD)[number]> {
  path: string;
  claimedAt: number;
  leaseExpiresAt: number;
}

/** Workers: those that hold something first, then by their last sign of life; signed-off ones of the last hour too. */
export async function listedWorkers(
  { sql }: Reading,
  { limit, commandsMax }: { limit: number; commandsMax: number },
): Promise<ListedWorker[]> {
  return await sql<ListedWorker[]>`
    select ${WORKER(sql, "r")}, held.count as running,
      greatest(round(extract(epoch from now() - r.heartbeat_at) * 1000), 0)::float8 as "heartbeatAgeMs",
      coalesce(run.commands, '[]'::json) as commands
    from flow.runtime r cross join lateral (
      select count(*)::int as count from flow.command c where c.worker = r.name and c.status in ('CLAIMED', 'RUNNING')
    ) as held left join lateral (
      select json_agg(json_build_object(
        ${sql.unsafe(HELD_FIELDS)}, 'path', e.path, 'claimedAt', round(extract(epoch from c.claimed_at) * 1000)::float8,
        'leaseExpiresAt', round(extract(epoch from c.lease_expires_at) * 1000)::float8
      ) order by c.command_id) as commands
      from (
        select * from flow.command where worker = r.name and status in ('CLAIMED', 'RUNNING')
        order by command_id limit ${commandsMax}
      ) as c join flow.execution e using (execution_id)
    ) as run on true
    where r.kind = 'worker' and (r.status <> 'offline' or held.count > 0 or r.heartbeat_at > now() - interval '1 hour')
    order by held.count desc, r.heartbeat_at desc, r.name
    limit ${limit}`;
}

const SERVER = columnsOf(runtime, ["name", "about", "createdAt"]);

/** A server's row. */
export interface ListedServer extends RowOf<typeof SERVER> {
  heartbeatAgeMs: number;
}

/** Servers that have not signed off and were active within `silentMs`, the oldest first. */
export async function listedServers({ sql }: Reading, silentMs: number, limit: number): Promise<ListedServer[]> {
  return await sql<ListedServer[]>`
    select ${SERVER(sql)},
      greatest(round(extract(epoch from now() - heartbeat_at) * 1000), 0)::float8 as "heartbeatAgeMs"
    from flow.runtime
    where kind = 'server' and status <> 'offline' and heartbeat_at > now() - ${silentMs}::float8 * interval '1 millisecond'
    order by created_at, name
    limit ${limit}`;
}

/** How many executions are open, each counted to `max`. */
export async function openExecutions(
  { sql }: Reading,
  max: number,
): Promise<{ running: number; pending: number; paused: number }> {
  const of = (status: string) => sql`
    (select count(*)::int from (select from flow.execution where status = ${status} limit ${max}) as counted)`;
  const [row] = await sql<{ running: number; pending: number; paused: number }[]>`
    select ${of("RUNNING")} as running, ${of("PENDING")} as pending, ${of("PAUSED")} as paused`;
  return row ?? { running: 0, pending: 0, paused: 0 };
}

/** Counts of batches by state. */
export interface BatchNumbers {
  accepted: number;
  processing: number;
  oldestMs: number | null;
  /** Of the newest `looked` batches. */
  failed: number;
  looked: number;
  code: string | null;
  message: string | null;
  failedAt: Date | null;
}

/** Open batches, counted to `max`, and what failed among the newest `newest`. */
export async function batchNumbers({ sql }: Reading, max: number, newest: number): Promise<BatchNumbers> {
  const of = (state: string) => sql`
    (select count(*)::int from (select from flow.batch where state in ('accepted', 'processing') and state = ${state}
      limit ${max}) as counted)`;
  const [row] = await sql<BatchNumbers[]>`
    with newest as materialized (
      select request_id, state, code, message, updated_at from flow.batch order by request_id desc limit ${newest}
    ), last as (
      select code, message, updated_at from newest where state = 'failed' order by request_id desc limit 1
    )
    select ${of("accepted")} as accepted, ${of("processing")} as processing,
      (
        select greatest(round(extract(epoch from now() - created_at) * 1000), 0)::float8 from flow.batch
        where state in ('accepted', 'processing') order by request_id limit 1
      ) as "oldestMs",
      (select count(*)::int from newest where state = 'failed') as failed,
      (select count(*)::int from newest) as looked,
      (select code from last) as code, (select message from last) as message,
      (select updated_at from last) as "failedAt"`;
  if (row === undefined) throw new Error("a select of counts returned no row");
  return row;
}

/** The current holder of a lease; null where it is free. */
export async function leaseHolder({ sql }: Reading, name: string): Promise<string | null> {
  const [row] = await sql<{ holder: string }[]>`
    select holder from flow.lease where name = ${name} and expires_at > now()`;
  return row?.holder ?? null;
}

/** The moment by the database's clock, and its version: the least that can be asked of it. */
export async function databaseClock({ sql }: Pick<Database, "sql">): Promise<{ now: Date; version: string }> {
  const [row] = await sql<{ now: Date; version: string }[]>`
    select now() as now, current_setting('server_version') as version`;
  if (row === undefined) throw new Error("a select of the clock returned no row");
  return row;
}
