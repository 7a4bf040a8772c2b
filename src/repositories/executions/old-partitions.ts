import postgres from "postgres";
import { firstIdAt } from "../../platform/system/ids.ts";
import { type Database, transaction } from "../database/database.ts";
import { PARTITIONS_LOCK } from "./event-partitions.ts";

/**
 * Dropping needs an exclusive lock on the whole log, and writers queue behind it: so it waits for less time than an event batch
 * may wait (0.25 s). Once it has the lock, dropping takes milliseconds, whatever the size: the files are removed after the
 * commit.
 */
const TABLE_LOCK_MS = 200;
/** SQLSTATE: the lock was not to be had in time. */
const LOCK_NOT_AVAILABLE = "55P03";

/**
 * Names of the partitions of the event log that hold only ids from before a moment, and no event of an execution that still
 * exists: a long-running execution, and one called by it, keeps its log. Oldest first. The default partition is never included.
 * The caller may act later: new event ids follow the clock, so none falls into a range that has passed.
 */
export async function findDroppablePartitions(database: Database, before: Date): Promise<string[]> {
  const { sql } = database;
  const old = await sql<{ name: string; to: string }[]>`
    select name, upper_id as to from (
      select c.relname as name,
        substring(pg_get_expr(c.relpartbound, c.oid) from 'TO [(]''?([0-9]+)''?[)]$')::bigint as upper_id
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'flow.event_log'::regclass
    ) as partition
    where upper_id <= ${firstIdAt(before.getTime())}
    order by upper_id`;
  const droppable: string[] = [];
  for (const partition of old) if (!(await isNeeded(database, partition))) droppable.push(partition.name);
  return droppable;
}

/**
 * By the key of the executions that began before the partition's end, each looked up in it: `limit` keeps the planner from
 * joining, which would read a whole month of events.
 */
async function isNeeded({ sql }: Database, { name, to }: { name: string; to: string }): Promise<boolean> {
  const rows = await sql`
    select from flow.execution e
    cross join lateral (
      select from ${sql(`flow.${name}`)} p where p.execution_id = e.execution_id limit 1
    ) as event
    where e.execution_id < ${to}
    limit 1`;
  return rows.length > 0;
}

/**
 * Drops a partition of the event log with everything in it. False, and nothing is changed, when the log is too busy at the
 * moment, or another server is making partitions: to be tried again later.
 */
export async function dropPartition(database: Database, name: string): Promise<boolean> {
  try {
    return await transaction(database, async ({ sql }) => {
      const [lock] = await sql<[{ isMine: boolean }]>`
        select pg_try_advisory_xact_lock(${PARTITIONS_LOCK}) as "isMine"`;
      if (!lock.isMine) return false;
      await sql.unsafe(`set local lock_timeout = ${TABLE_LOCK_MS}`);
      await sql`drop table if exists ${sql(`flow.${name}`)}`;
      return true;
    });
  } catch (error) {
    if (error instanceof postgres.PostgresError && error.code === LOCK_NOT_AVAILABLE) return false;
    throw error;
  }
}
