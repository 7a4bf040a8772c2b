import { getTableColumns } from "drizzle-orm";
import type { EventRecord } from "../../schema/rules/event-record.ts";
import type { Database } from "../database/database.ts";
import { page } from "../database/page.ts";
import { type EventRow, eventRecord } from "../orchestration/load-execution.ts";
import { event } from "../tables/event.ts";
import { type EventFilter, eventCondition, isNarrowing } from "./event-filter.ts";

/**
 * A filter searches this many events at a time: no index serves it, and an execution may have a million events. So a page may be
 * short, or empty, and still not be the last.
 */
export const SCANNED_MAX = 10_000;

/** Longest value that a short page shows, bytes of its JSON: a page of 500 results at the inline limit would be 32 MB. */
export const SHORT_VALUE_BYTES_MAX = 1_024;

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
  const { limit } = query;
  const edge = isNarrowing(query) ? await scanEdge(database, executionId, query) : undefined;
  const rows = await readRows(database, executionId, query, edge);
  const { items: events, next } = page(rows.map(eventRecord), limit, (last) => last.event_id);
  if (next !== undefined) return { events, next };
  return edge === undefined ? { events } : { events, next: edge };
}

/** The event at which a call stops looking; undefined where it gets to the end before. */
async function scanEdge({ sql }: Database, executionId: string, query: EventListQuery): Promise<number | undefined> {
  const [edge] = await sql<{ id: string }[]>`
    select event_id as id from flow.event
    where ${between(sql, executionId, query)}
    order by event_id ${direction(sql, query)}
    offset ${SCANNED_MAX - 1} limit 1`;
  return edge === undefined ? undefined : Number(edge.id);
}

async function readRows(
  { sql }: Database,
  executionId: string,
  query: EventListQuery,
  edge: number | undefined,
): Promise<EventRow[]> {
  const upTo = query.isDescending === true ? sql`and event_id >= ${edge ?? 0}` : sql`and event_id <= ${edge ?? 0}`;
  return await sql<EventRow[]>`
    select ${about(sql)}, ${query.isShort === true ? shortValues(sql) : sql`result, error, meta`}
    from flow.event
    where ${between(sql, executionId, query)} ${edge === undefined ? sql`` : upTo} and ${eventCondition(sql, query)}
    order by event_id ${direction(sql, query)}
    limit ${query.limit + 1}`;
}

/** The events of an execution with these ids, in order; the caller bounds how many. */
export async function loadThese(
  { sql }: Database,
  executionId: string,
  ids: readonly string[],
): Promise<EventRecord[]> {
  if (ids.length === 0) return [];
  const rows = await sql<EventRow[]>`
    select ${about(sql)}, result, error, meta
    from flow.event
    where execution_id = ${executionId} and event_id = any(${[...ids]}::bigint[])
    order by event_id`;
  return rows.map(eventRecord);
}

/** The columns of an event without its values. */
function about(sql: Database["sql"]) {
  return sql.unsafe(ABOUT);
}

const { result: _result, error: _error, meta: _meta, ...WITHOUT_VALUES } = getTableColumns(event);
const ABOUT = Object.values(WITHOUT_VALUES)
  .map(({ name }) => name)
  .join(", ");

/** No event is older than its execution: partitions of earlier months are not looked into. */
function between(sql: Database["sql"], executionId: string, { after, before }: EventListQuery) {
  return sql`execution_id = ${executionId} and event_id > greatest(${after}::bigint, ${executionId}::bigint)
    ${before === undefined ? sql`` : sql`and event_id < ${before}`}`;
}

function direction(sql: Database["sql"], { isDescending = false }: EventListQuery) {
  return isDescending ? sql`desc` : sql``;
}

/** Errors are what people look for in a list: a message may have 2,000 characters, and its details as much again. */
function shortValues(sql: Database["sql"]) {
  const most = SHORT_VALUE_BYTES_MAX;
  return sql`
    case when octet_length(result::text) <= ${most} then result end as result,
    case when octet_length(error::text) <= ${4 * most} then error end as error,
    case when octet_length(meta::text) <= ${most} then meta end as meta,
    nullif(array_remove(array[
      case when octet_length(result::text) > ${most} then 'result' end,
      case when octet_length(error::text) > ${4 * most} then 'error' end,
      case when octet_length(meta::text) > ${most} then 'meta' end
    ], null), '{}') as omitted`;
}
