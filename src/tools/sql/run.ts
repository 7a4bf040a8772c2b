import type postgres from "postgres";
import { defined } from "../../schema/words/defined.ts";
import { type Json, type JsonObject, jsonSize, setOwn } from "../../schema/words/json.ts";
import { namedParameters } from "./parameters.ts";
import type { SqlSession } from "./session.ts";
import type { SqlStatement } from "./split-statements.ts";
import { bindParameter } from "./types.ts";

/** How much a task's statements may give back, over all of them. It is counted down as rows come. */
export interface RowBudget {
  rows: number;
  /** Approximate size as JSON. */
  bytes: number;
}

/** What one statement gave. */
export interface StatementResult {
  rows: JsonObject[];
  /** Rows given, or changed by a statement that gives none. */
  rowCount: number;
  columns: string[];
  /** The server's command tag: `SELECT`, `INSERT`, `CREATE TABLE`. */
  command?: string;
}

/**
 * Runs one statement. Answers "too much" when it gave more than the budget allows (it is then cancelled, so that a
 * statement that changes data is undone), "copy" for a `copy … from stdin` or `to stdout`, which has no rows. In both
 * cases the session cannot be used again. Throws the driver's error.
 */
export async function runStatement(
  session: SqlSession,
  statement: SqlStatement,
  params: readonly Json[],
  budget: RowBudget,
): Promise<StatementResult | "too much" | "copy"> {
  const { text, values: named } = namedParameters(statement, params);
  const bound = named.map((value) => bindParameter(session.sql, value));
  // Not the simple protocol: there the server would split the text by itself.
  const options = { prepare: false, simple: false } as postgres.UnsafeQueryOptions;
  const query = session.sql.unsafe(text, bound as unknown as postgres.SerializableParameter[], options);
  const values = query.values() as unknown as StreamedQuery;

  const rows: JsonObject[] = [];
  let columns: string[] = [];
  let tooMuch = false;
  let cancelled: Promise<void> | undefined;
  const streamed = values.forEach((row, result) => {
    if (tooMuch) return;
    if (rows.length === 0) columns = result.columns.map((column) => column.name);
    budget.rows -= 1;
    budget.bytes -= row.reduce<number>((size, value, index) => size + columns[index]!.length + jsonSize(value), 4);
    tooMuch = budget.rows < 0 || budget.bytes < 0;
    if (tooMuch) {
      rows.length = 0;
      cancelled = session.cancel();
    } else {
      rows.push(rowObject(columns, row));
    }
  });
  try {
    const result = await streamed;
    if (tooMuch) return "too much";
    if (isStream(result)) {
      result.destroy();
      return "copy";
    }
    return {
      rows,
      rowCount: result.count ?? rows.length,
      columns: (result.columns ?? []).map((column) => column.name),
      ...defined({ command: result.command }),
    };
  } catch (error) {
    if (tooMuch) return "too much";
    throw error;
  } finally {
    await cancelled;
  }
}

/** The driver's query in rows of values, one row at a time; its own types do not know this combination. */
interface StreamedQuery {
  forEach(take: (row: Json[], result: { columns: { name: string }[] }) => void): Promise<StreamedResult>;
}

interface StreamedResult {
  count: number | null;
  columns?: { name: string }[];
  command?: string;
}

function isStream(result: object): result is { destroy(): void } {
  return "destroy" in result;
}

/** A row of the driver's `values()` as an object. A column called `__proto__` stays a column. */
function rowObject(columns: readonly string[], values: readonly Json[]): Record<string, Json> {
  const row: Record<string, Json> = {};
  for (let index = 0; index < columns.length; index += 1) setOwn(row, columns[index]!, values[index] ?? null);
  return row;
}
