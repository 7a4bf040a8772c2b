import { own } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";

/**
 * Rows on their way, each the text of a JSON object: what no program between source and target parses loses no digit.
 * Numbers wider than a double are texts or numbers with all digits, times ISO texts, bytes base64.
 */
export interface RowBatch {
  rows: string[];
  /** Fields that the rows have, all together. */
  columns: readonly string[];
}

/** Where rows come from. Throws a {@link transferFailure}, FlowError, or the signal's reason. */
export interface RowSource {
  /** The rows in their order. Ending the iteration early frees what the source holds. */
  batches(limits: BatchLimits): AsyncGenerator<RowBatch>;
}

/** The target of rows: it keeps all of them, or none. Throws as {@link RowSource}. */
export interface RowTarget {
  /** Rows that were written. */
  write(batch: RowBatch): Promise<number>;
  /** Makes all that was written stand. */
  commit(): Promise<void>;
  /** Gives the connection back; without a commit nothing was written. Never throws. */
  close(): Promise<void>;
}

/** How large a batch may become. */
export interface BatchLimits {
  rows: number;
  bytes: number;
}

/** Collects rows until there is a batch of them. */
export class RowCollector {
  readonly #limits: BatchLimits;
  #rows: string[] = [];
  #bytes = 0;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  /** Takes a row; true when the batch is full. */
  add(row: string): boolean {
    this.#rows.push(row);
    this.#bytes += row.length;
    return this.#rows.length >= this.#limits.rows || this.#bytes >= this.#limits.bytes;
  }

  /** The rows so far; the next batch begins empty. */
  take(): string[] {
    const rows = this.#rows;
    this.#rows = [];
    this.#bytes = 0;
    return rows;
  }
}

/** An error that carries the result of the task. */
export function transferFailure(result: ToolResult): Error {
  return Object.assign(new Error(result.error?.message ?? "The transfer failed."), { result });
}

/** Rows of the source that are no rows: kind `parse`. */
export function unreadableRows(message: string): Error {
  return transferFailure(failed("parse", "INVALID_ROWS", message));
}

/** The result that an error carries; undefined for another error. */
export function failureResult(error: unknown): ToolResult | undefined {
  return error instanceof Error ? (own(error, "result") as ToolResult | undefined) : undefined;
}

/** A column of the target and the field of the rows that it takes. */
export interface ColumnPair {
  target: string;
  source: string;
}

/**
 * Maps fields to columns: by the mapping, else by name, ignoring case. Throws a {@link transferFailure} that names the fields
 * without a column, and the existing columns.
 */
export function pairColumns(
  fields: readonly string[],
  mapping: Readonly<Record<string, string>> | undefined,
  columns: readonly string[],
  table: string,
): ColumnPair[] {
  const byName = new Map(columns.map((name) => [name.toLowerCase(), name]));
  const columnOf = (name: string) => (columns.includes(name) ? name : byName.get(name.toLowerCase()));
  const wanted = mapping === undefined ? fields.map((name) => [name, name] as const) : Object.entries(mapping);
  const unknown = wanted.filter(([name]) => columnOf(name) === undefined).map(([name]) => name);
  if (unknown.length > 0) {
    const hint = mapping === undefined ? ' Name the fields that go into it with "mapping: {column: field}".' : "";
    const message = `Table ${table} has no column ${unknown.slice(0, 10).join(", ")}; it has ${columns.join(", ")}.${hint}`;
    throw transferFailure(failed("configuration", "UNKNOWN_COLUMN", message));
  }
  const pairs = wanted.map(([target, source]) => ({ target: columnOf(target)!, source }));
  const twice = pairs.find(({ target }, index) => pairs.findIndex((pair) => pair.target === target) !== index);
  if (twice === undefined) return pairs;
  const both = pairs.filter(({ target }) => target === twice.target).map(({ source }) => source);
  const message = `The fields ${both.join(" and ")} would both go into column ${twice.target} of table ${table}: name one with "mapping".`;
  throw transferFailure(failed("configuration", "DUPLICATE_COLUMN", message));
}

/** The pairs of the key's columns. Throws a {@link transferFailure} for a key column that receives no field. */
export function keyPairs(key: readonly string[], pairs: readonly ColumnPair[]): ColumnPair[] {
  return key.map((name) => {
    const pair = pairs.find(({ target }) => target.toLowerCase() === name.toLowerCase());
    if (pair !== undefined) return pair;
    const message = `The key's column ${name} is not among those that are written: ${pairs.map(({ target }) => target).join(", ")}.`;
    throw transferFailure(failed("configuration", "UNKNOWN_COLUMN", message));
  });
}
