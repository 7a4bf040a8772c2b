import type { DuckDBPreparedStatement } from "@duckdb/node-api";
import * as v from "valibot";
import { defined } from "../../schema/words/defined.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { isJsonObject } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import {
  AnyJson,
  abortedResult,
  answering,
  configurationError,
  parseConfig,
  TextLike,
} from "../contract/task-config.ts";
import type { Tool, ToolCall } from "../contract/tool.ts";
import type { RowBudget, StatementResult } from "../sql/run.ts";
import { splitStatements } from "../sql/split-statements.ts";
import { leftOpenResult, noSqlError, readSqlTexts, sqlResult, tooManyRows } from "../sql/task.ts";
import { type DuckdbAccess, DuckdbDatabases, type DuckdbLease } from "./databases.ts";
import type { Duckdb } from "./driver.ts";
import { type DuckdbPlace, duckdbFailure } from "./errors.ts";
import { type DuckdbParams, runDuckdbStatement } from "./run.ts";

/** What {@link createDuckdbTool} takes. */
export interface DuckdbOptions {
  /** Folders whose files statements may use, or `all`. Default none. */
  files?: "all" | readonly string[];
  /** Whether statements may use the network and load extensions; needs all files. Default no. */
  network?: boolean;
  /** Memory of one database. Default `1GB`. */
  memory?: string;
  /** Most in-memory databases kept at a time. Default 16. */
  databasesMax?: number;
  /** An in-memory database unused for so many milliseconds is dropped. Default 3,600,000. */
  idleMs?: number;
  /** Most rows that a task may give back. Default 1,000,000. */
  rowsMax?: number;
  /** Most bytes (as JSON, about) that a task may give back. Default 64 MiB. */
  resultBytesMax?: number;
  /** For tests: loads the driver. */
  load?: () => Promise<Duckdb>;
}

/** The tool with its databases, which `transfer` uses too. */
export interface DuckdbTool extends Tool {
  readonly databases: DuckdbDatabases;
}

/**
 * `duckdb`: SQL in a DuckDB of this process (language document, section 8). Statements, parameters and result are as
 * with `sqldb`; all statements of a task run on one connection. Without `database` an execution has one in memory, on
 * each worker that it comes to, dropped when it was not used for a while.
 */
export function createDuckdbTool(options: DuckdbOptions = {}): DuckdbTool {
  const files = options.files ?? [];
  const access: DuckdbAccess = { files, network: files === "all" && (options.network ?? false) };
  const databases = new DuckdbDatabases({
    access,
    memory: options.memory ?? "1GB",
    databasesMax: options.databasesMax ?? 16,
    idleMs: options.idleMs ?? 3_600_000,
    ...defined({ load: options.load }),
  });
  return {
    databases,
    run: (call) => answering(() => runTask(call, databases, options)),
    close: () => databases.close(),
  };
}

const DuckdbConfig = v.object({ database: v.optional(TextLike), params: v.optional(AnyJson) });

async function runTask(call: ToolCall, databases: DuckdbDatabases, options: DuckdbOptions): Promise<ToolResult> {
  const { database, params = [] } = parseConfig("duckdb", DuckdbConfig, call.config);
  if (!Array.isArray(params) && !isJsonObject(params)) {
    throw configurationError(
      'The duckdb task\'s "params" is a list of values for $1, $2, …, or a map of values for $name.',
    );
  }
  const texts = readSqlTexts("duckdb", call.config);
  if (texts.length === 0) throw noSqlError();
  if (call.signal.aborted) return abortedResult(call.signal, "The duckdb task");
  const opened = await open(call, databases, database);
  if ("status" in opened) return opened;
  try {
    const budget = { rows: options.rowsMax ?? 1_000_000, bytes: options.resultBytesMax ?? 64 * 1024 * 1024 };
    return await runTexts(call, opened, texts, params, budget);
  } finally {
    opened.release();
  }
}

async function open(
  call: ToolCall,
  databases: DuckdbDatabases,
  database: string | undefined,
): Promise<DuckdbLease | ToolResult> {
  try {
    return await databases.lend(call.executionId, database);
  } catch (error) {
    if (error instanceof FlowError) throw error;
    return duckdbFailure(error, { what: `Opening the database ${database ?? "in memory"}`, isNew: false });
  }
}

async function runTexts(
  call: ToolCall,
  loan: DuckdbLease,
  texts: readonly string[],
  params: DuckdbParams,
  budget: RowBudget,
): Promise<ToolResult> {
  const place: DuckdbPlace = { what: "The SQL", isNew: loan.isNew };
  const results: StatementResult[] = [];
  let transactions = false;
  try {
    const statements = await extract(loan, texts, call.signal);
    if (statements.length === 0) throw noSqlError();
    for (const [index, prepare] of statements.entries()) {
      place.what = statements.length === 1 ? "The SQL statement" : `SQL statement ${index + 1} of ${statements.length}`;
      // Only now: it may use what the statement before it made.
      const prepared = await loan.turn(prepare, call.signal);
      transactions ||= prepared.statementType === loan.driver.StatementType.TRANSACTION;
      const outcome = await runDuckdbStatement(loan, prepared, params, budget, call.signal);
      prepared.destroySync();
      if (outcome === "too much") return failed("client_error", "RESULT_TOO_LARGE", tooManyRows(place.what));
      results.push(outcome);
    }
    if (transactions && (await rollBack(loan, call.signal))) return leftOpenResult();
    return sqlResult(results);
  } catch (error) {
    if (call.signal.aborted) return abortedResult(call.signal, place.what);
    if (error instanceof FlowError) throw error;
    return duckdbFailure(error, place);
  }
}

type Prepare = () => Promise<DuckDBPreparedStatement>;

/** The statements of all texts, by DuckDB's own parser. */
async function extract(loan: DuckdbLease, texts: readonly string[], signal: AbortSignal): Promise<Prepare[]> {
  const statements: Prepare[] = [];
  for (const text of texts) {
    // The driver refuses a text of nothing but comments, and gives no reason.
    if (splitStatements(text).length === 0) continue;
    const extracted = await loan.turn(() => loan.connection.extractStatements(text), signal);
    for (let index = 0; index < extracted.count; index += 1) statements.push(() => extracted.prepare(index));
  }
  return statements;
}

/** False if no transaction was open: DuckDB then refuses. */
async function rollBack(loan: DuckdbLease, signal: AbortSignal): Promise<boolean> {
  try {
    await loan.turn(() => loan.connection.run("rollback"), signal);
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (/no transaction is active/i.test(messageOf(error))) return false;
    throw error;
  }
}
