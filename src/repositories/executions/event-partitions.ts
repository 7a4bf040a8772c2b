import { firstIdAt } from "../../platform/system/ids.ts";
import { type Database, type Transaction, transaction } from "../database/database.ts";

/** Any number: what servers lock while they make or drop partitions ("evnt" in ASCII). */
export const PARTITIONS_LOCK = 0x65766e74;
/** Writers queue behind a waiting table lock. */
const TABLE_LOCK_MS = 5_000;
/** With this month and the next two, a server that starts once in two months is enough. */
const MONTHS_AHEAD = 2;

/**
 * Creates the partitions of the event log for the month of `from` (default: now, by the database's clock) and two more, if they
 * are missing, and returns the names of the new ones: `event_2026_11` holds the ids of November 2026, UTC. Events of such a
 * month that went to the default partition, because this was not called in time, are moved. Any number of servers may call it
 * at once. Call it at each start and once a day.
 */
export async function ensureEventPartitions(database: Database, from?: Date): Promise<string[]> {
  return transaction(database, async (tx) => {
    await tx.sql`select pg_advisory_xact_lock(${PARTITIONS_LOCK})`;
    await tx.sql.unsafe(`set local lock_timeout = ${TABLE_LOCK_MS}`);
    const existing = await listPartitions(tx);
    const missing = months(from ?? (await databaseTime(tx))).filter(({ name }) => !existing.has(name));
    for (const month of missing) await makePartition(tx, month);
    return missing.map(({ name }) => name);
  });
}

interface Month {
  name: string;
  /** Its first id, and the first one after it. */
  from: number;
  to: number;
}

function months(start: Date): Month[] {
  return Array.from({ length: MONTHS_AHEAD + 1 }, (_, ahead) => {
    const first = new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + ahead));
    const next = Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + ahead + 1);
    const name = `event_${first.toISOString().slice(0, 7).replace("-", "_")}`;
    return { name, from: firstIdAt(first.getTime()), to: firstIdAt(next) };
  });
}

async function listPartitions({ sql }: Transaction): Promise<Set<string>> {
  const rows = await sql<{ name: string }[]>`
    select relname as name from pg_inherits join pg_class on oid = inhrelid where inhparent = 'flow.event_log'::regclass`;
  return new Set(rows.map(({ name }) => name));
}

async function databaseTime({ sql }: Transaction): Promise<Date> {
  const [row] = await sql<[{ now: Date }]>`select now() as now`;
  return row.now;
}

/**
 * Filled first and attached then: PostgreSQL refuses a partition for rows that the default one holds. The default partition
 * is locked before it is searched, so that no row slips in; while it is empty, as it should be, this takes milliseconds, and
 * events of other months are written meanwhile.
 */
async function makePartition({ sql }: Transaction, { name, from, to }: Month): Promise<void> {
  const table = sql(`flow.${name}`);
  await sql`lock table flow.event_default in access exclusive mode`;
  // A segment of up to 8 KB stays in its row.
  await sql`
    create table ${table} (like flow.event_log including defaults including constraints including storage)
    with (toast_tuple_target = 8160)`;
  await sql`
    with moved as (delete from flow.event_default where event_id >= ${from} and event_id < ${to} returning *)
    insert into ${table} select * from moved`;
  // Bounds cannot be parameters of this statement; both are numbers computed here.
  await sql.unsafe(`alter table flow.event_log attach partition flow.${name} for values from (${from}) to (${to})`);
}
