import * as v from "valibot";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { canonicalKind } from "../../schema/words/task-kinds.ts";
import { AnyJson, configurationError, MapOfJson, parseConfig, TextLike } from "../contract/task-config.ts";
import type { BatchLimits } from "./rows.ts";

/** What happens to the rows that the target has: they stay, go first, or are replaced where the key is the same. */
export type TransferMode = "append" | "replace" | "truncate" | "upsert";

/** A task of kind `transfer`, parsed. */
export interface TransferTask {
  source: { type: "http" | "sqldb" | "duckdb"; config: JsonObject };
  target: {
    type: "sqldb" | "duckdb";
    config: JsonObject;
    /** As written: `orders`, `sales.orders`, `"Sales".orders`. */
    table: string;
    /** Field of the rows by column of the table; undefined: by name. */
    mapping: Readonly<Record<string, string>> | undefined;
  };
  mode: TransferMode;
  /** Columns that identify a row, with `upsert`. */
  key: readonly string[];
  limits: BatchLimits;
}

/** Rows of a batch where the task does not say. */
const CHUNK_ROWS = 10_000;
/** Characters of a batch, whatever its number of rows: what memory holds at a time. */
const CHUNK_BYTES_MAX = 4 * 1024 * 1024;

const MODES: Readonly<Record<string, TransferMode>> = {
  append: "append",
  insert: "append",
  replace: "replace",
  overwrite: "replace",
  truncate: "truncate",
  upsert: "upsert",
  merge: "upsert",
};

const Names = v.union(
  [v.pipe(v.string(), v.nonEmpty()), v.array(v.pipe(v.string(), v.nonEmpty()))],
  "expects a name or a list",
);

const TransferConfig = v.object({
  source: MapOfJson,
  target: MapOfJson,
  mode: v.optional(v.string("expects append, replace, truncate or upsert"), "append"),
  key: v.optional(Names),
  chunk_size: v.optional(
    v.pipe(
      v.union([v.number(), v.string()], "expects a number of rows"),
      v.transform(Number),
      v.integer("expects a whole number of rows"),
      v.minValue(1, "expects at least 1"),
      v.maxValue(100_000, "expects at most 100,000"),
    ),
    CHUNK_ROWS,
  ),
});

const TargetConfig = v.object({ table: TextLike, key: v.optional(Names), mapping: v.optional(AnyJson) });

/** Reads the task's keys. Throws FlowError `INVALID_INPUT` for those that do not fit. */
export function readTransferTask(config: JsonObject): TransferTask {
  const task = parseConfig("transfer", TransferConfig, config);
  const target = parseConfig("transfer", TargetConfig, task.target);
  const mode = Object.hasOwn(MODES, task.mode.toLowerCase()) ? MODES[task.mode.toLowerCase()]! : undefined;
  if (mode === undefined) {
    throw configurationError(
      `The transfer task's mode is "${task.mode}": one of append, replace, truncate, upsert is expected.`,
    );
  }
  const key = [target.key ?? task.key ?? []].flat();
  if (mode === "upsert" && key.length === 0) {
    throw configurationError('The transfer task has mode upsert and no "key": name the columns that tell rows apart.');
  }
  return {
    source: { type: sourceType(task.source), config: task.source },
    target: {
      type: targetType(task.target),
      config: task.target,
      table: target.table,
      mapping: readMapping(target.mapping),
    },
    mode,
    key,
    limits: { rows: task.chunk_size, bytes: CHUNK_BYTES_MAX },
  };
}

function sourceType(source: JsonObject): TransferTask["source"]["type"] {
  const type =
    kindOf(source) ?? (own(source, "url") === undefined && own(source, "endpoint") === undefined ? "sqldb" : "http");
  if (type === "http" || type === "sqldb" || type === "duckdb") return type;
  throw configurationError(`The transfer task cannot read from "${type}": its source's type is http, sqldb or duckdb.`);
}

function targetType(target: JsonObject): TransferTask["target"]["type"] {
  const type = kindOf(target) ?? "sqldb";
  if (type === "sqldb" || type === "duckdb") return type;
  throw configurationError(`The transfer task cannot write to "${type}": its target's type is sqldb or duckdb.`);
}

function kindOf(place: JsonObject): string | undefined {
  const type = own(place, "type") ?? own(place, "kind");
  return typeof type === "string" ? canonicalKind(type.toLowerCase()) : undefined;
}

/** A map of column to field, or a list of columns that keep their names. */
function readMapping(mapping: Json | undefined): Readonly<Record<string, string>> | undefined {
  if (mapping === undefined) return undefined;
  if (Array.isArray(mapping) && mapping.length > 0 && mapping.every((name) => typeof name === "string")) {
    return Object.fromEntries(mapping.map((name) => [name, name]));
  }
  const entries = isJsonObject(mapping) ? Object.entries(mapping) : [];
  if (entries.length > 0 && entries.every(([, field]) => typeof field === "string" && field !== "")) {
    return mapping as Record<string, string>;
  }
  throw configurationError(
    'The transfer task\'s "mapping" is a map from columns of the table to fields of the rows: {column: field}.',
  );
}

/** The parts of a table's name: `a.b` → `a`, `b`; `"A.b".c` → `A.b`, `c`. Names without quotes are folded as SQL does. */
export function tableParts(table: string): string[] {
  const parts: string[] = [];
  const pattern = /\s*(?:"((?:[^"]|"")+)"|([^\s".]+))\s*(\.|$)/y;
  while (pattern.lastIndex < table.length) {
    const match = pattern.exec(table);
    if (match === null) throw badTable(table);
    parts.push(match[1] === undefined ? match[2]!.toLowerCase() : match[1].replaceAll('""', '"'));
    if (match[3] === "" && pattern.lastIndex < table.length) throw badTable(table);
    if (match[3] === "." && pattern.lastIndex >= table.length) throw badTable(table);
  }
  if (parts.length === 0 || parts.length > 3) throw badTable(table);
  return parts;
}

function badTable(table: string): Error {
  return configurationError(
    `The transfer task's table is "${table}": a name as in orders, sales.orders or "Sales"."Orders" is expected.`,
  );
}

/** A name as SQL takes it whatever characters it has. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A text as SQL takes it. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
