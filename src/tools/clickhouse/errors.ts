import { failed, type TaskErrorKind, type ToolResult } from "../../schema/words/outcome.ts";
import { kindOfStatus } from "../http/errors.ts";

/**
 * The result of a statement that ClickHouse refused. Its text is `Code: 62. DB::Exception: … (SYNTAX_ERROR) (version …)`:
 * the name is the error's code, the number stands in `details.code`.
 */
export function clickhouseFailure(
  what: string,
  host: string,
  status: number,
  number: string | undefined,
  text: string,
): ToolResult {
  const match = /^Code: (\d+)\. DB::Exception: (.*)$/s.exec(text.trim());
  const code = Number(number ?? match?.[1]);
  if (!Number.isInteger(code)) {
    const line = text.replace(/\s+/g, " ").trim().slice(0, 300);
    const retryable = status === 429 || status >= 500;
    const message = `${what}: ${host} answered ${status}${line === "" ? "." : `: ${line}`}`;
    return failed(kindOfStatus(status), `HTTP_${status}`, message, { retryable, status, status_code: status });
  }
  const body = (match?.[2] ?? text).replace(/\s*\(version [^)]*(\([^)]*\))?[^)]*\)\s*$/, "").trim();
  const name = /\(([A-Z][A-Z0-9_]+)\)$/.exec(body)?.[1];
  const reason = body.replace(/\s*\([A-Z][A-Z0-9_]+\)$/, "").replace(/\s+/g, " ");
  return failed(kindOf(code), name ?? `CLICKHOUSE_${code}`, `${what} failed: ${reason}`, {
    retryable: PASSING.has(code),
    details: { code },
  });
}

function kindOf(code: number): TaskErrorKind {
  if (AUTH.has(code)) return "auth";
  // 159 TIMEOUT_EXCEEDED, 160 TOO_SLOW, 394 QUERY_WAS_CANCELLED.
  if (code === 159 || code === 160 || code === 394) return "db_timeout";
  // 469 VIOLATED_CONSTRAINT.
  if (code === 469) return "db_constraint";
  return CONNECTION.has(code) ? "db_connection" : "db_error";
}

/** UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, ACCESS_DENIED, AUTHENTICATION_FAILED. */
const AUTH: ReadonlySet<number> = new Set([192, 193, 194, 497, 516]);
/** SOCKET_TIMEOUT, NETWORK_ERROR, TABLE_IS_READ_ONLY, ALL_CONNECTION_TRIES_FAILED, KEEPER_EXCEPTION. */
const CONNECTION: ReadonlySet<number> = new Set([209, 210, 242, 279, 999]);
/** Those, and TOO_MANY_SIMULTANEOUS_QUERIES, TOO_MANY_PARTS. */
const PASSING: ReadonlySet<number> = new Set([...CONNECTION, 202, 252]);
