import { Hono } from "hono";
import { SqlExecuteAnswer, SqlExecuteBody } from "../../schema/api/sqldb.ts";
import type { runSql } from "../../services/credentials/run-sql.ts";
import { callerOf } from "../http/audit-caller.ts";
import { listening } from "../http/client-signal.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { jsonBody } from "../http/validate.ts";

const EXECUTE = contract({
  method: "post",
  path: "/api/sqldb/execute",
  summary: "Runs SQL with a stored credential; a database error is 400 with `detail.sqlstate`",
  access: "operator",
  body: SqlExecuteBody,
  answer: SqlExecuteAnswer,
  audit: { action: "sqldb.execute", resource: "credential" },
  refusals: [400, 404, 413, 422, 504],
});

/** Contracts of {@link sqldbRoutes}. */
export const SQLDB_CONTRACTS = [EXECUTE];

/** SQL for operators (interface specification, Credentials). */
export function sqldbRoutes(run: ReturnType<typeof runSql>, stopping: AbortSignal) {
  return new Hono<RouteEnvironment>().post(EXECUTE.path, jsonBody(EXECUTE.body), async (c) => {
    const { credential_name: credentialName, query, parameters = [] } = c.req.valid("json");
    const asks = listening(c, stopping);
    try {
      const given = await run({ credentialName, query, parameters }, callerOf(c, EXECUTE), asks.signal);
      const { columns, rows, rowCount, command } = given;
      c.header("cache-control", "no-store");
      return c.json({ status: "ok", columns, rows, row_count: rowCount, command } satisfies SqlExecuteAnswer);
    } finally {
      asks.done();
    }
  });
}
