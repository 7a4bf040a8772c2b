import type { JsonObject } from "../../schema/words/json.ts";
import type { Database } from "../database/database.ts";
import type { Reading } from "./read-snapshot.ts";

/*
 * What the overview asks. Each statement walks open rows by an index of their own, or a bounded number of the newest, so that
 * a page which asks every few seconds costs the same whatever there is.
 */

/** A worker as the overview lists it. */
export interface ListedWorker {
  name: string;
  status: "ready" | "draining" | "offline";
  capacity: number;
  running: number;
  labels: JsonObject;
  capabilities: string[];
  about: JsonObject;
  heartbeatAgeMs: number;
  createdAt: Date;
  commands: HeldCommand[];
}

/** A command that a worker has. Times are milliseconds since 1970. */
export interface HeldCommand {
  commandId: string;
  executionId: string;
  path: string;
  step: string;
  attempt: number;
  claimedAt: number;
  leaseExpiresAt: number;
}

/** Workers: those that hold something first, then by their last sign of life; signed-off ones of the last hour too. */
export async function listedWorkers(
  { sql }: Reading,
  { limit, commandsMax }: { limit: number; commandsMax: number },
): Promise<ListedWorker[]> {
  return await sql<ListedWorker[]>`
    select r.name, r.status, r.capacity, held.count as running, r.labels, r.capabilities, r.about,
      greatest(round(extract(epoch from now() - r.heartbeat_at) * 1000), 0)::float8 as "heartbeatAgeMs",
      r.created_at as "createdAt", coalesce(run.commands, '[]'::json) as commands
    from flow.runtime r cross join lateral (
      select count(*)::int as count from flow.command c where c.worker = r.name and c.status in ('CLAIMED', 'RUNNING')
    ) as held left join lateral (
      select json_agg(json_build_object(
        'commandId', c.command_id::text, 'executionId', c.execution_id::text, 'path', e.path, 'step', c.step,
        'attempt', c.attempt, 'claimedAt', round(extract(epoch from c.claimed_at) * 1000)::float8,
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

/** A server's row. */
export interface ListedServer {
  name: string;
  about: JsonObject;
  createdAt: Date;
  heartbeatAgeMs: number;
}

/** Servers that have not signed off and were heard of within `silentMs`, the oldest first. */
export async function listedServers({ sql }: Reading, silentMs: number, limit: number): Promise<ListedServer[]> {
  return await sql<ListedServer[]>`
    select name, about, created_at as "createdAt",
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

/** How batches stand. */
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

/** Who has a lease now; null where nobody has. */
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
