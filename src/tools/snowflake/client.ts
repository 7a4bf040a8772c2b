import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isJsonObject, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import { parseJsonKeepingDigits } from "../contract/parse-big-integers.ts";
import { isAnswer, type SqlHttp, type SqlHttpAnswer, type SqlHttpRequest } from "../sql/http-client.ts";
import type { RowBudget, StatementResult } from "../sql/run.ts";
import { tooManyRows } from "../sql/task.ts";
import type { SnowflakeConnection } from "./connection.ts";
import { snowflakeFailure } from "./errors.ts";
import { isAuth, type SnowflakeAuth } from "./session.ts";
import { type SnowflakeColumn, snowflakeJson } from "./values.ts";

/** One request to run SQL: a statement with its bindings, or several statements as one text. */
export interface SnowflakeRequest {
  statement: string;
  /** How many statements it is. */
  count: number;
  bindings: JsonObject;
  /** Names the statement in messages. */
  what: string;
}

/** Everything that talking to one warehouse needs. */
export interface SnowflakeClient {
  http: SqlHttp;
  connection: SnowflakeConnection;
  /** Headers of a login; different from `stale`. */
  authorize(signal: AbortSignal, stale?: SnowflakeAuth): Promise<SnowflakeAuth | ToolResult>;
  signal: AbortSignal;
  /** First and longest wait between two questions whether a statement has ended, milliseconds. */
  poll: { firstMs: number; longestMs: number };
}

/** Failures in a row of asking whether a statement has ended, after which it is given up (and cancelled). */
const POLL_FAILURES_MAX = 5;
/** How long cancelling may take, milliseconds. */
const CANCEL_MS = 3_000;

/**
 * Runs a request to its end and reads the rows of all its statements. The warehouse is asked to run it in the background,
 * so that its handle is known at once: what is cancelled here is cancelled there. Throws the signal's reason.
 */
export async function runSnowflakeRequest(
  client: SnowflakeClient,
  request: SnowflakeRequest,
  budget: RowBudget,
): Promise<StatementResult[] | ToolResult> {
  let handle: string | undefined;
  try {
    const submitted = await submit(client, request);
    if (!isBody(submitted)) return submitted;
    handle = textOf(submitted, "statementHandle");
    client.signal.throwIfAborted();
    const ended = await untilEnded(client, request, submitted);
    if (!isBody(ended)) return ended;
    const handles = own(ended, "statementHandles");
    if (!Array.isArray(handles)) {
      const result = await readResult(client, request, ended, handle ?? "", budget);
      return "status" in result ? result : [result];
    }
    const results: StatementResult[] = [];
    for (const part of handles) {
      const found = await ask(client, request, statementUrl(client, String(part)));
      if (!isBody(found)) return found;
      const result = await readResult(client, request, found, String(part), budget);
      if ("status" in result) return result;
      results.push(result);
    }
    return results;
  } catch (error) {
    if (handle !== undefined) await cancel(client, handle);
    throw error;
  }
}

/** Of bodies of answers only the warehouse's own count as such: a failed result has no status code beside it. */
type Body = JsonObject & { httpStatus: number };

function isBody(outcome: Body | ToolResult): outcome is Body {
  return "httpStatus" in outcome;
}

async function submit(client: SnowflakeClient, request: SnowflakeRequest): Promise<Body | ToolResult> {
  const url = new URL("/api/v2/statements", client.connection.origin);
  url.searchParams.set("requestId", randomUUID());
  url.searchParams.set("async", "true");
  const body: JsonObject = {
    statement: request.statement,
    ...client.connection.context,
    resultSetMetaData: { format: "jsonv2" },
    ...(Object.keys(request.bindings).length > 0 && { bindings: request.bindings }),
    ...(request.count > 1 && { parameters: { MULTI_STATEMENT_COUNT: String(request.count) } }),
  };
  // A cancellation meanwhile waits a little: without the handle the statement could not be cancelled there.
  return await ask({ ...client, signal: aLittleAfter(client.signal, CANCEL_MS) }, request, url, body);
}

function aLittleAfter(signal: AbortSignal, ms: number): AbortSignal {
  const later = new AbortController();
  const onAbort = () => setTimeout(() => later.abort(signal.reason), ms).unref();
  if (signal.aborted) later.abort(signal.reason);
  else signal.addEventListener("abort", onAbort, { once: true });
  return later.signal;
}

/** Asks again and again, less often with time, until the statement is no longer under way. */
async function untilEnded(client: SnowflakeClient, request: SnowflakeRequest, first: Body): Promise<Body | ToolResult> {
  const url = statusUrl(client, first);
  let latest: Body | ToolResult = first;
  let failures = 0;
  for (let waitMs = client.poll.firstMs; ; waitMs = Math.min(waitMs * 1.5, client.poll.longestMs)) {
    if (isBody(latest) && latest.httpStatus !== 202) return latest;
    if (!isBody(latest)) {
      // The statement goes on while its warehouse is not reached for a moment.
      failures += 1;
      if (latest.error?.retryable !== true || failures >= POLL_FAILURES_MAX) {
        await cancel(client, textOf(first, "statementHandle") ?? "");
        return latest;
      }
    } else {
      failures = 0;
    }
    await sleep(waitMs, undefined, { signal: client.signal });
    latest = await ask(client, request, url);
  }
}

async function readResult(
  client: SnowflakeClient,
  request: SnowflakeRequest,
  first: Body,
  handle: string,
  budget: RowBudget,
): Promise<StatementResult | ToolResult> {
  const meta = objectOf(first, "resultSetMetaData");
  const columns = listOf(meta, "rowType").map(readColumn);
  const partitions = listOf(meta, "partitionInfo").length;
  const rows: JsonObject[] = [];
  for (let part = 0; ; part += 1) {
    const url = statementUrl(client, handle);
    url.searchParams.set("partition", String(part));
    const body = part === 0 ? first : await ask(client, request, url, undefined, budget.bytes);
    if (!isBody(body)) return body;
    for (const cells of listOf(body, "data")) {
      budget.rows -= 1;
      rows.push(rowOf(columns, Array.isArray(cells) ? cells : []));
    }
    budget.bytes -= Number(own(body, "httpBytes") ?? 0);
    if (budget.rows < 0 || budget.bytes < 0)
      return failed("client_error", "RESULT_TOO_LARGE", tooManyRows(request.what));
    if (part + 1 >= partitions) break;
  }
  return { rows, rowCount: changed(first) ?? rows.length, columns: columns.map(({ name }) => name) };
}

/** Rows that a statement inserted, updated and deleted; undefined for a query. */
function changed(body: Body): number | undefined {
  const stats = objectOf(body, "stats");
  const counts = ["numRowsInserted", "numRowsUpdated", "numRowsDeleted"].map((name) => own(stats, name));
  if (counts.every((count) => count === undefined)) return undefined;
  return counts.reduce<number>((sum, count) => sum + Number(count ?? 0), 0);
}

/** One exchange. An answer of 200 or 202 is a body; everything else is a failed result. */
async function ask(
  client: SnowflakeClient,
  request: SnowflakeRequest,
  url: URL,
  body?: JsonObject,
  bytesMax?: number,
): Promise<Body | ToolResult> {
  let answer: SqlHttpAnswer | ToolResult;
  let stale: SnowflakeAuth | undefined;
  for (;;) {
    const auth = await client.authorize(client.signal, stale);
    if (!isAuth(auth)) return auth;
    answer = await client.http.send(message(url, auth, body), client.signal, bytesMax);
    if (!isAnswer(answer)) return answer;
    // Nothing was done: a session that has ended is begun anew, once.
    if (answer.status !== 401 || stale !== undefined || client.connection.login.by === "token") break;
    stale = auth;
  }
  const parsed = parsedBody(answer);
  if (parsed !== undefined && (answer.status === 200 || answer.status === 202)) {
    return Object.assign(parsed, { httpStatus: answer.status, httpBytes: answer.bytes });
  }
  return snowflakeFailure(request.what, url.host, answer.status, parsed);
}

function message(url: URL, auth: SnowflakeAuth, body: JsonObject | undefined): SqlHttpRequest {
  const headers: Record<string, string> = { accept: "application/json", ...auth.headers };
  if (body === undefined) return { method: "GET", url, headers };
  return {
    method: "POST",
    url,
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(body),
  };
}

function parsedBody(answer: SqlHttpAnswer): JsonObject | undefined {
  try {
    const parsed = parseJsonKeepingDigits(answer.text);
    return isJsonObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** Never throws: the statement is given up either way. */
async function cancel(client: SnowflakeClient, handle: string): Promise<void> {
  const url = new URL(`/api/v2/statements/${encodeURIComponent(handle)}/cancel`, client.connection.origin);
  try {
    const signal = AbortSignal.timeout(CANCEL_MS);
    const auth = await client.authorize(signal);
    if (isAuth(auth)) await client.http.send(message(url, auth, {}), signal);
  } catch {
    // It cannot be reached: there is nothing more that we can do.
  }
}

/** Where to ask for the statement. Only the path is believed: the token goes to no other host. */
function statusUrl(client: SnowflakeClient, body: Body): URL {
  const given = textOf(body, "statementStatusUrl");
  if (given === undefined || !URL.canParse(given, client.connection.origin.href)) {
    return statementUrl(client, textOf(body, "statementHandle") ?? "");
  }
  const { pathname, search } = new URL(given, client.connection.origin);
  return new URL(pathname + search, client.connection.origin);
}

function statementUrl({ connection }: SnowflakeClient, handle: string): URL {
  return new URL(`/api/v2/statements/${encodeURIComponent(handle)}`, connection.origin);
}

function readColumn(value: unknown): SnowflakeColumn {
  const column = isJsonObject(value) ? value : {};
  return {
    name: String(own(column, "name") ?? ""),
    type: String(own(column, "type") ?? "text").toLowerCase(),
    scale: Number(own(column, "scale") ?? 0),
  };
}

function rowOf(columns: readonly SnowflakeColumn[], cells: readonly unknown[]): JsonObject {
  const row: JsonObject = {};
  for (const [index, column] of columns.entries()) {
    const cell = cells[index];
    setOwn(row, column.name, snowflakeJson(cell === null || cell === undefined ? null : String(cell), column));
  }
  return row;
}

function textOf(body: JsonObject, name: string): string | undefined {
  const value = own(body, name);
  return typeof value === "string" && value !== "" ? value : undefined;
}

function objectOf(body: JsonObject, name: string): JsonObject {
  const value = own(body, name);
  return isJsonObject(value) ? value : {};
}

function listOf(body: JsonObject, name: string): unknown[] {
  const value = own(body, name);
  return Array.isArray(value) ? value : [];
}
