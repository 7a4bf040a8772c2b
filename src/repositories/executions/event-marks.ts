import type { Database } from "../database/database.ts";
import { type EventFilter, eventCondition, isNarrowing } from "./event-filter.ts";

/** Events that one call looks at, which gives at most a thousand marks. */
export const MARKED_MAX = 100_000;

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
export async function markEvents({ sql }: Database, executionId: string, query: EventMarksQuery): Promise<EventMarks> {
  const { after, counted, every } = query;
  // No event is older than its execution: partitions of earlier months are not looked into.
  const following = sql`execution_id = ${executionId} and event_id > greatest(${after}::bigint, ${executionId}::bigint)`;
  // Without a filter the index is enough; only the marked events themselves are read.
  const meant = isNarrowing(query)
    ? sql`flow.event
        where ${following} and event_id <= (select max(event_id) from looked) and ${eventCondition(sql, query)}`
    : sql`looked`;
  const [found] = await sql<{ last: string | null; looked: number; count: number; ids: string[]; times: string[] }[]>`
    with looked as materialized (
      select event_id from flow.event where ${following} order by event_id limit ${MARKED_MAX}
    ), numbered as materialized (
      select event_id, row_number() over (order by event_id) + ${counted}::bigint as number from ${meant}
    ), marked as materialized (
      select event_id, floor(extract(epoch from created_at) * 1000)::text as time from flow.event
      where execution_id = ${executionId} and event_id = any(array(select event_id from numbered where number % ${every} = 0))
    )
    select (select max(event_id) from looked) as last, (select count(*)::int from looked) as looked,
      (select count(*)::int from numbered) as count,
      array(select event_id::text from marked order by event_id) as ids,
      array(select time from marked order by event_id) as times`;
  if (found === undefined || found.last === null) return { count: counted, marks: [], last: after, isPartial: false };
  return {
    count: counted + found.count,
    marks: found.ids.map((id, index) => ({
      event_id: Number(id),
      created_at: new Date(Number(found.times[index])).toISOString(),
    })),
    last: Number(found.last),
    isPartial: found.looked === MARKED_MAX,
  };
}
