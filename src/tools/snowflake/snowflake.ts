import * as v from "valibot";
import type { EgressGuard } from "../../platform/http/egress.ts";
import { defined } from "../../schema/words/defined.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import type { ToolResult } from "../../schema/words/outcome.ts";
import { AnyJson, abortedResult, answering, configurationError, parseConfig } from "../contract/task-config.ts";
import type { Tool, ToolCall } from "../contract/tool.ts";
import { createSqlHttp, type SqlHttp } from "../sql/http-client.ts";
import type { RowBudget, StatementResult } from "../sql/run.ts";
import { type SqlStatement, splitStatements, sqlPlaceholders } from "../sql/split-statements.ts";
import { noSqlError, readSqlTexts, statementView } from "../sql/task.ts";
import { runSnowflakeRequest, type SnowflakeClient, type SnowflakeRequest } from "./client.ts";
import { readSnowflakeConnection } from "./connection.ts";
import { SnowflakeSessions } from "./session.ts";
import { snowflakeBinding } from "./values.ts";

/** What {@link createSnowflakeTool} takes. */
export interface SnowflakeOptions {
  /** Which addresses may be reached. */
  egress: EgressGuard;
  /** Most rows that a task may give back. Default 1,000,000. */
  rowsMax?: number;
  /** Most bytes of answers that a task may read. Default 64 MiB. */
  resultBytesMax?: number;
  /** Most connections for one address. Default 4. */
  connectionsMax?: number;
  /** First and longest wait between two questions whether a statement has ended. Default 100 ms and 5 s. */
  poll?: SnowflakeClient["poll"];
}

/**
 * `warehouse` (alias `snowflake`): SQL by the warehouse's REST interface (language document, section 8). Several
 * statements without parameters go as one request, in which `begin`, `use` and temporary tables last; with parameters one
 * after the other. Result: that of the last statement, and every one's as `statement_0`, `statement_1`, ….
 */
export function createSnowflakeTool(options: SnowflakeOptions): Tool {
  const http = createSqlHttp(options.egress, {
    ...defined({ connectionsMax: options.connectionsMax }),
  });
  const sessions = new SnowflakeSessions(http);
  return {
    run: (call) => answering(() => runTask(call, http, sessions, options)),
    close: () => http.close(),
  };
}

const POLL = { firstMs: 100, longestMs: 5_000 };

const SnowflakeConfig = v.object({
  params: v.optional(v.array(AnyJson, "expects a list of values for $1, $2, … or for each ?")),
});

async function runTask(
  call: ToolCall,
  http: SqlHttp,
  sessions: SnowflakeSessions,
  options: SnowflakeOptions,
): Promise<ToolResult> {
  const { params = [] } = parseConfig("warehouse", SnowflakeConfig, call.config);
  const statements = readSqlTexts("warehouse", call.config).flatMap((text) => splitStatements(text, "snowflake"));
  if (statements.length === 0) throw noSqlError();
  const requests = toRequests(statements, params);
  const connection = readSnowflakeConnection(call.config, call.auth);
  const budget: RowBudget = {
    rows: options.rowsMax ?? 1_000_000,
    bytes: options.resultBytesMax ?? 64 * 1024 * 1024,
  };
  const { signal } = call;
  const authorize: SnowflakeClient["authorize"] = (until, stale) => sessions.authorize(connection, until, stale);
  const client: SnowflakeClient = { http, connection, authorize, signal, poll: options.poll ?? POLL };
  const results: StatementResult[] = [];
  let what = `Logging in to ${connection.origin.host}`;
  try {
    for (const request of requests) {
      what = request.what;
      const outcome = await runSnowflakeRequest(client, request, budget);
      if (!Array.isArray(outcome)) return outcome;
      results.push(...outcome);
    }
  } catch (error) {
    if (call.signal.aborted) return abortedResult(call.signal, what);
    throw error;
  }
  return snowflakeResult(results);
}

function toRequests(statements: readonly SqlStatement[], params: readonly Json[]): SnowflakeRequest[] {
  const count = statements.length;
  const [first] = statements;
  if (params.length === 0 && count > 1) {
    const statement = statements.map(({ text }) => text).join(";\n");
    return [{ statement, count, bindings: {}, what: `The SQL of ${count} statements` }];
  }
  if (first !== undefined && params.length === 0) {
    return [{ statement: first.text, count: 1, bindings: {}, what: "The SQL statement" }];
  }
  return statements.map((statement, index) => {
    const what = count === 1 ? "The SQL statement" : `SQL statement ${index + 1} of ${count}`;
    return { ...bound(statement.text, params, what), count: 1, what };
  });
}

/** Each `$n` becomes the warehouse's `?`, bound to the n-th parameter; the k-th `?` is bound to the k-th. */
function bound(text: string, params: readonly Json[], what: string): { statement: string; bindings: JsonObject } {
  const bindings: JsonObject = {};
  let statement = "";
  let copied = 0;
  for (const [index, place] of sqlPlaceholders(text, "snowflake").entries()) {
    const number = place.number ?? index + 1;
    if (number < 1 || number > params.length) {
      throw configurationError(`${what} uses parameter ${number}, and "params" has ${params.length}.`);
    }
    bindings[String(index + 1)] = snowflakeBinding(params[number - 1]!);
    statement += `${text.slice(copied, place.start)}?`;
    copied = place.end;
  }
  return { statement: statement + text.slice(copied), bindings };
}

function snowflakeResult(results: readonly StatementResult[]): ToolResult {
  const views = results.map(statementView);
  const data: JsonObject = { status: "success", ...views.at(-1) };
  for (const [index, view] of views.entries()) data[`statement_${index}`] = { status: "success", ...view };
  return { status: "ok", data };
}
