import type { Database } from "../database/database.ts";
import { logRows, unpacked } from "../orchestration/log-rows.ts";

/** Events of one execution among which the begin of a step is looked for: a step begins for the first time soon, or after long loops. */
const LOOKED_MAX = 20_000;

/**
 * Whether a step began in an execution, as far as its first events say: one that was left out, or taken over from another execution, did
 * not. Segments that do not name both are not unpacked.
 */
export async function hasRunStep(database: Database, executionId: string, step: string): Promise<boolean> {
  const { sql } = database;
  const name = `"step":${JSON.stringify(step)}`;
  const [row] = await sql<[{ found: boolean }]>`
    select exists (
      select from ${logRows(database, executionId, 0, LOOKED_MAX)} ${sql.unsafe(unpacked(["event_type", "node_id"]))}
      where (l.body is null or strpos(l.body, ${name}) > 0)
        and e.event_type in ('command.issued', 'loop.started') and e.node_id = ${step}
    ) as found`;
  return row.found;
}
