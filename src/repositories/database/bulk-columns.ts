import { getTableColumns } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";

/*
 * Columns of many rows as parameters of one statement. A column is one text that PostgreSQL takes apart in C, and the
 * statement's text is the same for any number of rows, so that it stays prepared. The driver's own arrays cost three times
 * as much here: they look at each value's type again.
 *
 * A column without any value is an empty array: `unnest` fills it up with NULL beside the others.
 */

/** Numbers and ids, which need no quotes. NULL for a missing value. */
export function numbers<R>(rows: readonly R[], get: (row: R) => number | string | null | undefined): string {
  let text = "";
  let some = false;
  for (const row of rows) {
    const value = get(row);
    if (value == null) {
      text += ",NULL";
    } else {
      text += `,${value}`;
      some = true;
    }
  }
  return some ? `{${text.slice(1)}}` : "{}";
}

/**
 * Any texts. NULL for a missing value. PostgreSQL has no U+0000 in texts: it becomes U+FFFD, as half of a surrogate pair does
 * in UTF-8. Otherwise one odd name in a report would refuse the changes of all other executions too.
 */
export function texts<R>(rows: readonly R[], get: (row: R) => string | null | undefined): string {
  let text = "";
  let some = false;
  for (const row of rows) {
    const value = get(row);
    if (value == null) {
      text += ",NULL";
    } else {
      text += `,"${ODD.test(value) ? quoted(value) : value}"`;
      some = true;
    }
  }
  return some ? `{${text.slice(1)}}` : "{}";
}

/**
 * JSON documents as text, for `string_to_array($1, E'\x1e', '')`: nothing in them needs quotes, because JSON text never
 * has this control character as it is. NULL for undefined.
 */
export function documents<R>(rows: readonly R[], get: (row: R) => string | undefined): string {
  let text = "";
  let some = false;
  for (const row of rows) {
    const value = get(row);
    if (value !== undefined) {
      text += value;
      some = true;
    }
    text += DOCUMENT_END;
  }
  return some ? text.slice(0, -1) : "";
}

/** U+001E, "record separator". */
const DOCUMENT_END = "\u001e";

const ODD = /["\\\u0000]/;

function quoted(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\u0000", "\ufffd");
}

/**
 * How a column is sent: as an array of its type (`numbers`, `texts`); JSON as `documents`, or as text that
 * stays text (`document`); an array as the texts of arrays.
 */
export type SentAs =
  | "bigint"
  | "int"
  | "smallint"
  | "float8"
  | "text"
  | "timestamptz"
  | "json"
  | "jsonb"
  | "document"
  | `${"text" | "bigint"}[]`;

/** A column of a table that is written in bulk, and the function that encodes it for all rows. */
export interface BulkColumn<R> {
  name: string;
  type: SentAs;
  send(rows: readonly R[]): string;
}

/** The types from which a value of a table's column may be read. */
type Source<V> = V extends readonly unknown[]
  ? readonly (string | number)[]
  : V extends Date | object
    ? unknown
    : V extends string
      ? string | number
      : V;
/** The columns of a table that a flush writes, each with the source of its values. */
export type Getters<T extends PgTable, R> = {
  readonly [K in keyof T["$inferSelect"]]?: (row: R) => Source<T["$inferSelect"][K]> | null | undefined;
};

/** Columns of a table, each with the source of its values. */
export function columns<T extends PgTable, R>(table: T, getters: Getters<T, R>): BulkColumn<R>[] {
  const known = getTableColumns(table);
  return Object.entries<((row: R) => unknown) | undefined>(getters).flatMap(([field, get]) => {
    const found = known[field];
    return found === undefined || get === undefined ? [] : column(found.name, sentAs(found.getSQLType()), get);
  });
}

/** A column that belongs to no table. */
export function column<R>(name: string, type: SentAs, get: (row: R) => unknown): BulkColumn<R> {
  return { name, type, send: sender(type, get) };
}

function sender<R>(type: SentAs, get: (row: R) => unknown): BulkColumn<R>["send"] {
  switch (type) {
    case "json":
    case "jsonb":
      return (rows) =>
        documents(rows, (row) => {
          const value = get(row);
          return value === undefined ? undefined : JSON.stringify(value);
        });
    case "document":
      return (rows) => documents(rows, get as (row: R) => string);
    case "text[]":
      // Quoted twice, and cast in the statement.
      return (rows) => texts(rows, (row) => texts(get(row) as readonly string[], (text) => text));
    case "bigint[]":
      return (rows) => texts(rows, (row) => numbers(get(row) as readonly string[], (number) => number));
    case "text":
    case "timestamptz":
      return (rows) => texts(rows, get as (row: R) => string | null | undefined);
    default:
      return (rows) => numbers(rows, get as (row: R) => number | string | null | undefined);
  }
}

/** The type of the parameter for a column's SQL type. */
function sentAs(type: string): SentAs {
  if (type.startsWith("timestamp")) return "timestamptz";
  if (type.startsWith("text COLLATE")) return "text";
  const short: Record<string, SentAs> = { integer: "int", "double precision": "float8" };
  return short[type] ?? (type as SentAs);
}
