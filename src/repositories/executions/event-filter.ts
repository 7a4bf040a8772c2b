import type { Database } from "../database/database.ts";

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

/** The condition that an event is meant; conditions that were not asked for are not in its text. */
export function eventCondition(sql: Database["sql"], filter: EventFilter) {
  const { eventType, step, commandId, worker, isFailed = false, text } = filter;
  return sql`true
      ${eventType === undefined ? sql`` : sql`and event_type = ${eventType}`}
      ${step === undefined ? sql`` : sql`and node_id = ${step}`}
      ${commandId === undefined ? sql`` : sql`and command_id = ${commandId}`}
      ${worker === undefined ? sql`` : sql`and worker = ${worker}`}
      ${isFailed ? sql`and status = 'FAILED'` : sql``}
      ${text === undefined ? sql`` : textCondition(sql, text)}`;
}

function textCondition(sql: Database["sql"], text: string) {
  // As text, because a field taken out of a document that holds U+0000 would be an error; so it is looked for as JSON writes it.
  const asWritten = JSON.stringify(text).slice(1, -1);
  return sql`and (
    strpos(lower(concat_ws(' ', event_type, node_id, node_name, worker)), lower(${text})) > 0
    or strpos(lower(error::text), lower(${asWritten})) > 0
  )`;
}
