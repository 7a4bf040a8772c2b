import type { FlowEvent } from "../words/event.ts";
import { isJsonObject, type Json, type JsonObject } from "../words/json.ts";
import type { StoredResult } from "../words/result.ts";

/** An event as it is stored and sent (decisions, "Event types"): names of the specification, only JSON. */
export interface EventRecord {
  event_id: number;
  execution_id: string;
  catalog_id: string;
  event_type: string;
  /** The step, or the playbook's path for events of the whole run. */
  node_id: string;
  node_name: string;
  node_type: "playbook" | "step" | "task";
  status: string;
  /** RFC 3339, UTC, milliseconds. */
  created_at: string;
  [field: string]: unknown;
}

/** What the log says about a batch. For people: it is not part of the state. */
export interface Marker {
  type: "batch.accepted" | "batch.completed" | "batch.failed";
  /** Milliseconds since 1970. */
  at: number;
  context: Record<string, Json>;
}

/** What happened, with its place in an execution's log: what is stored. {@link recordOf} makes the record. */
export interface LogEntry {
  eventId: number;
  event: FlowEvent | Marker;
  /** The event from which this one follows. */
  parentEventId?: number | undefined;
  /** Of events about the whole run of a child: the execution that called it. */
  parentExecutionId?: string | undefined;
}

/** The execution whose log it is. */
export type LogOwner = Omit<EventPlace, "eventId">;

/** Fields of an event that have a column of their own. All others go into `result.context` or `meta`. */
const COLUMNS = [
  "command_id",
  "worker",
  "attempt",
  "iteration",
  "page",
  "step_run_id",
  "task_run_id",
  "duration_ms",
  "error",
] as const;

/** Events whose remaining fields are what a piece of work gave, and so belong to `result`. */
const WITH_RESULT: ReadonlySet<string> = new Set([
  "task.done",
  "command.completed",
  "command.failed",
  "loop.iteration.completed",
  "loop.iteration.failed",
]);

const COLUMN_NAMES: ReadonlySet<string> = new Set(COLUMNS);

const PLAIN: ReadonlySet<string> = new Set(["type", "at", "step", "task", "status", "result"]);

/** Which execution an event belongs to, and its place in the log. */
export interface EventPlace {
  eventId: number;
  executionId: string;
  catalogId: string;
  path: string;
}

/** The record of an entry of the log. */
export function recordOf({ eventId, event, parentEventId, parentExecutionId }: LogEntry, owner: LogOwner): EventRecord {
  const place = { ...owner, eventId };
  const record = isMarker(event) ? markerRecord(event, place) : toRecord(event, place);
  if (parentExecutionId !== undefined) record["parent_execution_id"] = parentExecutionId;
  if (parentEventId !== undefined) record["parent_event_id"] = parentEventId;
  return record;
}

function isMarker(event: FlowEvent | Marker): event is Marker {
  return isMarkerType(event.type);
}

/** Whether events of this type are about batches: {@link Marker}. */
export function isMarkerType(type: string): boolean {
  return type.startsWith("batch.");
}

function markerRecord({ type, at, context }: Marker, place: EventPlace): EventRecord {
  const { eventId, executionId, catalogId, path } = place;
  return {
    event_id: eventId,
    execution_id: executionId,
    catalog_id: catalogId,
    event_type: type,
    node_id: path,
    node_name: path,
    node_type: "playbook",
    status: type.slice("batch.".length).toUpperCase(),
    created_at: new Date(at).toISOString(),
    result: { status: "ok", context },
  };
}

/** The wire shape of an event. {@link fromRecord} gives the event back. */
export function toRecord(event: FlowEvent, place: EventPlace): EventRecord {
  // One of flow's own events: a missing field is not inherited from a prototype either.
  const fields = event as unknown as Record<string, unknown>;
  const step = fields["step"];
  const task = fields["task"];
  const node = typeof step === "string" ? step : place.path;
  const record: EventRecord = {
    event_id: place.eventId,
    execution_id: place.executionId,
    catalog_id: place.catalogId,
    event_type: event.type,
    node_id: node,
    node_name: typeof task === "string" ? task : node,
    node_type: typeof task === "string" ? "task" : typeof step === "string" ? "step" : "playbook",
    status: statusOf(event),
    created_at: new Date(event.at).toISOString(),
  };
  const rest: JsonObject = {};
  let hasRest = false;
  for (const key of Object.keys(fields)) {
    const value = fields[key];
    if (COLUMN_NAMES.has(key)) {
      if (value !== undefined) record[key] = value;
    } else if (!PLAIN.has(key)) {
      rest[key] = value as Json;
      hasRest = true;
    }
  }
  if (WITH_RESULT.has(event.type)) {
    record["result"] = envelope(fields, rest);
  } else {
    if (hasRest) record["meta"] = rest;
    // A result that was given by hand: who gave it, and why, is not part of it.
    if (fields["result"] !== undefined) record["result"] = envelope(fields, {});
  }
  return record;
}

/** The reference envelope: a status, a reference where the payload is in a store, and what is bounded as context. */
function envelope(fields: Record<string, unknown>, rest: JsonObject): JsonObject {
  const stored = fields["result"] as StoredResult | undefined;
  const failed = fields["error"] !== undefined;
  const task = fields["task"];
  const context = rest;
  if (typeof task === "string") context["task"] = task;
  if (stored?.value !== undefined) context["value"] = stored.value;
  if (stored?.virtual !== undefined) context["virtual"] = stored.virtual;
  if (stored?.about !== undefined) context["about"] = stored.about;
  const reference = stored?.ref;
  const status = (fields["status"] ?? (failed ? "error" : "ok")) as Json;
  return reference === undefined ? { status, context } : { status, reference, context };
}

/** The event that a record was made of. The record must come from {@link toRecord}. */
export function fromRecord(record: EventRecord): FlowEvent {
  const event: Record<string, unknown> = { type: record.event_type, at: Date.parse(record.created_at) };
  if (record.node_type !== "playbook") event["step"] = record.node_id;
  if (record.node_type === "task") event["task"] = record.node_name;
  for (const column of COLUMNS) if (record[column] !== undefined) event[column] = record[column];
  const meta = record["meta"];
  if (isJsonObject(meta)) Object.assign(event, meta);
  const result = record["result"];
  if (isJsonObject(result)) Object.assign(event, fromEnvelope(record, result));
  return event as unknown as FlowEvent;
}

function fromEnvelope(record: EventRecord, result: JsonObject): Record<string, unknown> {
  const { value, virtual, about, ...rest } = isJsonObject(result["context"]) ? result["context"] : {};
  const fields: Record<string, unknown> = { ...rest };
  if (record.event_type === "task.done") fields["status"] = result["status"];
  const reference = result["reference"];
  if (value === undefined && reference === undefined) return fields;
  fields["result"] = {
    ...(value !== undefined && { value }),
    ...(reference !== undefined && { ref: reference }),
    ...(virtual !== undefined && { virtual }),
    ...(about !== undefined && { about }),
  };
  return fields;
}

/** The status of the thing that the event is about, after it. */
function statusOf(event: FlowEvent): string {
  const verb = event.type.slice(event.type.lastIndexOf(".") + 1);
  if (event.type === "task.done") return event.status === "ok" ? "COMPLETED" : "FAILED";
  if (verb === "error") return "FAILED";
  if (verb === "issued") return "PENDING";
  if (verb === "initialized" || verb === "started" || verb === "progress") return "RUNNING";
  return verb === "done" || verb === "stored" || verb === "evaluated" ? "COMPLETED" : verb.toUpperCase();
}
