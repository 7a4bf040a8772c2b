import type { EventRecord } from "../schema/event-record.ts";
import type { Database } from "./database.ts";
import { type EventRow, eventRecord, loadEvents } from "./execution-load.ts";

/**
 * Events of one type are looked for among this many at a time: no index has the type, and an execution may have a million
 * events. A page may so be short, or empty, and still not be the last.
 */
export const SCANNED_MAX = 10_000;

/** Which events of an execution: at most `limit` after the id `after` (0: from the first). */
export interface EventsAsked {
  after: number;
  limit: number;
  eventType?: string;
}

/** Events of an execution in order. `next` is where the following page begins; absent at the present end of the log. */
export interface EventPage {
  events: EventRecord[];
  next?: number;
}

/** A page of an execution's events. */
export async function listEvents(database: Database, executionId: string, asked: EventsAsked): Promise<EventPage> {
  const { after, limit, eventType } = asked;
  if (eventType !== undefined) return await listEventsOfType(database, executionId, eventType, { after, limit });
  const events = await loadEvents(database, executionId, after, limit + 1);
  if (events.length <= limit) return { events };
  const shown = events.slice(0, limit);
  return { events: shown, next: shown.at(-1)?.event_id ?? after };
}

async function listEventsOfType(
  database: Database,
  executionId: string,
  eventType: string,
  { after, limit }: { after: number; limit: number },
): Promise<EventPage> {
  const { sql } = database;
  // No event is older than its execution: partitions of earlier months are not looked into.
  const [found] = await sql<{ ids: string[]; last: string | null; scanned: number }[]>`
    with scanned as materialized (
      select event_id, event_type from flow.event
      where execution_id = ${executionId} and event_id > greatest(${after}::bigint, ${executionId}::bigint)
      order by event_id
      limit ${SCANNED_MAX}
    )
    select
      array(select event_id::text from scanned where event_type = ${eventType} order by event_id limit ${limit + 1}) as ids,
      (select max(event_id) from scanned) as last,
      (select count(*)::int from scanned) as scanned`;
  if (found === undefined || found.last === null) return { events: [] };
  const ids = found.ids.slice(0, limit);
  const events = await loadThese(database, executionId, ids);
  if (found.ids.length > limit) return { events, next: Number(ids.at(-1)) };
  return found.scanned === SCANNED_MAX ? { events, next: Number(found.last) } : { events };
}

/** The events of an execution with these ids, in order. */
export async function loadThese(
  { sql }: Database,
  executionId: string,
  ids: readonly string[],
): Promise<EventRecord[]> {
  if (ids.length === 0) return [];
  const rows = await sql<EventRow[]>`
    select event_id, execution_id, catalog_id, event_type, node_id, node_name, node_type, status, created_at,
      parent_event_id, parent_execution_id, command_id, worker, attempt, iteration, page, step_run_id, task_run_id,
      duration_ms, result, error, meta
    from flow.event
    where execution_id = ${executionId} and event_id = any(${[...ids]}::bigint[])
    order by event_id`;
  return rows.map(eventRecord);
}
