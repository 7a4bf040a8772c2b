import type { Database } from "../database/database.ts";
import { logRows, unpacked } from "../orchestration/log-rows.ts";

/** Events that are searched: a reader that missed more reads everything again. */
const LOOKED_MAX = 5_000;

/**
 * The steps that changed after an event: each event that changes a step names it. Undefined where there were too
 * many events to look through.
 */
export async function changedSteps(
  database: Database,
  executionId: string,
  after: number,
): Promise<ReadonlySet<string> | undefined> {
  const { sql } = database;
  const [found] = await sql<{ names: string[]; looked: number }[]>`
    with looked as materialized (
      select e.node_id, e.node_type
      from ${logRows(database, executionId, after, LOOKED_MAX + 1)} ${sql.unsafe(unpacked(["event_id", "node_id", "node_type"]))}
      where e.event_id > ${after}
    )
    select array(select distinct node_id from looked where node_type <> 'playbook') as names,
      (select count(*)::int from looked) as looked`;
  return found === undefined || found.looked > LOOKED_MAX ? undefined : new Set(found.names);
}
