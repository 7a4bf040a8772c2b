import { SQLDB_ROUTES } from "../../schema/routes/credentials.ts";
import type { runSql } from "../../services/credentials/run-sql.ts";
import { callerOf } from "../http/audit-caller.ts";
import { listening } from "../http/client-signal.ts";
import { serve } from "../http/serve.ts";

/** SQL for operators (interface specification, Credentials). */
export function sqldbRoutes(run: ReturnType<typeof runSql>, stopping: AbortSignal) {
  return serve(SQLDB_ROUTES, {
    execute: async ({ body: { credential_name: credentialName, query, parameters = [] }, json }, c) => {
      const asks = listening(c, stopping);
      try {
        const given = await run({ credentialName, query, parameters }, callerOf(c, SQLDB_ROUTES.execute), asks.signal);
        const { columns, rows, rowCount, command } = given;
        c.header("cache-control", "no-store");
        return json({ status: "ok", columns, rows, row_count: rowCount, command });
      } finally {
        asks.done();
      }
    },
  });
}
