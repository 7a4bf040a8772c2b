import type { Database } from "../database/database.ts";
import { isAfter, unpacked } from "../orchestration/log-rows.ts";
import { type EventFilter, eventCondition, filteredColumns, isNarrowing, mayHaveMatches } from "./event-filter.ts";

/** Rows of the log that one call looks at, which have some 100,000 events. */
const ROWS_MAX = 25_000;
/** Events that one call unpacks to ask each whether it is meant: 5 µs each. */
const UNPACKED_MAX = 10_000;

/** Which events are counted, from where on. */
export interface EventMarksQuery extends EventFilter {
  /** Events after this one; 0: from the first. */
  after: number;
  /** How many events were counted up to `after`. */
  counted: number;
  /** A mark at each event whose number this divides. */
  every: number;
}

/** One event of each so many: its id, and when it was. */
export interface EventMark {
  event_id: number;
  created_at: string;
}

/** The table of contents of a stretch of a log. */
export interface EventMarks {
  /** Events by now, with those that were counted before. */
  count: number;
  marks: EventMark[];
  /** The last event that was looked at, `after` where there was none. */
  last: number;
  /** There is more to look at, after `last`. */
  isPartial: boolean;
}

/** Counts an execution's events after one of them, and returns the ids of every n-th. */
export async function markEvents(database: Database, executionId: string, query: EventMarksQuery): Promise<EventMarks> {
  const { after, counted } = query;
  const found = isNarrowing(query)
    ? await markMatches(database, executionId, query)
    : await markAll(database, executionId, query);
  if (found === undefined || found.last === null) return { count: counted, marks: [], last: after, isPartial: false };
  return {
    count: counted + found.count,
    marks: found.ids.map((id, index) => ({
      event_id: Number(id),
      created_at: new Date(Number(found.times[index])).toISOString(),
    })),
    last: Number(found.last),
    isPartial: found.isPartial,
  };
}

/** A stretch of the log: its last row, whether rows follow, how many events are meant, and those that are marked. */
interface Marked {
  last: string | null;
  isPartial: boolean;
  count: number;
  ids: string[];
  times: string[];
}

/** Only the segments with a marked event are unpacked, and the first one, which may begin with events that were counted before. */
async function markAll(database: Database, executionId: string, query: EventMarksQuery): Promise<Marked | undefined> {
  const { sql } = database;
  const { after, counted, every } = query;
  const columns = sql.unsafe(unpacked(["event_id", "created_at"]));
  const [found] = await sql<Marked[]>`
    with looked as materialized (
      select event_id, coalesce(events, 1) as events,
        sum(coalesce(events, 1)) over (order by event_id rows unbounded preceding) as upto
      from flow.event_log where ${isAfter(database, executionId, after)} order by event_id limit ${ROWS_MAX}
    ), known as materialized (
      select count(*) as events
      from (
        select * from flow.event_log
        where execution_id = ${executionId} and event_id = (select min(event_id) from looked) and events > 1
      ) as l ${columns}
      where e.event_id <= ${after}
    ), numbered as materialized (
      select event_id, events, upto - (select events from known) + ${counted}::bigint as number from looked
    ), marked as materialized (
      select e.event_id, e.created_at,
        (select number - events from numbered n where n.event_id = l.event_id)
          + row_number() over (partition by l.event_id order by e.event_id) as number
      from (
        select * from flow.event_log
        where execution_id = ${executionId} and event_id = any(array(
          select event_id from numbered where floor(number / ${every}) > floor((number - events) / ${every})
        ))
      ) as l ${columns}
    )
    select (select max(event_id) from looked) as last, (select count(*) from looked) = ${ROWS_MAX} as "isPartial",
      (select coalesce(max(number) - ${counted}::bigint, 0)::int from numbered) as count, ${marks(sql, query)}`;
  return found;
}

/** Looks at fewer rows where more of them may have matches: unpacking is what takes the time. */
async function markMatches(
  database: Database,
  executionId: string,
  query: EventMarksQuery,
): Promise<Marked | undefined> {
  const { sql } = database;
  const { after, counted } = query;
  const columns = sql.unsafe(unpacked(["event_id", "created_at", ...filteredColumns(query)]));
  const [found] = await sql<Marked[]>`
    with rows as materialized (
      select event_id, case when ${mayHaveMatches(sql, query)} then coalesce(events, 1) else 0 end as unpacked
      from (
        select * from flow.event_log where ${isAfter(database, executionId, after)} order by event_id limit ${ROWS_MAX}
      ) as l
    ), looked as materialized (
      select * from (
        select *, sum(unpacked) over (order by event_id rows unbounded preceding) - unpacked as before from rows
      ) as summed
      where before < ${UNPACKED_MAX}
    ), marked as materialized (
      select e.event_id, e.created_at, row_number() over (order by e.event_id) + ${counted}::bigint as number
      from (
        select * from flow.event_log
        where execution_id = ${executionId} and event_id = any(array(select event_id from looked where unpacked > 0))
      ) as l ${columns}
      where e.event_id > ${after} and ${eventCondition(sql, query)}
    )
    select (select max(event_id) from looked) as last,
      (select count(*) from rows) = ${ROWS_MAX} or (select count(*) from looked) < (select count(*) from rows) as "isPartial",
      (select count(*)::int from marked) as count, ${marks(sql, query)}`;
  return found;
}

function marks(sql: Database["sql"], { after, every }: EventMarksQuery) {
  const isMark = sql`from marked where number % ${every} = 0 and event_id > ${after} order by event_id`;
  return sql`array(select event_id::text ${isMark}) as ids,
      array(select floor(extract(epoch from created_at) * 1000)::text ${isMark}) as times`;
}
