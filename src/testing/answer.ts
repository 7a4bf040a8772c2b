import type { MockAnswer, MockError } from "../schema/documents/test-document.ts";
import { defined } from "../schema/words/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "../schema/words/json.ts";
import { failed, type TaskErrorKind, type ToolResult } from "../schema/words/outcome.ts";
import { kindOfStatus, statusError } from "../tools/http/errors.ts";

/** Kind under which a mocked call of a sub-playbook reaches the mocks: the worker runs the real kind without a tool. */
export const MOCKED_PLAYBOOK = "playbook (mocked)";

/**
 * The result that the real tool of `kind` would give for a mock's answer, with default fields for those that the author left
 * out. `what` names the call in messages.
 */
export function answerResult(answer: MockAnswer, kind: string, config: JsonObject, what: string): ToolResult {
  if (answer.error !== undefined) return errorAnswer(answer, answer.error, kind, config, what);
  if (answer.result !== undefined) return plainAnswer(answer.result, kind);
  if (answer.rows !== undefined) return rowsAnswer(answer.rows, kind);
  if (kind === "http") return httpAnswer(answer, config, what);
  return { status: "ok", data: answer.data === undefined ? { status: "ok" } : { status: "ok", data: answer.data } };
}

function plainAnswer(result: Json, kind: string): ToolResult {
  if (kind === MOCKED_PLAYBOOK) {
    const base = { status: "completed", execution_id: "0" };
    return { status: "ok", data: isJsonObject(result) ? { ...base, ...result } : { ...base, data: result } };
  }
  if (kind !== "http" || !isJsonObject(result)) return { status: "ok", data: result };
  const { status_code: status, headers } = result;
  const http = { status: typeof status === "number" ? status : 200, headers: isJsonObject(headers) ? headers : {} };
  return { status: "ok", data: result, http };
}

/** Kinds that run SQL. */
const SQL_KINDS: ReadonlySet<string> = new Set(["sqldb", "duckdb", "warehouse"]);

/** As `sqldb` answers: the last statement's rows, and every statement's as a virtual field; of `warehouse` as a real one. */
function rowsAnswer(rows: Json[], kind: string): ToolResult {
  const [first] = rows;
  const columns = isJsonObject(first) ? Object.keys(first) : [];
  const status = SQL_KINDS.has(kind) ? "success" : "ok";
  const statement: JsonObject = { status, rows, row_count: rows.length, columns };
  if (kind === "warehouse") return { status: "ok", data: { ...statement, statement_0: statement } };
  return { status: "ok", data: { ...statement, statement_count: 1 }, virtual: { command_0: statement } };
}

function httpAnswer(answer: MockAnswer, config: JsonObject, what: string): ToolResult {
  const status = answer.status ?? 200;
  const data = httpData(answer, status, config);
  const http = { status, headers: answer.headers ?? {} };
  if (status < 400) return { status: "ok", data, http };
  return { status: "error", data, http, error: statusError(what, status, answer.data ?? null) };
}

function httpData(answer: MockAnswer, status: number, config: JsonObject): JsonObject {
  const url = config["url"] ?? config["endpoint"] ?? "";
  return {
    status_code: status,
    headers: answer.headers ?? {},
    url,
    elapsed: answer.takes ?? 0,
    data: answer.data ?? null,
  };
}

function errorAnswer(answer: MockAnswer, error: MockError, kind: string, config: JsonObject, what: string): ToolResult {
  const status = error.status ?? answer.status;
  const errorKind = error.kind ?? (status === undefined ? "unknown" : kindOfStatus(status));
  const code = error.code ?? (status === undefined ? errorKind.toUpperCase() : `HTTP_${status}`);
  const result = failed(errorKind, code, error.message ?? `${what} failed (mocked: ${code})`, {
    retryable: error.retryable ?? isRetryable(errorKind, code, status),
    ...(status !== undefined && { status, status_code: status }),
    ...defined({ details: error.details }),
  });
  const isHttp = kind === "http" && status !== undefined;
  return {
    ...result,
    data: isHttp ? httpData(answer, status, config) : (answer.data ?? null),
    ...(isHttp && { http: { status, headers: answer.headers ?? {} } }),
    ...(errorKind.startsWith("db_") && { pg: { code, sqlstate: code } }),
    ...(kind === "python" && { py: { exception: code, traceback: result.error?.message ?? "" } }),
  };
}

/** Language document, section 5.4. */
function isRetryable(kind: TaskErrorKind, code: string, status: number | undefined): boolean {
  if (["connection", "timeout", "rate_limit", "server_error", "db_connection", "db_deadlock"].includes(kind))
    return true;
  if (status !== undefined) return status === 429 || status >= 500;
  return kind.startsWith("db_") && /^(08|40|53)/.test(code);
}
