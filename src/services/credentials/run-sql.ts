import { createHash } from "node:crypto";
import type { SqlAnswer, SqlRunner } from "../../ports/sql-runner.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../schema/words/json.ts";
import { type Audit, audited, type Caller, inAuditLog } from "../access/audit.ts";
import type { Credentials } from "./credentials.ts";

/** SQL that an operator wants run. */
export interface SqlQuery {
  /** Name or id. */
  credentialName: string;
  query: string;
  parameters: readonly Json[];
}

/** What a last statement gave. */
export type SqlResult = Omit<Extract<SqlAnswer, { status: "ok" }>, "status">;

/** What {@link runSql} needs. */
export interface RunSqlDeps {
  credentials: Pick<Credentials, "read">;
  audit: Pick<Audit, "record">;
  runner: SqlRunner;
  /** Longest time, in milliseconds. */
  timeoutMs: number;
  rowsMax: number;
  /** May it reach the service's own database? */
  ownAllowed: boolean;
}

/** Calls at a time: they are an operator's, and each holds a connection. */
const CALLS_MAX = 8;

/**
 * Runs SQL with a stored credential of type `sqldb` (interface specification, Credentials). Each call is in the audit log, with
 * its outcome and the SHA-256 of its text: the text itself may hold a password.
 *
 * Throws `FlowError` NOT_FOUND, INVALID_INPUT for another type of credential or SQL that cannot be used, FORBIDDEN for the
 * service's own database, TOO_LARGE for too many rows, SQL_FAILED with the database's error, TIMEOUT, UNAVAILABLE.
 */
export function runSql(deps: RunSqlDeps) {
  let calls = 0;
  return async (statement: SqlQuery, caller: Caller, signal: AbortSignal): Promise<SqlResult> => {
    if (calls >= CALLS_MAX) {
      throw new FlowError("UNAVAILABLE", `${CALLS_MAX} calls of operators run SQL already. Try again in a few seconds`);
    }
    calls += 1;
    try {
      return await run(deps, statement, caller, signal);
    } finally {
      calls -= 1;
    }
  };
}

async function run(deps: RunSqlDeps, statement: SqlQuery, caller: Caller, signal: AbortSignal): Promise<SqlResult> {
  const { credentials, audit, runner, timeoutMs, rowsMax, ownAllowed } = deps;
  const { query, parameters } = statement;
  const { record, data } = await credentials.read(statement.credentialName, caller);
  const { name, type } = record;
  const sha256 = createHash("sha256").update(query).digest("hex");
  const tell = (result: "allow" | "deny" | "error", detail: JsonObject) =>
    audit.record(audited(caller, "sqldb.execute", `credential/${name}`, { result, detail: { ...detail, sha256 } }));
  try {
    if (type !== "sqldb") throw new FlowError("INVALID_INPUT", `'${name}' is of type ${type}; SQL takes a sqldb one`);
    const request = { credential: { name, type, data }, query, parameters, timeoutMs, rowsMax, ownAllowed, signal };
    const answer = await runner.run(request);
    if (answer.status !== "ok") throw refused(answer, name, rowsMax);
    const { status: _, ...given } = answer;
    await tell("allow", { command: given.command, row_count: given.rowCount });
    return given;
  } catch (error) {
    const { code, detail } = error instanceof FlowError ? error : new FlowError("INTERNAL", messageOf(error));
    await tell(code === "FORBIDDEN" ? "deny" : "error", { reason: code, ...(isJsonObject(detail) && detail) });
    throw inAuditLog(error);
  }
}

function refused(answer: Exclude<SqlAnswer, { status: "ok" }>, name: string, rowsMax: number): FlowError {
  if (answer.status === "failed") {
    const detail = answer.sqlstate === undefined ? {} : { detail: { sqlstate: answer.sqlstate } };
    return new FlowError("SQL_FAILED", answer.message, detail);
  }
  if (answer.status === "too much") {
    const why = `The statement gave more than ${rowsMax.toLocaleString("en")} rows, or too many bytes`;
    const next = 'What it changed may have been kept. Add "limit", or';
    return new FlowError("TOO_LARGE", `${why}. ${next} raise FLOW_SQLDB_EXECUTE_ROWS_MAX`);
  }
  const why = `'${name}' reaches the service's own database: nothing was run`;
  return new FlowError("FORBIDDEN", `${why}. FLOW_SQLDB_EXECUTE_CATALOG=true on the server lets it`);
}
