import type { EventRecord } from "../../schema/rules/event-record.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database, Transaction } from "../database/database.ts";
import { execution } from "../tables/execution.ts";
import { eventsOf, type LogRow, logRows } from "./log-rows.ts";

const COLUMNS = columnsOf(execution, [
  "executionId",
  "catalogId",
  "path",
  "version",
  "status",
  "lastEventId",
  "parentExecutionId",
  "rootExecutionId",
  "startedBy",
]);

/** An execution's row, and its newest snapshot. */
export interface LoadedExecution extends Omit<RowOf<typeof COLUMNS>, "lastEventId"> {
  lastEventId: number;
  snapshot: { eventId: number; format: number; state: string } | null;
}

/** An execution that was started under an idempotency key. */
export interface StartedExecution {
  executionId: string;
  bodySha256: string;
  status: LoadedExecution["status"];
}

/** The rows with these ids and their snapshots, each with its snapshot as of one moment; those that exist. */
export async function loadExecutions(
  { sql }: Database,
  executionIds: readonly string[],
): Promise<Map<string, LoadedExecution>> {
  type Row = RowOf<typeof COLUMNS> & {
    eventId: string | null;
    format: number | null;
    state: string | null;
  };
  const rows = await sql<Row[]>`
    select ${COLUMNS(sql, "e")}, s.event_id as "eventId", s.format, s.state
    from flow.execution e left join flow.execution_snapshot s using (execution_id)
    where e.execution_id = any(${[...executionIds]}::bigint[])`;
  const loaded = rows.map(({ eventId, format, state, ...execution }) => {
    const snapshot =
      eventId === null || format === null || state === null ? null : { eventId: Number(eventId), format, state };
    return { ...execution, lastEventId: Number(execution.lastEventId), snapshot };
  });
  return new Map(loaded.map((one) => [one.executionId, one]));
}

/** Events of an execution after `after` (0: all), in order, at most `limit`, as `toRecord` made them. */
export async function loadEvents(
  database: Pick<Database | Transaction, "sql">,
  executionId: string,
  after: number,
  limit: number,
): Promise<EventRecord[]> {
  const rows = await database.sql<LogRow[]>`
    select l.* from ${logRows(database, executionId, after, limit)} order by l.event_id`;
  return pageOf(rows, after, limit);
}

/** Where to begin to read the log of an execution: after this event, or with its first (0). */
export interface LogPlace {
  executionId: string;
  after: number;
}

/**
 * {@link loadEvents} of several executions, `limit` of each, in the order of the places. Each is unpacked when it is called: one that is
 * damaged is no reason not to load the others.
 */
export async function loadEventsAt(
  database: Database,
  places: readonly LogPlace[],
  limit: number,
): Promise<(() => EventRecord[])[]> {
  const { sql } = database;
  const rows = await sql<(LogRow & { place: number })[]>`
    select l.*, asked.place::int as place
    from unnest(${places.map((one) => one.executionId)}::bigint[], ${places.map((one) => String(one.after))}::bigint[])
      with ordinality as asked (id, after, place)
    cross join lateral ${logRows(database, sql`asked.id`, sql`asked.after`, limit)}
    order by asked.place, l.event_id`;
  const found = places.map((): LogRow[] => []);
  for (const row of rows) found[row.place - 1]?.push(row);
  return found.map((log, index) => () => pageOf(log, places[index]?.after ?? 0, limit));
}

function pageOf(rows: readonly LogRow[], after: number, limit: number): EventRecord[] {
  return eventsOf(rows)
    .filter(({ event_id }) => event_id > after)
    .slice(0, limit);
}

/** The execution that a caller started under this idempotency key, or undefined. */
export async function findStartByKey(
  { sql }: Database,
  caller: string,
  key: string,
): Promise<StartedExecution | undefined> {
  const [row] = await sql<StartedExecution[]>`
    select execution_id as "executionId", body_sha256 as "bodySha256", status
    from flow.execution
    where caller = ${caller} and idempotency_key = ${key}`;
  return row;
}

/** Executions that are open past their deadline by the database's clock, the most overdue first; paused ones once they are resumed. */
export async function findOverdue({ sql }: Database, limit: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select execution_id as id from flow.execution
    where deadline_at <= now() and ended_at is null and status <> 'PAUSED'
    order by deadline_at
    limit ${limit}`;
  return rows.map(({ id }) => id);
}
