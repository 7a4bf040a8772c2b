import type { DuckDBPreparedStatement, DuckDBResult } from "@duckdb/node-api";
import { type Json, type JsonObject, jsonSize, setOwn } from "../../schema/words/json.ts";
import { configurationError } from "../contract/task-config.ts";
import type { RowBudget, StatementResult } from "../sql/run.ts";
import type { DuckdbLease } from "./databases.ts";
import { duckdbJson, duckdbParameter } from "./values.ts";

/** Values for placeholders: by number for `$1` and `?`, by name for `$name`. */
export type DuckdbParams = readonly Json[] | JsonObject;

/**
 * Runs a prepared statement and reads its rows. Answers "too much" when it gave more than the budget allows. Throws the
 * driver's error, FlowError `INVALID_INPUT` for a parameter without a value, and the signal's reason.
 */
export async function runDuckdbStatement(
  loan: DuckdbLease,
  prepared: DuckDBPreparedStatement,
  params: DuckdbParams,
  budget: RowBudget,
  signal: AbortSignal,
): Promise<StatementResult | "too much"> {
  bindParameters(loan, prepared, params);
  return await interruptible(loan, signal, async () => {
    const result = await loan.turn(() => prepared.stream(), signal);
    const { ResultReturnType } = loan.driver;
    if (result.returnType === ResultReturnType.CHANGED_ROWS)
      return { rows: [], rowCount: result.rowsChanged, columns: [] };
    if (result.returnType === ResultReturnType.NOTHING) return { rows: [], rowCount: 0, columns: [] };
    return await readRows(loan, result, budget, signal);
  });
}

/** Chunks of a result, some 2,000 rows each, until it ends. Throws the signal's reason. */
export async function* duckdbChunks(
  loan: DuckdbLease,
  result: DuckDBResult,
  signal: AbortSignal,
): AsyncGenerator<Json[][]> {
  const types = result.columnTypes();
  for (;;) {
    const chunk = await loan.turn(() => result.fetchChunk(), signal);
    // An interrupted stream ends like a complete one.
    signal.throwIfAborted();
    if (chunk === null || chunk.rowCount === 0) return;
    yield chunk.getRows().map((row) => row.map((value, column) => duckdbJson(loan.driver, value, types[column]!)));
  }
}

/** Interval at which a running statement is interrupted again: an interrupt between two of its parts is lost. */
const INTERRUPT_MS = 20;

/**
 * Does the work; when the signal aborts, interrupts the connection until the work has ended, because a connection that is
 * closed under a statement never answers. Throws the signal's reason then.
 */
export async function interruptible<T>(loan: DuckdbLease, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    loan.connection.interrupt();
    timer = setInterval(() => loan.connection.interrupt(), INTERRUPT_MS);
  };
  signal.throwIfAborted();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const result = await work();
    // It ended before the interruption reached it; the task is stopped all the same.
    signal.throwIfAborted();
    return result;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    clearInterval(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

async function readRows(
  loan: DuckdbLease,
  result: DuckDBResult,
  budget: RowBudget,
  signal: AbortSignal,
): Promise<StatementResult | "too much"> {
  const columns = result.columnNames();
  const rows: JsonObject[] = [];
  for await (const chunk of duckdbChunks(loan, result, signal)) {
    for (const values of chunk) {
      const row: JsonObject = {};
      for (const [index, value] of values.entries()) setOwn(row, columns[index]!, value);
      budget.rows -= 1;
      budget.bytes -= jsonSize(row);
      rows.push(row);
    }
    if (budget.rows < 0 || budget.bytes < 0) return "too much";
  }
  return { rows, rowCount: rows.length, columns };
}

/** Binds the values that a statement names. Throws FlowError `INVALID_INPUT` for a missing value. */
export function bindParameters(loan: DuckdbLease, prepared: DuckDBPreparedStatement, params: DuckdbParams): void {
  for (let index = 1; index <= prepared.parameterCount; index += 1) {
    const name = prepared.parameterName(index);
    const value = Array.isArray(params)
      ? params[Number(name) - 1]
      : Object.getOwnPropertyDescriptor(params, name)?.value;
    if (value === undefined) {
      const expected = Array.isArray(params) ? `a list with a value for each of $1, $2, …` : "a map by name";
      throw configurationError(
        `The SQL uses the parameter $${name}, and "params" has no value for it: give ${expected}.`,
      );
    }
    prepared.bindValue(index, duckdbParameter(loan.driver, value as Json));
  }
}
