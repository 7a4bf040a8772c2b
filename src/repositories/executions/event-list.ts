import type { EventRecord } from "../../schema/rules/event-record.ts";
import type { Database } from "../database/database.ts";
import { page } from "../database/page.ts";
import { eventsOf, isAfter, type LogRow, unpacked } from "../orchestration/log-rows.ts";
import { SEGMENT_EVENTS_MAX } from "../orchestration/segments.ts";
import { type EventFilter, eventCondition, filteredColumns, isNarrowing, mayHaveMatches } from "./event-filter.ts";

/**
 * A filter searches this many events at a time: no index serves it, and an execution may have a million events. So a page may be
 * short, or empty, and still not be the last.
 */
export const SCANNED_MAX = 10_000;

/** Longest value that a short page shows, bytes of its JSON: a page of 500 results at the inline limit would be 32 MB. */
export const SHORT_VALUE_BYTES_MAX = 1_024;

/** A short page ends after so many bytes of segments: the server reads them to leave most of it out. */
const SHORT_PAGE_BYTES_MAX = 4 * 1_048_576;

/** Which events of an execution: at most `limit` between two ids. */
export interface EventListQuery extends EventFilter {
  /** Events after this one; 0: from the first. */
  after: number;
  /** Events before this one. Default: to the last. */
  before?: number;
  limit: number;
  /** Newest first. Default: oldest first. */
  isDescending?: boolean;
  /** Leaves out long values; `omitted` of such an event names them. Default: full values. */
  isShort?: boolean;
}

/** Events of an execution in the order that was asked for. `next` is where the following page begins; absent on the last. */
export interface EventPage {
  events: EventRecord[];
  next?: number;
}

/** A page of an execution's events. */
export async function listEvents(database: Database, executionId: string, query: EventListQuery): Promise<EventPage> {
  const { events: found, next: cut } = isNarrowing(query)
    ? await readMatches(database, executionId, query)
    : await readAll(database, executionId, query);
  const { items, next = cut } = page(found, query.limit, (last) => last.event_id);
  const events = query.isShort === true ? items.map(shortened) : items;
  return next === undefined ? { events } : { events, next };
}

/** Where a call stops looking: at a row of the log, and with the event from which the next call goes on. */
interface ScanEdge {
  row: number;
  next: number | undefined;
}

/** Undefined where a call gets to the end before. */
async function scanEdge(database: Database, executionId: string, query: EventListQuery): Promise<ScanEdge | undefined> {
  const { sql } = database;
  const { isDescending = false } = query;
  const [edge] = await sql<{ row: string; earlier: string | null }[]>`
    select event_id as row,
      (select max(event_id) from flow.event_log where ${between(database, executionId, query)} and event_id < edge.event_id) as earlier
    from (
      select event_id, sum(coalesce(events, 1)) over (order by event_id ${direction(sql, query)} rows unbounded preceding) as upto
      from flow.event_log
      where ${between(database, executionId, query)}
      order by event_id ${direction(sql, query)} limit ${SCANNED_MAX}
    ) as edge
    where upto >= ${SCANNED_MAX}
    order by event_id ${direction(sql, query)} limit 1`;
  if (edge === undefined) return undefined;
  const row = Number(edge.row);
  if (!isDescending) return { row, next: row };
  // The row is searched whole: what follows are the events up to the last one of the row before.
  return { row, next: edge.earlier === null ? undefined : Number(edge.earlier) + 1 };
}

/** One event more than the page has, if there is one; `next` where it was cut short by its size. */
async function readAll(database: Database, executionId: string, query: EventListQuery): Promise<EventPage> {
  const { sql } = database;
  const { limit, after, before = Number.MAX_SAFE_INTEGER, isDescending = false, isShort = false } = query;
  // The first row may have no event of the page; each following one has at least one.
  const rows = await sql<(LogRow & { found: number })[]>`
    select * from (
      select *, count(*) over ()::int as found, row_number() over page as place,
        sum(coalesce(events, 1)) over page - coalesce(events, 1) as events_before,
        sum(coalesce(octet_length(body), 0)) over page - coalesce(octet_length(body), 0) as bytes_before
      from (
        select * from flow.event_log
        where ${between(database, executionId, query)}
        order by event_id ${direction(sql, query)} limit ${limit + 2}
      ) as nearest
      window page as (order by event_id ${direction(sql, query)} rows unbounded preceding)
    ) as counted
    where events_before < ${limit + 1 + SEGMENT_EVENTS_MAX} and (not ${isShort} or place <= 2 or bytes_before < ${SHORT_PAGE_BYTES_MAX})
    order by event_id ${direction(sql, query)}`;
  const isCut = rows.length < (rows[0]?.found ?? 0);
  const inOrder = eventsOf(isDescending ? rows.reverse() : rows).filter(
    ({ event_id }) => event_id > after && event_id < before,
  );
  const events = (isDescending ? inOrder.reverse() : inOrder).slice(0, limit + 1);
  const next = events.at(-1)?.event_id;
  return isCut && next !== undefined ? { events, next } : { events };
}

/** One event more than the page has, if there is one; `next` where the call stopped looking. */
async function readMatches(database: Database, executionId: string, query: EventListQuery): Promise<EventPage> {
  const { sql } = database;
  const { isDescending = false, limit, after, before = Number.MAX_SAFE_INTEGER } = query;
  const edge = await scanEdge(database, executionId, query);
  const upTo = isDescending ? sql`and event_id >= ${edge?.row ?? 0}` : sql`and event_id <= ${edge?.row ?? 0}`;
  const rows = await sql<{ id: string }[]>`
    select e.event_id as id
    from (
      select * from flow.event_log
      where ${between(database, executionId, query)} ${edge === undefined ? sql`` : upTo}
      order by event_id ${direction(sql, query)} limit ${SCANNED_MAX}
    ) as l ${sql.unsafe(unpacked(["event_id", ...filteredColumns(query)]))}
    where ${mayHaveMatches(sql, query)} and e.event_id > ${after} and e.event_id < ${before} and ${eventCondition(sql, query)}
    order by l.event_id ${direction(sql, query)}, e.event_id ${direction(sql, query)}
    limit ${limit + 1}`;
  const found = await loadThese(
    database,
    executionId,
    rows.map(({ id }) => id),
  );
  const events = isDescending ? found.reverse() : found;
  return edge?.next === undefined ? { events } : { events, next: edge.next };
}

/** The events of an execution with these ids, in order; the caller bounds how many. */
export async function loadThese(
  { sql }: Database,
  executionId: string,
  ids: readonly string[],
): Promise<EventRecord[]> {
  if (ids.length === 0) return [];
  // A segment has the number of its last event: an event is in the first row that does not end before it.
  const rows = await sql<LogRow[]>`
    select * from flow.event_log
    where execution_id = ${executionId} and event_id = any(array(
      select (select min(event_id) from flow.event_log where execution_id = ${executionId} and event_id >= wanted)
      from unnest(${[...ids]}::bigint[]) as wanted
    ))
    order by event_id`;
  const wanted = new Set(ids.map(Number));
  return eventsOf(rows).filter(({ event_id }) => wanted.has(event_id));
}

/** The condition that a row of the log may have events between the two of a query: the row with `before` in it may too. */
function between(database: Database, executionId: string, { after, before }: EventListQuery) {
  const { sql } = database;
  const last = sql`event_id <= coalesce(
    (select min(event_id) from flow.event_log where execution_id = ${executionId} and event_id >= ${before ?? 0}), ${Number.MAX_SAFE_INTEGER})`;
  return sql`${isAfter(database, executionId, after)} ${before === undefined ? sql`` : sql`and ${last}`}`;
}

function direction(sql: Database["sql"], { isDescending = false }: EventListQuery) {
  return isDescending ? sql`desc` : sql``;
}

/** Leaves out long values. Errors are what people look for in a list: a message may have 2,000 characters, and its details as much again. */
function shortened(record: EventRecord): EventRecord {
  const omitted = Object.entries({ result: 1, error: 4, meta: 1 })
    .filter(([field, share]) => jsonBytes(record[field]) > share * SHORT_VALUE_BYTES_MAX)
    .map(([field]) => field);
  if (omitted.length === 0) return record;
  return { ...record, ...Object.fromEntries(omitted.map((field) => [field, undefined])), omitted };
}

function jsonBytes(value: unknown): number {
  return value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value));
}
