import { randomUUID } from "node:crypto";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import { parseJsonKeepingDigits } from "../contract/parse-big-integers.ts";
import { abortedResult, configurationError } from "../contract/task-config.ts";
import type { Credential, ToolCall } from "../contract/tool.ts";
import { headerText, isAnswer, type SqlHttp, type SqlHttpAnswer } from "../sql/http-client.ts";
import type { RowBudget, StatementResult } from "../sql/run.ts";
import { splitStatements, sqlPlaceholders } from "../sql/split-statements.ts";
import { noSqlError, readSqlTexts, sqlResult, tooManyRows } from "../sql/task.ts";
import { type ClickhouseConnection, readClickhouseConnection } from "./connection.ts";
import { clickhouseFailure } from "./errors.ts";
import { clickhouseParameter, clickhouseRow, parameterText } from "./values.ts";

/** How long stopping a statement on the server may take, milliseconds. */
const KILL_MS = 3_000;

/**
 * A task of `sqldb` whose credential is of type `analytics_db`: its statements, one after the other, by ClickHouse's HTTP
 * interface; those of one task share a session there, so that temporary tables and settings last for the task. Result as
 * with PostgreSQL. Throws FlowError `INVALID_INPUT` and `EGRESS_REFUSED`.
 */
export async function runClickhouseTask(
  call: ToolCall,
  credential: Credential,
  http: SqlHttp,
  budget: RowBudget,
): Promise<ToolResult> {
  const texts = readSqlTexts("sqldb", call.config).flatMap((text) => splitStatements(text, "snowflake"));
  if (texts.length === 0) throw noSqlError();
  const params = call.config["params"] ?? [];
  const statements = texts.map(({ text }) => bind(text, params));
  const connection = readClickhouseConnection(call.config, credential);
  const session = statements.length > 1 ? randomUUID() : undefined;
  const results: StatementResult[] = [];
  let what = "The SQL statement";
  try {
    for (const [index, statement] of statements.entries()) {
      if (statements.length > 1) what = `SQL statement ${index + 1} of ${statements.length}`;
      const outcome = await runStatement({ connection, http, signal: call.signal, session, what }, statement, budget);
      if ("status" in outcome) return outcome;
      results.push(outcome);
    }
  } catch (error) {
    if (call.signal.aborted) return abortedResult(call.signal, what);
    throw error;
  }
  return sqlResult(results);
}

interface StatementRun {
  connection: ClickhouseConnection;
  http: SqlHttp;
  signal: AbortSignal;
  session: string | undefined;
  /** Names the statement in messages. */
  what: string;
}

interface BoundStatement {
  text: string;
  /** Values by the name that the statement has for them. */
  values: Readonly<Record<string, string>>;
}

/** `$n` becomes `{pn:<type of the n-th value>}`; a map of values is for the `{name:Type}` that the text itself has. */
function bind(text: string, params: Json): BoundStatement {
  if (isJsonObject(params)) {
    return {
      text,
      values: Object.fromEntries(Object.entries(params).map(([name, value]) => [name, parameterText(value, false)])),
    };
  }
  if (!Array.isArray(params)) {
    throw configurationError(
      'The sqldb task\'s "params" is a list of values for $1, $2, …, or a map of values for {name:Type}.',
    );
  }
  const values: Record<string, string> = {};
  let bound = "";
  let copied = 0;
  for (const { start, end, number } of sqlPlaceholders(text, "snowflake")) {
    // `?` is an operator here.
    if (number === undefined) continue;
    const value = params[number - 1];
    if (value === undefined)
      throw configurationError(`The SQL uses parameter $${number}, and "params" has ${params.length} values.`);
    const parameter = clickhouseParameter(value);
    values[`p${number}`] = parameter.text;
    bound += `${text.slice(copied, start)}{p${number}:${parameter.type}}`;
    copied = end;
  }
  return { text: bound + text.slice(copied), values };
}

async function runStatement(
  run: StatementRun,
  statement: BoundStatement,
  budget: RowBudget,
): Promise<StatementResult | ToolResult> {
  const queryId = randomUUID();
  try {
    let answer = await send(run, statement, queryId, OUTPUT_SETTINGS, budget.bytes);
    // READONLY: a user who may not change settings. The values then come in the server's default format.
    if (isAnswer(answer) && headerText(answer.headers, "x-clickhouse-exception-code") === "164") {
      answer = await send(run, statement, randomUUID(), {}, budget.bytes);
    }
    return isAnswer(answer) ? readAnswer(run, answer, budget) : answer;
  } catch (error) {
    if (run.signal.aborted) await kill(run, queryId);
    throw error;
  }
}

/** So that no digit is lost, and times have one form. */
const OUTPUT_SETTINGS = {
  output_format_json_quote_64bit_integers: "1",
  output_format_json_quote_decimals: "1",
  output_format_json_quote_denormals: "1",
  date_time_output_format: "iso",
};

async function send(
  { connection, http, signal, session }: Omit<StatementRun, "what">,
  { text, values }: BoundStatement,
  queryId: string,
  settings: Readonly<Record<string, string>>,
  bytesMax?: number,
): Promise<SqlHttpAnswer | ToolResult> {
  const url = new URL("/", connection.origin);
  const query = {
    database: connection.database,
    default_format: "JSONCompact",
    query_id: queryId,
    // The status then is that of the whole statement, and not of its first rows.
    wait_end_of_query: "1",
    ...settings,
  };
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  if (session !== undefined) url.searchParams.set("session_id", session);
  for (const [name, value] of Object.entries(values)) url.searchParams.set(`param_${name}`, value);
  // Basic, because the server's own headers hold no character beyond ASCII.
  const login = Buffer.from(`${connection.user}:${connection.password}`).toString("base64");
  const headers = { "content-type": "text/plain; charset=utf-8", authorization: `Basic ${login}` };
  return await http.send(
    { method: "POST", url, headers, body: text, verifySsl: connection.verifySsl, ca: connection.ca },
    signal,
    bytesMax,
  );
}

function readAnswer(run: StatementRun, answer: SqlHttpAnswer, budget: RowBudget): StatementResult | ToolResult {
  const { origin } = run.connection;
  const exception = headerText(answer.headers, "x-clickhouse-exception-code");
  if (answer.status !== 200 || exception !== undefined) {
    return clickhouseFailure(run.what, origin.host, answer.status, exception, answer.text);
  }
  if (answer.text.trim() === "") return { rows: [], rowCount: writtenRows(answer), columns: [] };
  const body = parsed(answer.text);
  const meta = isJsonObject(body) ? own(body, "meta") : undefined;
  const data = isJsonObject(body) ? own(body, "data") : undefined;
  if (!Array.isArray(meta) || !Array.isArray(data)) {
    const format = headerText(answer.headers, "x-clickhouse-format");
    const message = `${run.what} gave no rows that can be read${format === undefined ? "" : ` (format ${format})`}: leave "format" out of the SQL.`;
    return failed("parse", "INVALID_RESPONSE", message);
  }
  budget.rows -= data.length;
  budget.bytes -= answer.bytes;
  if (budget.rows < 0) return failed("client_error", "RESULT_TOO_LARGE", tooManyRows(run.what));
  const columns = meta
    .filter(isJsonObject)
    .map((column) => ({ name: String(column["name"]), type: String(column["type"]) }));
  const rows = data.map((cells): JsonObject => clickhouseRow(Array.isArray(cells) ? cells : [], columns));
  return { rows, rowCount: rows.length, columns: columns.map(({ name }) => name) };
}

function parsed(text: string): Json | undefined {
  try {
    return parseJsonKeepingDigits(text);
  } catch {
    return undefined;
  }
}

/** Rows that an insert wrote, from the summary that the server gives at the end. */
function writtenRows(answer: SqlHttpAnswer): number {
  const summary = parsed(headerText(answer.headers, "x-clickhouse-summary") ?? "");
  const rows = isJsonObject(summary) ? Number(own(summary, "written_rows")) : 0;
  return Number.isSafeInteger(rows) ? rows : 0;
}

/** Never throws: the task is stopped either way. */
async function kill(run: StatementRun, queryId: string): Promise<void> {
  const signal = AbortSignal.timeout(KILL_MS);
  const statement = { text: "KILL QUERY WHERE query_id = {id:String} ASYNC", values: { id: queryId } };
  try {
    await send({ ...run, session: undefined, signal }, statement, randomUUID(), {});
  } catch {
    // It cannot be reached: there is nothing more that we can do.
  }
}
