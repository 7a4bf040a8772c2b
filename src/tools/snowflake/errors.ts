import { type JsonObject, own } from "../../schema/words/json.ts";
import { failed, type TaskErrorKind, type ToolResult } from "../../schema/words/outcome.ts";
import { kindOfStatus } from "../http/errors.ts";

/**
 * The result of a request that the warehouse refused: 422 for a statement that failed, with its SQLSTATE and the
 * warehouse's own number (`details.code`); every other status as with `http`.
 */
export function snowflakeFailure(what: string, host: string, status: number, body: JsonObject | undefined): ToolResult {
  const state = textOf(body, "sqlState");
  const number = textOf(body, "code");
  const reason = textOf(body, "message")?.replace(/\s+/g, " ").trim();
  const details: JsonObject = {};
  for (const [key, value] of [
    ["code", number],
    ["sqlstate", state],
    ["statement_handle", textOf(body, "statementHandle")],
  ] as const) {
    if (value !== undefined) details[key] = value;
  }
  if (status !== 422 && status !== 200 && status !== 202) {
    const retryable = status === 408 || status === 429 || status >= 500;
    const message = `${what}: the warehouse at ${host} answered ${status}${reason === undefined ? "." : `: ${reason}`}`;
    return failed(kindOfStatus(status), `HTTP_${status}`, message, { retryable, status, status_code: status, details });
  }
  if (body === undefined) {
    return failed(
      "parse",
      "INVALID_RESPONSE",
      `${what}: the answer of ${host} is not that of a warehouse's SQL interface.`,
    );
  }
  const code = state ?? number ?? "STATEMENT_FAILED";
  const message = `${what} failed: ${reason ?? "the warehouse gives no reason"}`;
  const retryable = /^(08|40|53)/.test(state ?? "");
  const result = failed(kindOfState(state), code, message, { retryable, details });
  return state === undefined ? result : { ...result, pg: { code, sqlstate: state } };
}

function kindOfState(state: string | undefined): TaskErrorKind {
  if (state === undefined) return "db_error";
  if (state.startsWith("23")) return "db_constraint";
  if (state === "57014") return "db_timeout";
  if (state.startsWith("08")) return "db_connection";
  if (state.startsWith("28")) return "auth";
  return "db_error";
}

function textOf(body: JsonObject | undefined, name: string): string | undefined {
  const value = body === undefined ? undefined : own(body, name);
  return typeof value === "string" && value !== "" ? value : undefined;
}
