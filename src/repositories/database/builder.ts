import { PgDialect, type PreparedQueryConfig } from "drizzle-orm/pg-core";
import { PgRemoteDatabase, PgRemoteSession, type PreparedQuery, type RemoteCallback } from "drizzle-orm/pg-proxy";
import type { ISql } from "postgres";

/** Drizzle's query builder. */
export type Builder = PgRemoteDatabase;

/**
 * A query builder whose statements go the way of tagged ones: through the same pool or transaction, prepared where the pool
 * prepares, with the same codecs, deadlines and errors. It keeps nothing, so one per transaction costs 2 µs.
 */
export function createBuilder(sql: ISql): Builder {
  const session = new Session(async (text, values, method) => {
    const query = sql.unsafe(text, values, OPTIONS);
    return { rows: method === "all" ? await query.values() : await query };
  });
  return new PgRemoteDatabase(DIALECT, session, undefined);
}

const DIALECT = new PgDialect();
/** As for a tagged statement. Without `simple: false` one without parameters could not be prepared; the driver's types lack it. */
const OPTIONS = { prepare: true, simple: false };

type NoSchema = Record<string, never>;

/** Drizzle's session for drivers that it does not know, with the driver's errors. */
class Session extends PgRemoteSession<NoSchema, NoSchema> {
  constructor(execute: RemoteCallback) {
    super(execute, DIALECT, undefined);
  }

  /**
   * Drizzle (0.45) wraps what the driver throws in an error whose message has the statement and all its values, which would stand
   * in the log. It has no option against it: the function that wraps is replaced here.
   */
  override prepareQuery<T extends PreparedQueryConfig>(
    ...query: Parameters<PgRemoteSession<NoSchema, NoSchema>["prepareQuery"]>
  ): PreparedQuery<T> {
    return Object.assign(super.prepareQuery<T>(...query), {
      queryWithCache: (_text: string, _values: unknown[], execute: () => Promise<unknown>) => execute(),
    });
  }
}
