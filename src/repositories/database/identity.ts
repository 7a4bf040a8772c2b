import type { Sql } from "postgres";

/**
 * Which database a connection reaches, whatever its address says, in words that are true of no other one: its name with the
 * moment at which the server was started, and with the cluster's number, which standbys share, where that may be asked. Two
 * connections reach one database when they have a word in common.
 */
export async function databaseIdentity(sql: Sql): Promise<string[]> {
  const [row] = await sql<{ started: string; mayAsk: boolean }[]>`
    select pg_catalog.current_database() || ' ' || extract(epoch from pg_catalog.pg_postmaster_start_time())::text as started,
      has_function_privilege('pg_catalog.pg_control_system()', 'execute') as "mayAsk"`;
  if (row === undefined) return [];
  if (!row.mayAsk) return [row.started];
  // A statement of its own: one that only names the function is refused already.
  const [cluster] = await sql<{ word: string }[]>`
    select pg_catalog.current_database() || ' ' || system_identifier::text as word from pg_catalog.pg_control_system()`;
  return cluster === undefined ? [row.started] : [row.started, cluster.word];
}
