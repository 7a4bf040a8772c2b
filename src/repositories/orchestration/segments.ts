import { type EventRecord, type LogEntry, type LogOwner, recordOf } from "../../schema/rules/event-record.ts";
import type { FlowEvent } from "../../schema/words/event.ts";

/*
 * The log's form in the database: what one flush writes of an execution is one row, a segment. PostgreSQL writes five events as one
 * text in 20 µs, and as five rows of 22 columns in 47 µs.
 */

/** Events of an execution as one row of the log. */
export interface Segment {
  /** Of its last event. */
  eventId: number;
  executionId: string;
  catalogId: string;
  /** The playbook's path, by which events of the whole run are named. */
  path: string;
  /** How many. */
  events: number;
  /** JSON: an array of events, each with its `event_id` and those of {@link LogEntry} that it has, as `parent_…`. */
  body: string;
}

/** How events are written: as segments, and as rows of their own where they cannot be in one. */
export interface LogRows {
  segments: Segment[];
  rows: EventRecord[];
}

/** A reader of one event unpacks its whole segment: the bounds keep that below a millisecond. */
export const SEGMENT_EVENTS_MAX = 64;
const SEGMENT_CHARS_MAX = 65_536;

/**
 * U+0000 and halves of surrogate pairs, as JSON writes them: PostgreSQL's functions refuse a document with them, even if they are
 * in a value that is not asked for. (An escaped backslash before `u0000` is taken for one; this does no harm.)
 */
const REFUSED_BY_DATABASE = /\\u(?:0000|d[89a-f])/;

/**
 * Packs what a flush writes of one execution, in the order of the log. The engine's events are written as they are: nothing is
 * renamed or copied for each event.
 */
export function packSegments(owner: LogOwner, entries: readonly LogEntry[], { segments, rows }: LogRows): void {
  const { executionId, catalogId, path } = owner;
  const bodies: { texts: string[]; segment: Segment }[] = [];
  /** `chars` is the length of the body so far. */
  let open: { texts: string[]; chars: number; segment: Segment } | undefined;
  for (const entry of entries) {
    const { event, parentEventId, parentExecutionId } = entry;
    const cause = parentEventId === undefined ? "" : `"parent_event_id":${parentEventId},`;
    const parent = parentExecutionId === undefined ? "" : `"parent_execution_id":"${parentExecutionId}",`;
    const text = `{"event_id":${entry.eventId},${cause}${parent}${JSON.stringify(event).slice(1)}`;
    // Most texts have no such escape at all: finding that costs a sixteenth of the pattern.
    if (text.includes("\\u") && REFUSED_BY_DATABASE.test(text)) {
      rows.push(recordOf(entry, owner));
      open = undefined;
      continue;
    }
    const isFull = open?.texts.length === SEGMENT_EVENTS_MAX || (open?.chars ?? 0) + text.length > SEGMENT_CHARS_MAX;
    if (open === undefined || isFull) {
      const segment: Segment = { eventId: 0, executionId, catalogId, path, events: 0, body: "" };
      // The brackets, and a comma for each text but the first.
      open = { texts: [], chars: 1, segment };
      segments.push(segment);
      bodies.push(open);
    }
    open.texts.push(text);
    open.chars += text.length + 1;
    open.segment.eventId = entry.eventId;
  }
  // Joined once: a text that grows is copied whenever it is cut or measured.
  for (const { texts, segment } of bodies) {
    segment.events = texts.length;
    segment.body = `[${texts.join(",")}]`;
  }
}

/** The events of a segment. */
export function unpackSegment({ body, ...owner }: LogOwner & Pick<Segment, "body">): EventRecord[] {
  type Packed = LogEntry["event"] & { event_id: number; parent_event_id?: number; parent_execution_id?: string };
  return (JSON.parse(body) as Packed[]).map(({ event_id, parent_event_id, parent_execution_id, ...event }) =>
    recordOf(
      {
        eventId: event_id,
        event: event as FlowEvent,
        parentEventId: parent_event_id,
        parentExecutionId: parent_execution_id,
      },
      owner,
    ),
  );
}
