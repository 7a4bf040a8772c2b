import { openDatabase } from "./database.ts";
import { AWAY } from "./reach.ts";

/** How a database is reached. */
export interface DatabaseWay {
  /** Something stands in front that shares sessions of the database among its clients. */
  pooled: boolean;
  /** Of PostgreSQL, as `15.18`. */
  version: string;
}

/**
 * Finds out whether a pooler stands before the database: a server reports its session's process id at the login and when
 * queried, and a pooler reports its own at the login (PgBouncer, Supavisor, RDS Proxy). Sends nothing with the login that a
 * pooler could refuse. Throws the driver's error, and one that counts as `unreachable` for a server in recovery, which takes no
 * writes.
 */
export async function findWay(url: string): Promise<DatabaseWay> {
  const database = openDatabase(url, { connectionsMax: 1, pooled: true });
  try {
    const rows = await database.sql.unsafe<{ pid: number; version: string; recovering: boolean }[]>(`
      select pg_backend_pid() as pid, current_setting('server_version') as version, pg_is_in_recovery() as recovering`);
    const [row] = rows;
    if (row === undefined || row.recovering) {
      const message = "The server is in recovery and takes no writes: it follows another one, or has not caught up";
      throw Object.assign(new Error(message), { code: AWAY });
    }
    return { pooled: rows.state.pid !== row.pid, version: row.version.split(" ", 1)[0] ?? row.version };
  } finally {
    await database.close();
  }
}
