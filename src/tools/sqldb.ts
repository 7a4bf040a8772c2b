import * as v from "valibot";
import type { Json, JsonObject } from "../schema/json.ts";
import { failed, type ToolResult } from "../schema/outcome.ts";
import { AnyJson, abortedResult, answering, configurationError, parseConfig } from "./config.ts";
import { readSqlConnection, type SqlConnection } from "./sql-connection.ts";
import { describePlace, type StatementPlace, sqlFailure } from "./sql-failure.ts";
import { SqlPools } from "./sql-pool.ts";
import { type RowBudget, runStatement, type StatementResult } from "./sql-run.ts";
import type { SqlSession } from "./sql-session.ts";
import { type SqlStatement, splitStatements } from "./sql-split.ts";
import type { Tool, ToolCall } from "./tool.ts";

/** What {@link createSqldbTool} takes. */
export interface SqldbOptions {
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

/**
 * `sqldb` (aliases `postgres`, `sql`): SQL statements, each its own transaction unless the text itself says `begin`
 * (language document, section 8). Stops at the first error. Result: that of the last statement as
 * `{status, rows, row_count, columns, statement_count}`, every statement's as the virtual `command_0`, `command_1`, ….
 * All statements of a task run on one connection, so temporary tables and settings last for the task, and no longer.
 */
export function createSqldbTool(options: SqldbOptions = {}): Tool {
  const pools = new SqlPools({
    sessionsMax: options.connectionsMax ?? 4,
    idleMs: options.idleMs ?? 30_000,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
  });
  return {
    run: (call) => answering(() => runTask(call, pools, options)),
    close: () => pools.close(),
  };
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
  const budget = { rows: options.rowsMax ?? 1_000_000, bytes: options.resultBytesMax ?? 64 * 1024 * 1024 };
  const { result, reusable } = await runStatements(call, task, session, budget, target);
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
    return { result: successResult(results), reusable: true };
  } catch (error) {
    if (call.signal.aborted) return { result: abortedResult(call.signal, describePlace(place)), reusable: false };
    return { result: sqlFailure(target, error, place), reusable: true };
  }
}

/** How long a cancelled statement may take to end before its connection is given up. */
const CANCEL_GRACE_MS = 3000;

/** Waits for the work; when the signal aborts, cancels it on the server and waits a little more, then throws. */
async function cancellable<T>(signal: AbortSignal, session: SqlSession, work: Promise<T>): Promise<T> {
  let onAbort = () => {};
  let grace: NodeJS.Timeout | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => {
      grace = setTimeout(() => reject(signal.reason), CANCEL_GRACE_MS);
      void session.cancel();
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    const result = await Promise.race([work, aborted]);
    // It ended before the cancellation reached it; the task is stopped all the same.
    signal.throwIfAborted();
    return result;
  } finally {
    clearTimeout(grace);
    signal.removeEventListener("abort", onAbort);
  }
}

interface SqlTask {
  connection: SqlConnection;
  statements: SqlStatement[];
  params: Json[];
}

/** Keys that hold SQL, in the order in which they are looked for; each also with `_b64`. */
const SQL_KEYS = ["command", "commands", "query", "queries", "cmd", "cmds", "script", "sql"] as const;

const SqlConfig = v.object({
  params: v.optional(v.array(AnyJson, "expects a list of values for $1, $2, …")),
});

function readSqlTask(call: ToolCall): SqlTask {
  const { params = [] } = parseConfig("sqldb", SqlConfig, call.config);
  const statements = readSqlTexts(call.config).flatMap(splitStatements);
  if (statements.length === 0) {
    throw configurationError('No SQL command provided: give it as "command" (text, or a list of texts) or "query".');
  }
  checkParameters(statements, params);
  return { connection: readSqlConnection(call.config, call.auth), statements, params };
}

function readSqlTexts(config: JsonObject): string[] {
  for (const key of SQL_KEYS) {
    for (const name of [key, `${key}_b64`]) {
      const value = config[name] ?? null;
      if (value === null) continue;
      const texts = Array.isArray(value) ? value : [value];
      if (!texts.every((text) => typeof text === "string")) {
        throw configurationError(
          `The sqldb task is not configured correctly: key "${name}" expects SQL text or a list of texts.`,
        );
      }
      return name === key ? texts : texts.map((text) => Buffer.from(text, "base64").toString("utf8"));
    }
  }
  return [];
}

/** Each statement takes as many of the parameters as it has placeholders; none may be missing or left over. */
function checkParameters(statements: readonly SqlStatement[], params: readonly Json[]): void {
  const used = statements.reduce((most, { placeholders }) => Math.max(most, placeholders), 0);
  if (used === params.length) return;
  throw configurationError(
    `The SQL uses parameters up to $${used}, and "params" has ${params.length} value${params.length === 1 ? "" : "s"}: write one value for each of $1, $2, ….`,
  );
}

function successResult(results: readonly StatementResult[]): ToolResult {
  const views = results.map(({ rows, rowCount, columns }) => ({ rows, row_count: rowCount, columns }));
  const data: JsonObject = { status: "success", ...views.at(-1)!, statement_count: results.length };
  const virtual: JsonObject = {};
  for (const [index, view] of views.entries()) virtual[`command_${index}`] = { status: "success", ...view };
  return { status: "ok", data, virtual };
}

function refusedResult(outcome: "too much" | "copy", place: StatementPlace): ToolResult {
  const where = describePlace(place);
  if (outcome === "too much") {
    return failed(
      "client_error",
      "RESULT_TOO_LARGE",
      `${where} gave more rows than a task may return. Read less at a time: add "limit", select fewer columns, or loop with a cursor.`,
    );
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

function leftOpenResult(): ToolResult {
  const message = 'The SQL opened a transaction and did not end it, so it was rolled back: add "commit" at its end.';
  return failed("db_error", "TRANSACTION_LEFT_OPEN", message);
}
