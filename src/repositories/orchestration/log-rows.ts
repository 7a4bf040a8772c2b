import { getTableColumns } from "drizzle-orm";
import type { PendingQuery, Row } from "postgres";
import type { EventRecord } from "../../schema/rules/event-record.ts";
import type { Database, Transaction } from "../database/database.ts";
import { eventLog } from "../tables/event.ts";
import { SEGMENT_EVENTS_MAX, unpackSegment } from "./segments.ts";

/*
 * Reading the log, whose rows are segments or single events (`tables/event`). A statement finds rows by their key; the program
 * unpacks them. The database unpacks only where it is to look for something: it needs some 5 µs for each event.
 */

/** A value, or the column that has it. */
type Value = number | string | PendingQuery<Row[]>;

/**
 * SQL: the condition that a row of the log has events of an execution after one of them (0: all). No event is older than its
 * execution: partitions of earlier months are not looked into.
 */
export function isAfter({ sql }: Pick<Database | Transaction, "sql">, executionId: Value, after: Value) {
  return sql`execution_id = ${executionId} and event_id > greatest(${after}::bigint, ${executionId}::bigint)`;
}

/**
 * SQL: rows of an execution's log, as `l`, oldest first, that have the first `max` events after an event, if there are so many. The
 * first row may begin with events that are not after it, and the last ones may have some above `max`.
 */
export function logRows(database: Pick<Database | Transaction, "sql">, executionId: Value, after: Value, max: number) {
  return database.sql`(
      select * from (
        select *, sum(coalesce(events, 1)) over (order by event_id rows unbounded preceding) - coalesce(events, 1) as before
        from flow.event_log
        where ${isAfter(database, executionId, after)}
        order by event_id limit ${max}
      ) as counted
      where before < ${max + SEGMENT_EVENTS_MAX}
    ) as l`;
}

/** A row of the log as returned by the driver: 64-bit integers are text, JSON of single events is parsed. */
export type LogRow = Record<string, unknown> & {
  event_id: string;
  execution_id: string;
  catalog_id: string;
  node_id: string;
  created_at: Date;
  /** Of a segment. */
  body: string | null;
};

const { events: _events, body: _body, ...RECORD } = getTableColumns(eventLog);
const RECORD_COLUMNS = Object.values(RECORD).map(({ name }) => name);
/** 64-bit columns that are not ids in the record: numbers below 2^53. */
const NUMBERS = new Set([RECORD.eventId.name, RECORD.parentEventId.name, RECORD.iteration.name, RECORD.page.name]);

/** The events of rows of the log, in their order. */
export function eventsOf(rows: readonly LogRow[]): EventRecord[] {
  return rows.flatMap((row) => {
    const { body, execution_id: executionId, catalog_id: catalogId, node_id: path } = row;
    return body === null ? [singleEvent(row)] : unpackSegment({ executionId, catalogId, path, body });
  });
}

/** Columns without a value are absent. */
function singleEvent(row: LogRow): EventRecord {
  const record: Record<string, unknown> = {};
  for (const column of RECORD_COLUMNS) {
    const value = row[column];
    if (value !== null && value !== undefined) record[column] = NUMBERS.has(column) ? Number(value) : value;
  }
  record["created_at"] = row.created_at.toISOString();
  return record as EventRecord;
}

/** Fields of an event that statements look at. In a segment they are as the engine has them (`schema/rules/event-record`). */
const LOOKED_AT = {
  event_id: { packed: "event_id bigint" },
  event_type: { packed: "type text", as: "type" },
  node_id: { packed: "step text", as: "coalesce(step, l.node_id)" },
  node_name: { packed: "step text, task text", as: "coalesce(task, step, l.node_id)" },
  node_type: { packed: "step text", as: "case when step is null then 'playbook' else 'step' end" },
  status: { packed: "type text, status text", as: "flow.event_status(type, status)" },
  created_at: { packed: "at float8", as: "to_timestamp(floor(at) / 1000)" },
  command_id: { packed: "command_id bigint" },
  worker: { packed: "worker text" },
  attempt: { packed: "attempt int" },
  iteration: { packed: "iteration bigint" },
  error: { packed: "error json" },
} as const satisfies Partial<Record<(typeof RECORD_COLUMNS)[number], { packed: string; as?: string }>>;

/** A column that {@link unpacked} can give. */
export type LookedAt = keyof typeof LOOKED_AT;

/** SQL: put after rows of the log named `l`, it gives their events as `e`, with these columns. */
export function unpacked(columns: readonly LookedAt[]): string {
  const packed = new Set(columns.flatMap((column) => LOOKED_AT[column].packed.split(", ")));
  const values = columns.map((column) => {
    const found = LOOKED_AT[column];
    return "as" in found ? found.as : column;
  });
  return `cross join lateral (
      select ${columns.map((column) => `l.${column}`).join(", ")} where l.body is null
      union all
      select ${values.join(", ")} from json_to_recordset(l.body::json) as packed (${[...packed].join(", ")})
    ) as e`;
}
