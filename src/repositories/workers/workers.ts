import { numbers } from "../database/bulk-columns.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { type Page, type PageRequest, page } from "../database/page.ts";
import { runtime } from "../tables/runtime.ts";

/**
 * A process that takes part. The id comes from `reserveIds` and is not used when the name is known already. `about` has process id,
 * host name and version; of a worker also `instance`.
 */
export interface NewRuntime
  extends Pick<typeof runtime.$inferSelect, "runtimeId" | "kind" | "name" | "capacity" | "labels" | "about"> {
  capabilities: readonly string[];
  /** Of a worker: that of its process, where it says one. */
  instance?: string;
}

/** The result of a registration. */
export interface Registered {
  /** Of the process's row. */
  id: string;
  /** Commands that another process held under this name: their leases are over. */
  released: string[];
  /** That process did not sign off: it was killed. */
  isGone: boolean;
}

/**
 * Registers a process as ready, or registers it again under its name. A worker of another `instance` than the one before is
 * another process: what that one held it does not run, and is released.
 *
 * Locks: its row, and the commands that are released, in the order of their ids.
 */
export async function registerRuntime({ sql }: Database, entry: NewRuntime): Promise<Registered> {
  const { instance = null } = entry;
  const [row] = await sql<Registered[]>`
    with own as materialized (
      select c.command_id from flow.command c
      where c.worker = ${entry.name} and c.status in ('CLAIMED', 'RUNNING') and ${instance}::text is not null
        and not exists (
          select from flow.runtime r
          where r.kind = ${entry.kind} and r.name = ${entry.name} and r.about->>'instance' = ${instance}::text
        )
      order by c.command_id
      for no key update
    ), released as (
      update flow.command as c set lease_expires_at = now()
      from own where c.command_id = own.command_id
      returning c.command_id
    ), registered as (
    insert into flow.runtime (runtime_id, kind, name, status, capacity, labels, capabilities, about)
    values (${entry.runtimeId}, ${entry.kind}, ${entry.name}, 'ready', ${entry.capacity},
      ${sql.json(entry.labels)}, ${[...entry.capabilities]}::text[], ${sql.json(entry.about)})
    on conflict (kind, name) do update set
      status = 'ready',
      capacity = excluded.capacity,
      running = 0,
      labels = excluded.labels,
      capabilities = excluded.capabilities,
      about = excluded.about,
      heartbeat_at = now()
    returning runtime_id as id
    )
    select id, array(select command_id from released order by command_id) as released,
      -- As it was before this statement.
      not exists (
        select from flow.runtime where kind = ${entry.kind} and name = ${entry.name} and status = 'offline'
      ) as "isGone"
    from registered`;
  if (row === undefined) throw new Error("an upsert into flow.runtime returned no row");
  return row;
}

/**
 * The process that has a worker's name: registered, not silent for `staleMs`, and not gone ({@link noteGone}). `instance` is null where it
 * told none.
 */
export async function findLiveWorker(
  { sql }: Database,
  name: string,
  staleMs: number,
): Promise<{ instance: string | null } | undefined> {
  const [row] = await sql<{ instance: string | null }[]>`
    select about->>'instance' as instance from flow.runtime
    where kind = 'worker' and name = ${name} and status <> 'offline'
      and heartbeat_at > now() - ${staleMs}::float8 * interval '1 millisecond'
      and coalesce((about->>'gone_at')::timestamptz < heartbeat_at, true)`;
  return row;
}

/**
 * Notes that a worker's process is gone, unless a heartbeat of it came in the last `silentMs`, to whichever server. The next one
 * outdates the note. Commands keep their leases: only the name may be taken.
 */
export async function noteGone(
  { sql }: Database,
  { name, instance, silentMs }: { name: string; instance: string; silentMs: number },
): Promise<void> {
  await sql`
    update flow.runtime set about = about || jsonb_build_object('gone_at', now())
    where kind = 'worker' and name = ${name} and status <> 'offline' and about->>'instance' = ${instance}
      and heartbeat_at <= now() - ${silentMs}::float8 * interval '1 millisecond'`;
}

/** A worker's report of its running commands. */
export interface HeartbeatInput {
  name: string;
  /** That of its process; absent: any. */
  instance?: string;
  running: readonly { commandId: string; attempt: number }[];
  /** It claims nothing more. It stays so until it registers again. */
  draining: boolean;
  leaseMs: number;
  /** Held commands that it does not list and that it claimed longer ago than this are reported as `unlisted`. */
  graceMs: number;
}

/** Iterations of a command that people have ended. */
export interface StoppedIterations {
  commandId: string;
  iterations: number[];
}

/** The answer to a heartbeat. Each listed command is in `held` or in one of the next three. */
export interface Heartbeat {
  /** Its claims, whose leases now last for `leaseMs` at least. One whose row is being written at this moment keeps the lease it has. */
  held: string[];
  /** Cancelled: to be stopped. */
  cancelled: string[];
  /**
   * It ended otherwise under this very claim; its report was faster than this heartbeat. A first claim of a command that never was
   * looks the same, as does one of an execution that was deleted.
   */
  ended: string[];
  /** Not its claim any more, or never was. */
  lost: string[];
  /** Held by this worker in the database, and not by its own account: the answer to its claim was lost. */
  unlisted: string[];
  /** Of those in `held`: iterations that people have ended. */
  stopped: StoppedIterations[];
}

/**
 * A worker that runs more commands than this gets leases half as long again, and each is renewed when less than `leaseMs` is left of it: at
 * every fourth or fifth heartbeat. Renewed at each one, 50,000 commands are 3,300 rows a second, which took PostgreSQL 90 ms of
 * each second. The price: those of such a worker go to others up to half a lease later when it dies.
 */
const MANY_COMMANDS = 256;
const LONG_LEASE = 1.5;

/** Most commands of {@link Heartbeat.unlisted} at a time; the next heartbeat finds the rest. */
const UNLISTED_MAX = 1_000;

/**
 * A worker's heartbeat, in one statement: touches its row and renews the leases of its running commands. Undefined if no worker
 * of that name is registered, it has signed off, or another process has registered under the name. Locks: its own row, and
 * those commands that are not being written (`skip locked`): a flush that ends some of them neither waits for this nor
 * deadlocks with it. The next heartbeat comes long before a lease expires.
 */
export async function recordHeartbeat({ sql }: Database, input: HeartbeatInput): Promise<Heartbeat | undefined> {
  const ids = numbers(input.running, ({ commandId }) => commandId);
  const attempts = numbers(input.running, ({ attempt }) => attempt);
  const renewedMs = input.running.length > MANY_COMMANDS ? LONG_LEASE * input.leaseMs : input.leaseMs;
  const after = (ms: number) => sql`now() + ${ms}::float8 * interval '1 millisecond'`;
  const [row] = await sql<Heartbeat[]>`
    with touched as (
      update flow.runtime set
        heartbeat_at = now(),
        running = ${input.running.length},
        status = case when ${input.draining} then 'draining' else status end
      where kind = 'worker' and name = ${input.name} and status <> 'offline' ${ofInstance(sql, input.instance)}
      returning name
    ), listed as materialized (
      select t.command_id, case
          -- The only claim of a command has reported its end: then the row is gone.
          when c.command_id is null and t.attempt = 1 then 'ended'
          when c.attempt is distinct from t.attempt then 'lost'
          when c.status in ('CLAIMED', 'RUNNING') and c.worker = ${input.name} then 'held'
          when c.status = 'CANCELLED' then 'cancelled'
          when c.status in ('COMPLETED', 'FAILED') then 'ended'
          else 'lost'
        end as fate, c.stopped_iterations
      from (select unnest(${ids}::bigint[]) as command_id, unnest(${attempts}::int[]) as attempt) as t
      left join flow.command c using (command_id)
    ), own as materialized (
      select c.command_id from flow.command c
      where c.command_id in (select command_id from listed where fate = 'held')
        and c.worker = ${input.name} and c.status in ('CLAIMED', 'RUNNING') and exists (select from touched)
        and c.lease_expires_at < ${after(input.leaseMs)}
      for no key update skip locked
    ), renewed as (
      update flow.command as c set lease_expires_at = ${after(renewedMs)}
      from own where c.command_id = own.command_id
    ), unlisted as materialized (
      select command_id from flow.command
      where worker = ${input.name} and status in ('CLAIMED', 'RUNNING')
        and claimed_at <= now() - ${input.graceMs}::float8 * interval '1 millisecond'
        and command_id not in (select command_id from listed)
      order by command_id
      limit ${UNLISTED_MAX}
    )
    select ${listed(sql, "held")} as held, ${listed(sql, "cancelled")} as cancelled, ${listed(sql, "ended")} as ended,
      ${listed(sql, "lost")} as lost, array(select command_id from unlisted) as unlisted,
      (select coalesce(json_agg(json_build_object('commandId', command_id::text, 'iterations', stopped_iterations)), '[]')
        from listed where fate = 'held' and stopped_iterations is not null) as stopped
    from touched`;
  return row;
}

/** True when another process has registered under the name. */
export async function isReplaced({ sql }: Database, name: string, instance: string | undefined): Promise<boolean> {
  const rows = await sql`
    select from flow.runtime
    where kind = 'worker' and name = ${name} and status <> 'offline' and about->>'instance' <> ${instance ?? null}::text`;
  return rows.length > 0;
}

/** True of this process's row, and of a row without an instance. */
function ofInstance(sql: Database["sql"], instance: string | undefined) {
  return instance === undefined ? sql`` : sql`and coalesce(about->>'instance', ${instance}) = ${instance}`;
}

/** A command of which something is to stop: all of it, or iterations of it. */
export interface StoppedWork {
  commandId: string;
  isCancelled: boolean;
  /** Ended by hand, while the command goes on. */
  iterations: number[];
}

/** What is to stop of these commands. */
export async function stoppedAmong({ sql }: Database, commandIds: readonly string[]): Promise<StoppedWork[]> {
  return await sql<StoppedWork[]>`
    select command_id as "commandId", status = 'CANCELLED' as "isCancelled",
      case when status in ('CLAIMED', 'RUNNING') then coalesce(stopped_iterations, '{}') else '{}' end as iterations
    from flow.command
    where command_id = any(${numbers(commandIds, (id) => id)}::bigint[])
      and (status = 'CANCELLED' or stopped_iterations is not null)`;
}

function listed(sql: Database["sql"], fate: string) {
  return sql`array(select command_id from listed where fate = ${fate})`;
}

/**
 * Signs a worker off: sets it offline and ends the leases of its commands, so that others may claim them at once. Returns these
 * commands; undefined if no worker of that name is registered, or another process is.
 */
export async function deregisterWorker(
  { sql }: Database,
  name: string,
  instance?: string,
): Promise<string[] | undefined> {
  const [row] = await sql<{ released: string[] }[]>`
    with gone as (
      update flow.runtime set status = 'offline', running = 0, heartbeat_at = now()
      where kind = 'worker' and name = ${name} ${ofInstance(sql, instance)}
      returning name
    ), own as materialized (
      select c.command_id from flow.command c
      where c.worker = ${name} and c.status in ('CLAIMED', 'RUNNING') and exists (select from gone)
      order by c.command_id
      for no key update
    ), released as (
      update flow.command as c set lease_expires_at = now()
      from own where c.command_id = own.command_id
      returning c.command_id
    )
    select array(select command_id from released order by command_id) as released from gone`;
  return row?.released;
}

const POOL = columnsOf(runtime, [
  "runtimeId",
  "name",
  "status",
  "capacity",
  "labels",
  "capabilities",
  "about",
  "heartbeatAt",
  "createdAt",
]);

/** A worker as the pool shows it. */
export interface PoolWorker extends RowOf<typeof POOL> {
  /** Commands that it holds according to the database. */
  running: number;
  /** Milliseconds since then, by the database's clock. */
  heartbeatAgeMs: number;
}

/** Workers in the order of their names. The cursor is a name. */
export async function listWorkers(
  { sql }: Database,
  { limit, cursor }: PageRequest<string>,
): Promise<Page<PoolWorker, string>> {
  const rows = await sql<PoolWorker[]>`
    select ${POOL(sql, "r")}, held.count as running,
      greatest(round(extract(epoch from now() - r.heartbeat_at) * 1000), 0)::float8 as "heartbeatAgeMs"
    from flow.runtime r cross join lateral (
      select count(*)::int as count from flow.command c
      where c.worker = r.name and c.status in ('CLAIMED', 'RUNNING')
    ) as held
    where r.kind = 'worker' and r.name > ${cursor ?? ""}
    order by r.name
    limit ${limit + 1}`;
  return page(rows, limit, (last) => last.name);
}

/** Touches a server's row; false when it is not registered. */
export async function touchServer({ sql }: Database, name: string): Promise<boolean> {
  const { count } = await sql`
    update flow.runtime set heartbeat_at = now() where kind = 'server' and name = ${name} and status <> 'offline'`;
  return count > 0;
}

/** Signs a server off. */
export async function signOffServer({ sql }: Database, name: string): Promise<void> {
  await sql`
    update flow.runtime set status = 'offline', heartbeat_at = now() where kind = 'server' and name = ${name}`;
}

/** Deletes rows of processes that were silent for so long; gives how many. Their commands are claimable without the rows. */
export async function deleteSilentRuntimes({ sql }: Database, silentMs: number): Promise<number> {
  const { count } = await sql`
    delete from flow.runtime where heartbeat_at <= now() - ${silentMs}::float8 * interval '1 millisecond'`;
  return count;
}
