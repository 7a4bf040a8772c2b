import type { Database } from "../../../src/repositories/database/database.ts";
import { reserveIds } from "../../../src/repositories/database/ids.ts";

/**
 * An open execution with so many PENDING commands for a label that no worker has, written as rows, as the server that issued
 * them would have left them. Gives its id.
 */
export async function insertWaiting(database: Database, count: number, labels: object): Promise<string> {
  const { sql } = database;
  const ids = await reserveIds(database, count + 2);
  const [id = "", last] = [ids[0], ids.at(-1)];
  await sql`
    insert into flow.execution (execution_id, catalog_id, path, version, status, last_event_id, root_execution_id)
    values (${id}, 1, 'waiting', 1, 'RUNNING', ${last ?? id}, ${id})`;
  await sql`
    insert into flow.command (command_id, execution_id, catalog_id, step, kinds, labels, body, created_at)
    select command_id, ${id}, 1, 'start', '{}', ${sql.json({ ...labels })}, '{}', now() - interval '1 day'
    from unnest(${ids.slice(1, -1)}::bigint[]) as t(command_id)`;
  return id;
}
