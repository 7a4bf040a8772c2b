import { closeSync, openSync, statSync, writeSync } from "node:fs";
import { resolve } from "node:path";
import type { ExecutionState } from "../../engine/state/state.ts";
import { type EventRecord, toRecord } from "../../schema/rules/event-record.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import type { StoredPayload } from "../../testing/recorded-run.ts";
import { safeJson } from "../terminal/text.ts";

/** Characters gathered before they are written: one call of the system for some hundred events. */
const CHUNK_LENGTH = 65_536;

/** Longest result that is stored apart of which the file has more than length and checksum, in bytes: a line is read as one text. */
export const PAYLOAD_BYTES_MAX = 16 * 1_048_576;
/** Of all these results together: a file is read as one text too. */
const PAYLOADS_BYTES_MAX = 256 * 1_048_576;

/** The event log of a run as a file. */
export interface Recorder {
  observe(state: ExecutionState, events: readonly FlowEvent[]): void;
  /** Events that have their place in a log already: a server's. */
  write(records: readonly EventRecord[]): void;
  /** A result that is stored apart. */
  payload(stored: StoredPayload): void;
  /**
   * Writes what is left and closes the file; safe to call twice. The error, when the log is not complete: a full disk must
   * not stop a run that goes well, but its caller has to know.
   */
  close(): FlowError | undefined;
}

/**
 * Writes every event of a run and its sub-playbooks as one line of JSON (the wire shape of `schema/rules/event-record.ts`), with
 * numbers that grow over all of them, and `parent_execution_id` on those of sub-playbooks; and results that are stored apart.
 *
 * Writing is synchronous on purpose: a run that makes events faster than the disk takes them is held back, instead of
 * filling the memory, and what was gathered can be written even while the process is leaving.
 *
 * Throws `FlowError` FILE_UNREADABLE when the file cannot be made, USAGE when it is one of `inputs`: a slip of the shell's
 * completion must not replace the playbook by its own log.
 */
export function createRecorder(target: string, folder: string, inputs: readonly string[] = []): Recorder {
  const file = resolve(folder, target);
  if (inputs.some((input) => isSameFile(input, file))) {
    throw new FlowError("USAGE", `--record ${target} would replace a file that this run reads; name another one`);
  }
  let descriptor: number | undefined = open(file, target);
  let failure: FlowError | undefined;
  let lines: string[] = [];
  let length = 0;
  let eventId = 0;
  let payloadBytes = 0;

  const flush = () => {
    if (descriptor === undefined || failure !== undefined || lines.length === 0) return;
    try {
      writeAll(descriptor, Buffer.from(lines.join("")));
    } catch (cause) {
      const why = `Cannot write the event log ${target}: ${messageOf(cause)}; it ends before event ${eventId}`;
      failure = new FlowError("FILE_UNREADABLE", why, { cause });
    }
    lines = [];
    length = 0;
  };

  const add = (line: string) => {
    if (failure !== undefined) return;
    lines.push(`${line}\n`);
    length += line.length;
    if (length >= CHUNK_LENGTH) flush();
  };
  const write = (records: readonly EventRecord[]) => {
    for (const record of records) {
      eventId = record.event_id;
      add(JSON.stringify(record));
    }
  };

  return {
    observe(state, events) {
      write(events.map((event, index) => recordOf(state, event, eventId + index + 1)));
    },
    write,
    payload(stored) {
      const { json, ...outline } = stored;
      const isIncluded = outline.bytes <= PAYLOAD_BYTES_MAX && payloadBytes + outline.bytes <= PAYLOADS_BYTES_MAX;
      if (isIncluded) payloadBytes += outline.bytes;
      add(payloadLine(isIncluded ? stored : outline));
    },
    close() {
      flush();
      if (descriptor !== undefined) closeSync(descriptor);
      descriptor = undefined;
      return failure;
    },
  };
}

/** The line of a stored result. What is sealed in it is `[secret]` there. */
export function payloadLine({ ref, bytes, sha256, json }: StoredPayload): string {
  const outline = JSON.stringify({ ref, bytes, sha256 });
  // Ends of lines stand between JSON's values alone.
  return json === undefined ? outline : `${outline.slice(0, -1)},"payload":${safeJson(json).replace(/[\r\n]/g, " ")}}`;
}

function open(file: string, target: string): number {
  try {
    return openSync(file, "w");
  } catch (cause) {
    throw new FlowError("FILE_UNREADABLE", `Cannot write the event log ${target}: ${messageOf(cause)}`, { cause });
  }
}

function isSameFile(left: string, right: string): boolean {
  const [one, other] = [left, right].map((file) => statSync(file, { throwIfNoEntry: false }));
  return one !== undefined && other !== undefined && one.dev === other.dev && one.ino === other.ino;
}

/** A write to a pipe may take only a part. */
function writeAll(descriptor: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(descriptor, bytes, written);
}

function recordOf(state: ExecutionState, event: FlowEvent, eventId: number): EventRecord {
  const { executionId, catalogId, path, parent } = state;
  const record = toRecord(event, { eventId, executionId, catalogId, path });
  return parent === null ? record : { ...record, parent_execution_id: parent.execution_id };
}
