import { createEgressGuard } from "../../platform/http/egress.ts";
import type { SqlAnswer, SqlRequest, SqlRunner } from "../../ports/sql-runner.ts";
import type { Database } from "../../repositories/database/database.ts";
import { databaseIdentity } from "../../repositories/database/identity.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { ToolResult } from "../../schema/words/outcome.ts";
import { cancellable } from "../../tools/sql/cancel.ts";
import { readSqlConnection } from "../../tools/sql/connection.ts";
import { type StatementPlace, sqlFailure } from "../../tools/sql/errors.ts";
import { runStatement, type StatementResult } from "../../tools/sql/run.ts";
import { openSession, type SqlSession } from "../../tools/sql/session.ts";
import { sqlEgress } from "../../tools/sql/socket.ts";
import { type SqlStatement, splitStatements } from "../../tools/sql/split-statements.ts";

/** Longest wait for the database to accept a connection. */
const CONNECT_MS = 10_000;
/** An operator runs it, with a credential that an operator has stored. */
const EGRESS = sqlEgress([], createEgressGuard({ allowPrivate: [] }));
/** How much longer than the statements may take a call waits: a statement can lift its own limit. */
const GRACE_MS = 1_000;
/** Most bytes, as JSON about, that statements may give: an answer that a program can still hold. */
const BYTES_MAX = 8 * 1024 * 1024;

/** Runs SQL with the driver of the tasks of kind `sqldb`; `database` is the service's own. */
export function createSqlRunner(database: Database): SqlRunner {
  return {
    async run(request) {
      const statements = readStatements(request);
      const { name } = request.credential;
      const connection = readSqlConnection({}, { [name]: { ...request.credential, isStored: true } });
      const target = `${connection.user}@${connection.host}:${connection.port}/${connection.database}`;
      let session: SqlSession;
      try {
        session = await openSession(connection, EGRESS, CONNECT_MS);
      } catch (error) {
        return failure(sqlFailure(target, error));
      }
      const limit = deadline(request);
      try {
        return await runAll(database, session, { ...request, signal: limit.signal }, { statements, target });
      } finally {
        limit.clear();
        // Nothing of one call reaches another, and a call of an operator now and then needs no pool.
        void session.drop();
      }
    },
  };
}

async function runAll(
  database: Database,
  session: SqlSession,
  request: SqlRequest,
  { statements, target }: { statements: readonly SqlStatement[]; target: string },
): Promise<SqlAnswer> {
  const { parameters, signal, timeoutMs, rowsMax } = request;
  const budget = { rows: rowsMax, bytes: BYTES_MAX };
  let place: StatementPlace | undefined;
  let last: StatementResult | undefined;
  try {
    // Checked on the connection that is about to be used: an address, a name or a pooler may lead anywhere.
    if (!request.ownAllowed && (await isOwn(database, session))) return { status: "own" };
    await session.sql`select set_config('statement_timeout', ${String(timeoutMs)}, false)`;
    for (const [index, statement] of statements.entries()) {
      place = { statement, number: index + 1, count: statements.length };
      const outcome = await cancellable(signal, session, runStatement(session, statement, parameters, budget));
      if (outcome === "too much") return { status: "too much" };
      if (outcome === "copy") throw unusable("COPY over the connection cannot be used here: use insert or select");
      last = outcome;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof FlowError) throw error;
    return failure(sqlFailure(target, error, place));
  }
  const { columns, rows, rowCount, command = "" } = last ?? { columns: [], rows: [], rowCount: 0 };
  return { status: "ok", columns, rows, rowCount, command };
}

async function isOwn(database: Database, session: SqlSession): Promise<boolean> {
  const [own, reached] = await Promise.all([databaseIdentity(database.sql), databaseIdentity(session.sql)]);
  return own.some((word) => reached.includes(word));
}

/** The caller's signal, and the end of its time. Joined by hand: the caller's may live as long as the server. */
function deadline({ signal, timeoutMs }: SqlRequest): { signal: AbortSignal; clear(): void } {
  const controller = new AbortController();
  const give = () => controller.abort(signal.reason);
  const message = `The SQL took longer than ${timeoutMs / 1_000} s and was stopped; FLOW_SQLDB_EXECUTE_TIMEOUT_SECONDS`;
  const timer = setTimeout(() => controller.abort(new FlowError("TIMEOUT", message)), timeoutMs + GRACE_MS);
  signal.addEventListener("abort", give, { once: true });
  if (signal.aborted) give();
  const clear = () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", give);
  };
  return { signal: controller.signal, clear };
}

function readStatements({ query, parameters }: SqlRequest): SqlStatement[] {
  const statements = splitStatements(query);
  if (statements.length === 0) throw unusable("it holds no statement");
  const used = Math.max(...statements.map(({ placeholders }) => placeholders));
  if (used === parameters.length) return statements;
  throw unusable(`it uses parameters up to $${used}, and 'parameters' has ${parameters.length} values`);
}

function unusable(why: string): FlowError {
  return new FlowError("INVALID_INPUT", `The query cannot be run: ${why}`);
}

function failure({ error, pg }: ToolResult): SqlAnswer {
  const message = error?.message ?? "The statement failed";
  return { status: "failed", message, ...(pg?.sqlstate !== undefined && { sqlstate: pg.sqlstate }) };
}
