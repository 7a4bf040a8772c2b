import type { TransactionSql } from "postgres";
import { type Database, transaction } from "../database/database.ts";

/** Where a check reads: one moment of the database, and nothing can be written. */
export interface Reading {
  readonly sql: TransactionSql;
}

/**
 * Runs `look` on one snapshot of the database, in a transaction that the server itself keeps from writing. `statementMs`
 * bounds each statement, so that looking does not become the trouble.
 */
export function readOnly<T>(
  database: Pick<Database, "sql">,
  statementMs: number,
  look: (reading: Reading) => Promise<T>,
): Promise<T> {
  const work = async ({ sql }: Reading) => {
    await sql`select set_config('statement_timeout', ${String(statementMs)}, true)`;
    return await look({ sql });
  };
  return transaction(database, work, "isolation level repeatable read read only");
}
