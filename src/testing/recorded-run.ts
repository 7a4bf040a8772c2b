import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { EventRecord } from "../schema/rules/event-record.ts";
import { FlowError, messageOf } from "../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../schema/words/json.ts";

/*
 * A recorded run: the file that `flow run --record` and `flow export` write. Each line is one JSON object: an event (the wire shape of
 * `schema/rules/event-record`), or what an export adds: a first line about the execution with its document, and a line for each result
 * that is stored apart, with its payload or, where that is large, its checksum alone.
 */

/** Version of the lines that an export adds. A later one is refused. */
export const RECORD_VERSION = 1;

/** The first line of an export. */
export interface RecordHeader {
  flow_record: number;
  execution_id: string;
  path: string;
  version: number;
  /** The document of that version. */
  playbook?: string;
}

/** The line of a result that is stored apart from the log. */
export interface RecordedPayload {
  ref: string;
  bytes: number;
  sha256: string;
  /** Absent: it is longer than the export was to include. */
  payload?: Json;
}

/** A stored result that is to be recorded, as JSON text; without it: it is too long for the record. */
export interface StoredPayload extends Omit<RecordedPayload, "payload"> {
  json?: string;
}

/** A run as it was recorded. */
export interface RecordedRun {
  /** How messages name the file. */
  file: string;
  /** Absent: `flow run --record` wrote it. */
  header: RecordHeader | undefined;
  /** The events of its execution, without those of sub-playbooks, oldest first. */
  events: EventRecord[];
  /** The events of its sub-playbooks, where they are recorded with it. */
  childEvents: EventRecord[];
  payloads: ReadonlyMap<string, RecordedPayload>;
}

/** Reads a recorded run. Throws `FlowError` FILE_UNREADABLE where the file is missing, is no record, or lacks the run's beginning. */
export async function readRecordedRun(target: string, folder: string): Promise<RecordedRun> {
  const text = await readFile(resolve(folder, target), "utf8").catch((cause: unknown) => {
    throw unreadable(target, messageOf(cause), cause);
  });
  return parseRecordedRun(text, target);
}

/** {@link readRecordedRun} of a text. */
export function parseRecordedRun(text: string, file: string): RecordedRun {
  const all: EventRecord[] = [];
  const payloads = new Map<string, RecordedPayload>();
  let header: RecordHeader | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const value = objectOf(line, `${file}, line ${index + 1}`);
    if (value["flow_record"] !== undefined) header = headerOf(value, file);
    else if (isEvent(value)) all.push(value as unknown as EventRecord);
    else if (typeof value["ref"] === "string") payloads.set(value["ref"], value as unknown as RecordedPayload);
    else throw unreadable(`${file}, line ${index + 1}`, "it is neither an event nor a result of a recorded run");
  }
  const first = all.find(({ event_type }) => event_type === "playbook.initialized");
  if (first === undefined || first !== all[0]) {
    throw unreadable(file, all.length === 0 ? "it has no events" : "it does not begin with the start of a run");
  }
  const isOwn = ({ execution_id }: EventRecord) => execution_id === first.execution_id;
  const childEvents = all.filter((record) => !isOwn(record));
  return { file, header, events: all.filter(isOwn), childEvents, payloads };
}

/** Why a stored result is not in a record, and what helps. */
export function leftOut({ header, payloads }: RecordedRun, ref: string): string {
  const recorded = payloads.get(ref);
  const why = recorded === undefined ? "it is not in it" : `it has ${recorded.bytes} bytes`;
  const how = header === undefined ? "Export the run from a server, with" : "Export the run with";
  return `${why}. ${how} a larger --max-bytes`;
}

function isEvent(value: JsonObject): boolean {
  const { event_id, event_type, execution_id, created_at, node_id } = value;
  const texts = [event_type, execution_id, created_at, node_id];
  return typeof event_id === "number" && texts.every((one) => typeof one === "string");
}

function headerOf(value: JsonObject, file: string): RecordHeader {
  const { flow_record: version } = value;
  if (version === RECORD_VERSION) return value as unknown as RecordHeader;
  throw unreadable(file, `it is a record of version ${JSON.stringify(version)}, and this flow reads ${RECORD_VERSION}`);
}

function objectOf(line: string, place: string): JsonObject {
  try {
    const value = JSON.parse(line) as Json;
    if (isJsonObject(value)) return value;
  } catch {
    // Said below.
  }
  throw unreadable(place, "it is not a JSON object");
}

function unreadable(what: string, why: string, cause?: unknown): FlowError {
  const hint = "A recorded run is what 'flow export' prints, or 'flow run --record' writes";
  return new FlowError("FILE_UNREADABLE", `Cannot read ${what} as a recorded run: ${why}. ${hint}`, { cause });
}
