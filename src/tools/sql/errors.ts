import postgres from "postgres";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { type JsonObject, own } from "../../schema/words/json.ts";
import { failed, type TaskErrorKind, type ToolResult } from "../../schema/words/outcome.ts";
import type { SqlStatement } from "./split-statements.ts";

/** Which statement of how many failed. */
export interface StatementPlace {
  statement: SqlStatement;
  /** From 1. */
  number: number;
  count: number;
  /** Names it in messages, where it is not the author's own statement. */
  what?: string;
}

/** The result of a statement that failed, or of a connection that did (language document, section 5.4). */
export function sqlFailure(target: string, thrown: unknown, place?: StatementPlace): ToolResult {
  if (thrown instanceof postgres.PostgresError) return serverFailure(target, thrown, place);
  if (thrown instanceof FlowError && thrown.code === "EGRESS_REFUSED") {
    return failed("client_error", thrown.code, thrown.message);
  }
  const code = thrown instanceof Error ? own(thrown, "code") : undefined;
  const text = typeof code === "string" ? code : "CONNECTION_FAILED";
  const reason = messageOf(thrown) || text;
  if (text === "MAX_PARAMETERS_EXCEEDED" || text === "UNDEFINED_VALUE") {
    return failed("configuration", "INVALID_CONFIG", `${describePlace(place)}: ${reason}.`);
  }
  const hint = DRIVER_HINTS[text] ?? "";
  return failed("db_connection", text, `The connection to ${target} failed: ${reason}.${hint}`, { retryable: true });
}

/** "Statement 2 of 3", "The SQL statement". */
export function describePlace(place: StatementPlace | undefined): string {
  if (place?.what !== undefined) return place.what;
  if (place === undefined || place.count === 1) return "The SQL statement";
  return `SQL statement ${place.number} of ${place.count}`;
}

function serverFailure(target: string, error: postgres.PostgresError, place: StatementPlace | undefined): ToolResult {
  const kind = kindOfSqlState(error.code);
  const line = errorLine(error, place?.statement);
  const where = place === undefined ? `Connecting to ${target}` : describePlace(place);
  const parts = [
    `${where} failed${line === undefined ? "" : ` at line ${line}`}: ${error.message}.`,
    error.detail === undefined ? "" : ` ${withStop(error.detail)}`,
    error.hint === undefined ? "" : ` Hint: ${withStop(error.hint)}`,
  ];
  const details: JsonObject = {};
  if (place !== undefined) details["statement"] = place.number;
  if (line !== undefined) details["line"] = line;
  for (const name of ["constraint_name", "table_name", "column_name", "schema_name"] as const) {
    const value = error[name];
    if (value !== undefined) details[name.replace("_name", "")] = value;
  }
  const result = failed(kind, error.code, parts.join(""), { retryable: RETRYABLE.test(error.code), details });
  return { ...result, pg: { code: error.code, sqlstate: error.code } };
}

/**
 * Kind of error for a SQLSTATE: 23 constraint, 40P01 deadlock, 57014 cancelled by a statement time-out, 08 and the
 * server's shutdown codes connection, 28 (password, role) auth.
 */
function kindOfSqlState(state: string): TaskErrorKind {
  if (state.startsWith("23")) return "db_constraint";
  if (state === "40P01") return "db_deadlock";
  if (state === "57014") return "db_timeout";
  if (state.startsWith("08") || state.startsWith("57P") || state === "53300") return "db_connection";
  if (state.startsWith("28")) return "auth";
  return "db_error";
}

/** Connection lost, rolled back by the server, out of resources, shutting down: the same statement may succeed later. */
const RETRYABLE = /^(08|40|53|57P0)/;

const DRIVER_HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: " Nothing listens there: check host and port, and that the server runs.",
  // The message of the system's resolver, as in every other client of PostgreSQL.
  ENOTFOUND: " Name or service not known: check the spelling of the host.",
  EAI_AGAIN: " Temporary failure in name resolution: the name server did not answer.",
  CONNECT_TIMEOUT: " Check host and port, and that PostgreSQL answers there.",
  CONNECTION_CLOSED: " The server closed it while a statement ran.",
};

/** Line in the task's SQL text. The server counts characters of the statement, not code units. */
function errorLine(error: postgres.PostgresError, statement: SqlStatement | undefined): number | undefined {
  const position = Number(error.position);
  if (statement === undefined || !Number.isInteger(position) || position < 1) return undefined;
  let line = statement.line;
  let counted = 1;
  for (const char of statement.text) {
    if (counted >= position) break;
    if (char === "\n") line += 1;
    counted += 1;
  }
  return line;
}

function withStop(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}
