import * as v from "valibot";
import type { Json } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import { runClickhouseTask } from "../clickhouse/clickhouse.ts";
import { isClickhouse } from "../clickhouse/connection.ts";
import { AnyJson, abortedResult, answering, configurationError, parseConfig } from "../contract/task-config.ts";
import type { Tool, ToolCall } from "../contract/tool.ts";
import { cancellable } from "../sql/cancel.ts";
import { chooseCredential, readSqlConnection, type SqlConnection } from "../sql/connection.ts";
import { describePlace, type StatementPlace, sqlFailure } from "../sql/errors.ts";
import { createSqlHttp } from "../sql/http-client.ts";
import { SqlPools } from "../sql/pool.ts";
import { type RowBudget, runStatement, type StatementResult } from "../sql/run.ts";
import type { SqlSession } from "../sql/session.ts";
import type { SqlEgress } from "../sql/socket.ts";
import { type SqlStatement, splitStatements } from "../sql/split-statements.ts";
import { leftOpenResult, noSqlError, readSqlTexts, sqlResult, tooManyRows } from "../sql/task.ts";

/** What {@link createSqldbTool} takes. */
export interface SqldbOptions {
  /** Which servers may be reached; over HTTP (credential type `analytics_db`) those that playbooks may. */
  egress: SqlEgress;
  /** Most rows that a task may give back. Default 1,000,000. */
  rowsMax?: number;
  /** Most bytes (as JSON, about) that a task may give back. Default 64 MiB. */
  resultBytesMax?: number;
  /** Most connections for one credential; further tasks wait. Default 4. */
  connectionsMax?: number;
  /** A connection unused for so many milliseconds is closed. Default 30,000. */
  idleMs?: number;
  /** Longest wait for a connection, in milliseconds. Default 10,000. */
  connectTimeoutMs?: number;
}

/** The tool with its connections, which `transfer` uses too. */
export interface SqldbTool extends Tool {
  readonly pools: SqlPools;
}

/**
 * `sqldb` (aliases `postgres`, `sql`): SQL statements, each its own transaction unless the text itself says `begin`
 * (language document, section 8). Stops at the first error. Result: that of the last statement as
 * `{status, rows, row_count, columns, statement_count}`, every statement's as the virtual `command_0`, `command_1`, ….
 * All statements of a task run on one connection, so temporary tables and settings last for the task, and no longer. With
 * a credential of type `analytics_db` they go to ClickHouse.
 */
export function createSqldbTool(options: SqldbOptions): SqldbTool {
  const pools = new SqlPools({
    egress: options.egress,
    sessionsMax: options.connectionsMax ?? 4,
    idleMs: options.idleMs ?? 30_000,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
  });
  const http = createSqlHttp(options.egress.ofPlaybooks, {
    connectionsMax: options.connectionsMax ?? 4,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
  });
  return {
    pools,
    run: (call) =>
      answering(async () => {
        const credential = chooseCredential(call.auth);
        if (!isClickhouse(credential)) return await runTask(call, pools, options);
        return await runClickhouseTask(call, credential, http, rowBudget(options));
      }),
    async close() {
      await Promise.all([pools.close(), http.close()]);
    },
  };
}

function rowBudget(options: SqldbOptions): RowBudget {
  return { rows: options.rowsMax ?? 1_000_000, bytes: options.resultBytesMax ?? 64 * 1024 * 1024 };
}

async function runTask(call: ToolCall, pools: SqlPools, options: SqldbOptions): Promise<ToolResult> {
  const task = readSqlTask(call);
  const { connection } = task;
  const target = `${connection.user}@${connection.host}:${connection.port}/${connection.database}`;
  let session: SqlSession;
  try {
    session = await pools.acquire(connection, call.signal);
  } catch (error) {
    if (call.signal.aborted) return abortedResult(call.signal, `Connecting to ${target}`);
    return sqlFailure(target, error);
  }
  session.onNotice = (line) => call.log(line);
  const { result, reusable } = await runStatements(call, task, session, rowBudget(options), target);
  pools.release(session, reusable);
  return result;
}

/** Reusable is false when a cancellation is under way, which could otherwise hit the next task's statement. */
async function runStatements(
  call: ToolCall,
  task: SqlTask,
  session: SqlSession,
  budget: RowBudget,
  target: string,
): Promise<{ result: ToolResult; reusable: boolean }> {
  const results: StatementResult[] = [];
  let place: StatementPlace = { statement: task.statements[0]!, number: 1, count: task.statements.length };
  try {
    for (const [index, statement] of task.statements.entries()) {
      place = { statement, number: index + 1, count: task.statements.length };
      // What the statements before it left on the connection (a transaction, a temporary table) is gone with it.
      if (index > 0 && session.lost()) {
        const lost = Object.assign(new Error("it was lost between two statements"), { code: "CONNECTION_CLOSED" });
        return { result: sqlFailure(target, lost, place), reusable: false };
      }
      const outcome = await cancellable(call.signal, session, runStatement(session, statement, task.params, budget));
      if (typeof outcome === "string") return { result: refusedResult(outcome, place), reusable: false };
      results.push(outcome);
    }
    if (opensTransaction(task.statements) && (await inTransaction(session))) {
      return { result: leftOpenResult(), reusable: true };
    }
    return { result: sqlResult(results), reusable: true };
  } catch (error) {
    if (call.signal.aborted) return { result: abortedResult(call.signal, describePlace(place)), reusable: false };
    return { result: sqlFailure(target, error, place), reusable: true };
  }
}

interface SqlTask {
  connection: SqlConnection;
  statements: SqlStatement[];
  params: Json[];
}

const SqlConfig = v.object({
  params: v.optional(v.array(AnyJson, "expects a list of values for $1, $2, …")),
});

function readSqlTask(call: ToolCall): SqlTask {
  const { params = [] } = parseConfig("sqldb", SqlConfig, call.config);
  const statements = readSqlTexts("sqldb", call.config).flatMap((text) => splitStatements(text));
  if (statements.length === 0) throw noSqlError();
  checkParameters(statements, params);
  return { connection: readSqlConnection(call.config, call.auth), statements, params };
}

/** Each statement takes as many of the parameters as it has placeholders; none may be missing or left over. */
function checkParameters(statements: readonly SqlStatement[], params: readonly Json[]): void {
  const used = statements.reduce((most, { placeholders }) => Math.max(most, placeholders), 0);
  if (used === params.length) return;
  throw configurationError(
    `The SQL uses parameters up to $${used}, and "params" has ${params.length} value${params.length === 1 ? "" : "s"}: write one value for each of $1, $2, ….`,
  );
}

function refusedResult(outcome: "too much" | "copy", place: StatementPlace): ToolResult {
  const where = describePlace(place);
  if (outcome === "too much") {
    return failed("client_error", "RESULT_TOO_LARGE", tooManyRows(where));
  }
  return failed(
    "configuration",
    "COPY_NOT_SUPPORTED",
    `${where} is a COPY over the connection, which this task cannot feed: use insert or select.`,
  );
}

function opensTransaction(statements: readonly SqlStatement[]): boolean {
  return statements.some(({ keyword }) => keyword === "begin" || keyword === "start");
}

/**
 * Inside a transaction `now()` stands still at its start; outside it is the statement's own time. By the simple protocol
 * (text without parameters): the extended one takes the statement's time anew for each of its messages.
 */
async function inTransaction(session: SqlSession): Promise<boolean> {
  const rows = await session.sql.unsafe<{ open: boolean }[]>("select now() <> statement_timestamp() as open");
  return rows[0]?.open === true;
}
