import type { Reading } from "./read-snapshot.ts";

/* The doctor's queries about the database itself: the numbers that an operator of PostgreSQL checks first. */

/** A table of flow with many dead rows. */
export interface BloatedTable {
  name: string;
  dead: number;
  live: number;
  lastVacuum: Date | null;
}

/**
 * Tables with more than `deadMin` dead rows and more than `share` of their live ones: autovacuum, which begins at 0.2 by
 * default, does not keep up. By PostgreSQL's own statistics.
 */
export async function bloatedTables(
  { sql }: Reading,
  { deadMin, share, limit }: { deadMin: number; share: number; limit: number },
): Promise<BloatedTable[]> {
  return await sql<BloatedTable[]>`
    select schemaname || '.' || relname as name, n_dead_tup::float8 as dead, n_live_tup::float8 as live,
      greatest(last_vacuum, last_autovacuum) as "lastVacuum"
    from pg_stat_user_tables
    where schemaname in ('flow', 'auth') and n_dead_tup >= ${deadMin} and n_dead_tup >= ${share}::float8 * n_live_tup
    order by n_dead_tup desc
    limit ${limit}`;
}

/** Something that keeps dead rows from being removed. */
export interface VacuumBlocker {
  kind: "transaction" | "prepared" | "slot";
  /** Process id, name of the prepared transaction, or of the slot. */
  id: string;
  /** Role, application and address, if PostgreSQL shows them. */
  who: string;
  since: Date | null;
}

/**
 * The holders of the oldest rows: transactions idle for `idleMs`, and prepared transactions and replication slots of that age.
 * PostgreSQL shows sessions of other roles only to members of pg_read_all_stats. Never a statement's text: it may contain a
 * value.
 */
export async function vacuumBlockers({ sql }: Reading, idleMs: number, limit: number): Promise<VacuumBlocker[]> {
  const since = sql`now() - ${idleMs}::float8 * interval '1 millisecond'`;
  return await sql<VacuumBlocker[]>`
    (select 'transaction' as kind, pid::text as id,
      concat_ws(', ', 'role ' || usename, nullif(application_name, ''), host(client_addr)) as who, state_change as since
    from pg_stat_activity
    where datname = current_database() and state in ('idle in transaction', 'idle in transaction (aborted)')
      and state_change <= ${since} and pid <> pg_backend_pid()
    order by state_change limit ${limit})
    union all
    (select 'prepared', gid, 'role ' || owner, prepared from pg_prepared_xacts
    where database = current_database() and prepared <= ${since}
    order by prepared limit ${limit})
    union all
    (select 'slot', slot_name::text, coalesce(plugin::text, slot_type), null from pg_replication_slots
    where not active and (xmin is not null or catalog_xmin is not null)
    limit ${limit})`;
}

/** Numbers of the database as a whole. */
export interface DatabaseNumbers {
  bytes: number;
  /** Transactions since the oldest row that was not frozen; at two thousand million PostgreSQL refuses to write. */
  transactionAge: number;
  connections: number;
  connectionsMax: number;
}

/** The database's size, age and connections. */
export async function databaseNumbers({ sql }: Reading): Promise<DatabaseNumbers> {
  const [row] = await sql<DatabaseNumbers[]>`
    select pg_database_size(oid)::float8 as bytes, age(datfrozenxid)::float8 as "transactionAge",
      (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
      current_setting('max_connections')::int as "connectionsMax"
    from pg_database where datname = current_database()`;
  if (row === undefined) throw new Error("pg_database has no row of the current database");
  return row;
}

/** Whether the log's default partition has events: then the partition of their month was not made in time. */
export async function hasEventsInDefaultPartition({ sql }: Reading): Promise<boolean> {
  const [row] = await sql<{ stray: boolean }[]>`select exists (select from flow.event_default) as stray`;
  return row?.stray === true;
}

/** Sessions of people, where this database has them. */
export interface SessionNumbers {
  active: number;
  /** End within the next hour, whatever their users do. */
  endingSoon: number;
  /** Over for more than a day and still there. */
  left: number;
}

/** Counts up to `max` sessions each; undefined where the schema has none yet. */
export async function sessionNumbers({ sql }: Reading, max: number): Promise<SessionNumbers | undefined> {
  const [table] = await sql<{ known: boolean }[]>`select to_regclass('auth.sessions') is not null as known`;
  if (table?.known !== true) return undefined;
  const [row] = await sql<SessionNumbers[]>`
    select
      (select count(*)::int from (
        select from auth.sessions
        where expires_at > now() and idle_expires_at > now() and revoked_at is null limit ${max}
      ) as a) as active,
      (select count(*)::int from (
        select from auth.sessions
        where expires_at > now() and expires_at <= now() + interval '1 hour' and revoked_at is null limit ${max}
      ) as e) as "endingSoon",
      (select count(*)::int from (
        select from auth.sessions where expires_at <= now() - interval '1 day' limit ${max}
      ) as l) as left`;
  return row;
}
