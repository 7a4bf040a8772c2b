import type { Database } from "../database/database.ts";
import type { LookedAt } from "../orchestration/log-rows.ts";

/** Filter of an execution's events; an absent field does not filter. */
export interface EventFilter {
  eventType?: string;
  /** A step's name, or the playbook's path for events of the whole run. */
  step?: string;
  commandId?: string;
  worker?: string;
  /** Only what failed. */
  isFailed?: boolean;
  /** Occurs, in any case, in the event's type, its step's or task's name, its worker's name or its error. */
  text?: string;
}

/** False where every event is meant. */
export function isNarrowing(filter: EventFilter): boolean {
  return Object.values(filter).some((value) => value !== undefined && value !== false);
}

/**
 * The condition that the row `l` of the log may have events that are meant: a segment that does not name what is asked for is not
 * unpacked. A field and its text stand in it as JSON writes them.
 */
export function mayHaveMatches(sql: Database["sql"], filter: EventFilter) {
  const { eventType, step, commandId, worker, isFailed = false, text } = filter;
  const has = (part: string) => sql`strpos(l.body, ${part}) > 0`;
  const names = (field: string, value: string) => has(`"${field}":${JSON.stringify(value)}`);
  return sql`(l.body is null or (true
      ${eventType === undefined ? sql`` : sql`and ${names("type", eventType)}`}
      ${step === undefined ? sql`` : sql`and (l.node_id = ${step} or ${names("step", step)})`}
      ${commandId === undefined ? sql`` : sql`and ${names("command_id", commandId)}`}
      ${worker === undefined ? sql`` : sql`and ${names("worker", worker)}`}
      ${isFailed ? sql`and (${has('.failed"')} or ${has('.error"')} or ${names("status", "error")})` : sql``}
      ${text === undefined ? sql`` : textInRow(sql, text)}))`;
}

function textInRow(sql: Database["sql"], text: string) {
  const asWritten = JSON.stringify(text).slice(1, -1);
  return sql`and (strpos(lower(l.body), lower(${asWritten})) > 0 or strpos(lower(l.node_id), lower(${text})) > 0)`;
}

/** The columns that {@link eventCondition} looks at. */
export function filteredColumns(filter: EventFilter): LookedAt[] {
  const { eventType, step, commandId, worker, isFailed = false, text } = filter;
  const asked = {
    event_type: eventType ?? text,
    node_id: step ?? text,
    node_name: text,
    command_id: commandId,
    worker: worker ?? text,
    status: isFailed || undefined,
    error: text,
  } satisfies Partial<Record<LookedAt, unknown>>;
  return Object.entries(asked).flatMap(([column, value]) => (value === undefined ? [] : [column as LookedAt]));
}

/** The condition that the event `e` is meant; conditions that were not asked for are not in its text. */
export function eventCondition(sql: Database["sql"], filter: EventFilter) {
  const { eventType, step, commandId, worker, isFailed = false, text } = filter;
  return sql`true
      ${eventType === undefined ? sql`` : sql`and e.event_type = ${eventType}`}
      ${step === undefined ? sql`` : sql`and e.node_id = ${step}`}
      ${commandId === undefined ? sql`` : sql`and e.command_id = ${commandId}`}
      ${worker === undefined ? sql`` : sql`and e.worker = ${worker}`}
      ${isFailed ? sql`and e.status = 'FAILED'` : sql``}
      ${text === undefined ? sql`` : textCondition(sql, text)}`;
}

function textCondition(sql: Database["sql"], text: string) {
  // As text, because a field taken out of a document that holds U+0000 would be an error; so it is looked for as JSON writes it.
  const asWritten = JSON.stringify(text).slice(1, -1);
  return sql`and (
    strpos(lower(concat_ws(' ', e.event_type, e.node_id, e.node_name, e.worker)), lower(${text})) > 0
    or strpos(lower(e.error::text), lower(${asWritten})) > 0
  )`;
}
