import type postgres from "postgres";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import { configurationError } from "../contract/task-config.ts";
import type { Credential } from "../contract/tool.ts";
import { cancellable } from "../sql/cancel.ts";
import { readSqlConnection } from "../sql/connection.ts";
import { sqlFailure } from "../sql/errors.ts";
import { namedParameters } from "../sql/parameters.ts";
import type { SqlPools } from "../sql/pool.ts";
import type { SqlSession } from "../sql/session.ts";
import { type SqlStatement, splitStatements } from "../sql/split-statements.ts";
import { readSqlTexts } from "../sql/task.ts";
import { bindParameter } from "../sql/types.ts";
import { RowCollector, type RowSource, transferFailure } from "./rows.ts";
import { quoteName } from "./task.ts";

/** Rows that a cursor fetches at a time: a round trip each. */
const FETCH_ROWS = 2_000;

/**
 * Rows of a query, fetched by a cursor. The server itself writes each row as JSON, so that no digit is lost on the way.
 * Throws FlowError `INVALID_INPUT` for keys that do not fit.
 */
export function postgresSource(
  config: JsonObject,
  auth: Readonly<Record<string, Credential>>,
  pools: SqlPools,
  signal: AbortSignal,
): RowSource {
  const { statement, params } = readSourceQuery("sqldb", config);
  const connection = readSqlConnection(config, auth);
  const target = `${connection.user}@${connection.host}:${connection.port}/${connection.database}`;
  const place = { statement, number: 1, count: 1, what: "The source's query" };
  return {
    async *batches(limits) {
      const session = await openOrFail(pools, connection, target, signal);
      let reusable = false;
      try {
        const columns = await describe(session, statement.text, params, signal);
        const names = columns.map(({ name }) => name);
        const rows = cursor(session, rowQuery(statement.text, columns), params);
        const collector = new RowCollector(limits);
        for (;;) {
          const { done, value } = await cancellable(signal, session, rows.next());
          if (done === true) break;
          for (const { row } of value) if (collector.add(row)) yield { rows: collector.take(), columns: names };
        }
        const rest = collector.take();
        if (rest.length > 0) yield { rows: rest, columns: names };
        reusable = true;
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof Error && Object.hasOwn(error, "result")) throw error;
        throw transferFailure(sqlFailure(target, error, place));
      } finally {
        // A cursor that was not read to its end is still open there.
        pools.release(session, reusable);
      }
    },
  };
}

/** The one query of a source, and its parameters. Throws FlowError `INVALID_INPUT`. */
export function readSourceQuery(kind: string, config: JsonObject): { statement: SqlStatement; params: Json[] } {
  const statements = readSqlTexts(kind, config).flatMap((text) => splitStatements(text));
  const [statement] = statements;
  if (statement === undefined || statements.length > 1) {
    throw configurationError(
      `The transfer task's source has ${statements.length} SQL statements as its "query": one is expected.`,
    );
  }
  const params = config["params"] ?? [];
  if (!Array.isArray(params) || params.length !== statement.placeholders) {
    throw configurationError(
      `The source's query uses parameters up to $${statement.placeholders}: "params" is a list with a value for each.`,
    );
  }
  const { text, values } = namedParameters(statement, params);
  return { statement: { ...statement, text }, params: values };
}

/** A session of the pool. Throws a `transferFailure`, or the signal's reason. */
export async function openOrFail(
  pools: SqlPools,
  connection: Parameters<SqlPools["acquire"]>[0],
  target: string,
  signal: AbortSignal,
): Promise<SqlSession> {
  try {
    return await pools.acquire(connection, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw transferFailure(sqlFailure(target, error));
  }
}

interface Column {
  name: string;
  /** Its type's number in the catalog. */
  type: number;
}

async function describe(
  session: SqlSession,
  text: string,
  params: readonly Json[],
  signal: AbortSignal,
): Promise<Column[]> {
  const query = session.sql.unsafe(text, bound(session, params), OPTIONS);
  const { columns } = await cancellable(signal, session, query.describe() as unknown as Promise<{ columns: Column[] }>);
  const twice = columns.find(({ name }, index) => columns.findIndex((other) => other.name === name) !== index);
  if (twice !== undefined) {
    throw transferFailure(duplicateColumn(twice.name));
  }
  if (columns.length === 0) throw configurationError("The source's query gives no columns: write one that reads rows.");
  return columns;
}

/** The failure of a query with two columns of one name, which would be one field of its rows. */
export function duplicateColumn(name: string): Parameters<typeof transferFailure>[0] {
  const message = `The source's query has more than one column "${name}": give them names of their own with "as".`;
  return {
    status: "error",
    data: null,
    error: { kind: "configuration", code: "DUPLICATE_COLUMN", message, retryable: false },
  };
}

/** Names that no column has: a column would be meant before the row that holds it. */
export const ROW = '"flow: row"';
/** See {@link ROW}; of the source's query. */
export const QUERY = '"flow: query"';

const BYTEA = 17;
const NUMERIC = 1700;

/** Each row as the text of a JSON object: decimals as text with all digits, bytes as base64. */
function rowQuery(text: string, columns: readonly Column[]): string {
  const fields = columns.map(({ name, type }) => {
    const column = `${QUERY}.${quoteName(name)}`;
    if (type === NUMERIC) return `${column}::text as ${quoteName(name)}`;
    if (type === BYTEA) return `replace(encode(${column}, 'base64'), E'\\n', '') as ${quoteName(name)}`;
    return column;
  });
  // A comment at the end of the query must not take the bracket with it.
  return `select pg_catalog.row_to_json(${ROW})::text as "row" from (select ${fields.join(", ")} from (${text}\n) ${QUERY}) ${ROW}`;
}

function cursor(session: SqlSession, text: string, params: readonly Json[]): AsyncIterator<{ row: string }[]> {
  const query = session.sql.unsafe<{ row: string }[]>(text, bound(session, params), OPTIONS);
  return query.cursor(FETCH_ROWS)[Symbol.asyncIterator]();
}

const OPTIONS = { prepare: false, simple: false } as postgres.UnsafeQueryOptions;

function bound(session: SqlSession, params: readonly Json[]): postgres.SerializableParameter[] {
  return params.map((value) => bindParameter(session.sql, value)) as unknown as postgres.SerializableParameter[];
}
