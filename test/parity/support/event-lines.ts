import type { EventRecord } from "../../../src/schema/rules/event-record.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../src/schema/words/json.ts";
import { maskSealed } from "../../../src/schema/words/sealed.ts";
import { MISSING_FILE_HINT } from "../../../src/tools/sandbox/sandbox.ts";
import type { Scenario } from "./scenario.ts";

/** Rows that tell of transport or of time, and of nothing that the playbook says. */
const LEFT_OUT = /^batch\.|^command\.started$|^task\.progress$/;

/**
 * The log of one execution as lines that are the same on every runtime: without times, names of workers and of stores, and with
 * numbers instead of ids. Where work goes on at the same time (`parts`) only what belongs together has an order: the events of
 * the run, of a step, and of an iteration.
 */
export function eventLines(log: readonly EventRecord[], order: Scenario["order"]): string[] {
  const records = endsMoved(claimsMoved(log.filter(({ event_type }) => !LEFT_OUT.test(event_type))));
  return linesOf(order === "total" ? records : byParts(records));
}

/** When a worker takes a command is its affair: each claim stands directly after the issue. */
function claimsMoved(log: readonly EventRecord[]): EventRecord[] {
  const claims = new Map<unknown, EventRecord[]>();
  for (const record of log) {
    const { event_type, command_id } = record;
    if (event_type === "command.claimed") claims.set(command_id, [...(claims.get(command_id) ?? []), record]);
  }
  return log
    .filter(({ event_type }) => event_type !== "command.claimed")
    .flatMap((record) => {
      return record.event_type === "command.issued" ? [record, ...(claims.get(record["command_id"]) ?? [])] : [record];
    });
}

/**
 * An iteration that ends a command may issue the loop's next one. Which of the two the log has first depends on whether the worker
 * asked for more work with its report: without that, the report is written whole before anything is decided. A worker asks for
 * none while a parent, whose child has just ended, works in a slot that was promised to others. So the end of a
 * command that called a playbook stands first here; of all others the order is compared.
 */
function endsMoved(log: readonly EventRecord[]): EventRecord[] {
  const calling = new Set(
    log.filter(({ event_type }) => event_type === "call.done").map((record) => record["command_id"]),
  );
  const moved: EventRecord[] = [];
  for (const record of log) {
    let place = moved.length;
    if (record.event_type === "command.completed" && calling.has(record["command_id"])) {
      while (isIssueOf(record, moved[place - 1])) place -= 1;
    }
    moved.splice(place, 0, record);
  }
  return moved;
}

function isIssueOf(end: EventRecord, record: EventRecord | undefined): boolean {
  if (record === undefined || record.node_id !== end.node_id) return false;
  return record.event_type === "command.issued" || record.event_type === "command.claimed";
}

function linesOf(records: readonly EventRecord[]): string[] {
  const clean = cleaner(idsOf(records));
  return records.map((record) => {
    // The order of a row's columns says nothing; that of keys within them does.
    const columns = Object.entries(record).sort(([left], [right]) => (left < right ? -1 : 1));
    // A server's log comes masked; each run seals with a key of its own.
    return maskSealed(JSON.stringify(clean(Object.fromEntries(columns) as JsonObject)));
  });
}

/** Fields that differ from run to run, or from runtime to runtime, and may. */
export const INCIDENTAL: ReadonlySet<string> = new Set([
  ...[
    "event_id",
    "parent_event_id",
    "created_at",
    "next_run_at",
    "duration_ms",
    "worker",
    "catalog_id",
    "parent_execution_id",
  ],
  // An error's text has the name of its document.
  "bytes",
  // Where payloads lie and how long they stay there is a matter of settings.
  ...["store", "scope", "expires_at"],
  // Of answers over HTTP.
  ...["date", "elapsed"],
]);

/** Any value as it is compared: without these fields, and with numbers instead of ids. */
export function cleaner(ids: ReadonlySet<string>, without: ReadonlySet<string> = INCIDENTAL): (value: Json) => Json {
  const numbers = new Map<string, string>();
  const number = (id: string) => {
    const known = numbers.get(id) ?? `id ${numbers.size + 1}`;
    numbers.set(id, known);
    return known;
  };
  const clean = (value: Json): Json => {
    if (typeof value === "string") {
      return ids.has(value) ? number(value) : cleanText(value);
    }
    if (Array.isArray(value)) return value.map(clean);
    if (!isJsonObject(value)) return value;
    const fields = Object.entries(withoutTimedSizes(withoutNotices(withoutHints(value)))).filter(
      ([key]) => !without.has(key),
    );
    return Object.fromEntries(fields.map(([key, field]) => [key, clean(field)]));
  };
  return clean;
}

/**
 * What the end of a list's command says of its tasks, `[label, value, bytes]` each: without the size of one that made an HTTP call.
 * The time that the call took is part of its value, and has more digits or fewer.
 */
function withoutTimedSizes(value: JsonObject): JsonObject {
  const { pipeline, results } = value;
  if (pipeline !== true || !Array.isArray(results)) return value;
  const parts = results.map((part) =>
    Array.isArray(part) && part.length === 3 && JSON.stringify(part[1]).includes('"elapsed":')
      ? part.slice(0, 2)
      : part,
  );
  return { ...value, results: parts };
}

/**
 * Of what a reference says of its payload, how and where a store has it is the store's affair: compressed, in which bucket. The
 * text of a manifest has ids in it, that of a sensitive result is sealed: no two of them are the same.
 */
function withoutHints(value: JsonObject): JsonObject {
  const { kind, ref, meta, preview, task } = value;
  if (typeof task === "string" && typeof ref === "string" && ref.endsWith("/manifest")) {
    const { sha256: _sha256, ...part } = value;
    return part;
  }
  if (kind !== "result_ref" || typeof ref !== "string" || !isJsonObject(meta)) return value;
  const isOnce = ref.endsWith("/manifest") || (isJsonObject(preview) && preview["bytes"] === 0);
  const { content_type = null, bytes = null, sha256 = null } = meta;
  return { ...value, meta: isOnce ? { content_type } : { content_type, bytes, sha256 } };
}

/**
 * What a database notices depends on what the run before has left in it, and which line of two streams comes first on which is
 * read first.
 */
function withoutNotices(value: JsonObject): JsonObject {
  const { log, ...rest } = value;
  const lines = isJsonObject(log) ? log["lines"] : undefined;
  if (!isJsonObject(log) || !Array.isArray(lines)) return value;
  const isNotice = (line: Json) => typeof line === "string" && line.startsWith("NOTICE: ");
  return lines.every(isNotice) ? rest : { ...value, log: { ...log, lines: [...lines].sort() } };
}

/** Without the ids of references and of messages, and without where a document lies. */
function cleanText(text: string): string {
  // What is as long is no message: a payload, in which the patterns would search for long.
  if (text.length > MESSAGE_MAX) return text;
  return (
    text
      .replace(REFERENCE, "$1…$2…")
      .replace(DOCUMENT, "$1")
      .replace(MISSING, "$1")
      // Only a service has a sandbox, and says so.
      .replace(`. ${MISSING_FILE_HINT}`, "")
      .replace(/\b\d{15,}\b/g, "…")
      .replace(TIME, "…")
  );
}

/** When a wait was over. */
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const MESSAGE_MAX = 2_000;
/** `/folder/name.yaml` here, `catalog/name@1` there. */
const DOCUMENT = /[\w./-]*\/(\w+)(?:\.yaml|@\d+)\b/g;
/** Where a playbook was looked for. */
const MISSING = /^(There is no playbook '[^']*': ).*/;
const REFERENCE = /(noetl:\/\/execution\/)\d+(\/step\/[^/]+\/task\/[^/]+\/run\/)[^/"\s]+/g;

/** Every id that the log speaks of. */
export function idsOf(log: readonly EventRecord[]): Set<string> {
  const ids = new Set<string>();
  const gather = (value: unknown, key = "") => {
    if (typeof value === "string" && key.endsWith("_id") && key !== "node_id" && key !== "catalog_id") ids.add(value);
    if (typeof value === "object" && value !== null)
      for (const [name, field] of Object.entries(value)) gather(field, name);
  };
  for (const record of log) gather({ ...record, result: undefined });
  return ids;
}

function byParts(records: readonly EventRecord[]): EventRecord[] {
  const iterations = new Map<unknown, number>();
  for (const { command_id, meta } of records) {
    const issued = isJsonObject(meta as Json)
      ? (meta as { iterations?: { from: number; to: number } }).iterations
      : undefined;
    if (issued !== undefined && issued.to - issued.from === 1) iterations.set(command_id, issued.from);
  }
  const part = (record: EventRecord) => {
    const iteration = record["iteration"] ?? iterations.get(record["command_id"]) ?? -1;
    return JSON.stringify([record.node_type === "playbook", record.node_id, String(iteration).padStart(6)]);
  };
  const parted = records
    // When the results of a loop leave the state depends on which of them come first.
    .filter(({ event_type }) => event_type !== "loop.results.stored")
    .map((record) => ({ record, part: part(record) }));
  parted.sort((left, right) => (left.part < right.part ? -1 : Number(left.part > right.part)));
  return parted.map(({ record }) => record);
}
