import type { Snapshot } from "../../ports/execution-store.ts";
import type { Database } from "../database/database.ts";

/*
 * Which snapshots of an execution are kept. The newest has a table of its own, from which executions are loaded. Of all of them these stay
 * here: the youngest ones, and of the older ones every s-th, where s is a power of two that doubles as the execution grows. So their
 * number is bounded however long the log is, the distance to the next one before an event is at most 1/16 of the log, and near the log's
 * end it is that between two snapshots. An execution of a million events keeps 48 of 500: its state as of any event is a fold of at
 * most 32,000 events, of one of the last 32,000 a fold of 2,000.
 */

/** Most older snapshots that are kept in all sizes, beside half as many of the youngest. */
const OLDER_MAX = 32;
/** Characters of the older ones of an execution together: of large states fewer are kept. */
const OLDER_CHARS_MAX = 16 * 1024 * 1024;

/** How many older snapshots an execution keeps, by the text of its state: 2 to 32. */
export function olderSnapshotsMax(state: string): number {
  return Math.min(OLDER_MAX, Math.max(2, Math.floor(OLDER_CHARS_MAX / state.length)));
}

/** SQL: the snapshots of a flush with the number of each, for {@link keepSnapshots} and {@link thinSnapshots}. */
export function numberedSnapshots(rows: string, written: string): string {
  return `
  select execution_id, event_id, format, state, older_max, 1 + coalesce((
    select p.number from flow.past_snapshot as p where p.execution_id = t.execution_id order by p.event_id desc limit 1
  ), 0) as number
  from ${rows} as t
  where ${written}`;
}

/** SQL: keeps the snapshots of a flush. */
export function keepSnapshots(numbered: string): string {
  return `
  insert into flow.past_snapshot (execution_id, event_id, number, format, state)
  select execution_id, event_id, number, format, state from ${numbered}
  on conflict do nothing`;
}

/** SQL: removes those of the same executions that the new ones push out. They are few, and found by key. */
export function thinSnapshots(numbered: string): string {
  return `
  delete from flow.past_snapshot as p using ${numbered} as n
  where p.execution_id = n.execution_id and p.number <= n.number - n.older_max / 2
    and p.number % (2 ^ greatest(0, ceil(log(2, n.number::numeric / n.older_max))))::int <> 0`;
}

/** The newest snapshot of this format up to an event, of the older ones and the newest; null if not found. */
export async function findSnapshotUpTo(
  { sql }: Database,
  executionId: string,
  eventId: number,
  format: number,
): Promise<Snapshot | null> {
  const [row] = await sql<{ eventId: string; format: number; state: string }[]>`
    select event_id as "eventId", format, state from (
      (select event_id, format, state from flow.past_snapshot
       where execution_id = ${executionId} and event_id <= ${eventId} and format = ${format}
       order by event_id desc limit 1)
      union all
      select event_id, format, state from flow.execution_snapshot
      where execution_id = ${executionId} and event_id <= ${eventId} and format = ${format}
    ) as known
    order by event_id desc
    limit 1`;
  return row === undefined ? null : { ...row, eventId: Number(row.eventId) };
}
