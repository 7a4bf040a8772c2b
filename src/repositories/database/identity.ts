import type { Sql } from "postgres";

/**
 * Identifiers of the database behind a connection, whatever its address: its name with the server's start time, and with the
 * cluster's number (which standbys share) where that may be read. Two connections reach the same database if they have an
 * identifier in common.
 */
export async function databaseIdentity(sql: Sql): Promise<string[]> {
  const [row] = await sql<{ started: string; mayAsk: boolean }[]>`
    select pg_catalog.current_database() || ' ' || extract(epoch from pg_catalog.pg_postmaster_start_time())::text as started,
      has_function_privilege('pg_catalog.pg_control_system()', 'execute') as "mayAsk"`;
  if (row === undefined) return [];
  if (!row.mayAsk) return [row.started];
  // A separate statement: even naming the function is refused without the right.
  const [cluster] = await sql<{ word: string }[]>`
    select pg_catalog.current_database() || ' ' || system_identifier::text as word from pg_catalog.pg_control_system()`;
  return cluster === undefined ? [row.started] : [row.started, cluster.word];
}
