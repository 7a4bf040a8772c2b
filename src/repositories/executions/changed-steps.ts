import type { Database } from "../database/database.ts";

/** Events that are searched: a reader that missed more reads everything again. */
const LOOKED_MAX = 5_000;

/**
 * The steps that changed after an event: each event that changes a step names it. Undefined where there were too
 * many events to look through.
 */
export async function changedSteps(
  { sql }: Database,
  executionId: string,
  after: number,
): Promise<ReadonlySet<string> | undefined> {
  const [found] = await sql<{ names: string[]; looked: number }[]>`
    with looked as materialized (
      select node_id, node_type from flow.event
      where execution_id = ${executionId} and event_id > greatest(${after}::bigint, ${executionId}::bigint)
      order by event_id limit ${LOOKED_MAX + 1}
    )
    select array(select distinct node_id from looked where node_type <> 'playbook') as names,
      (select count(*)::int from looked) as looked`;
  return found === undefined || found.looked > LOOKED_MAX ? undefined : new Set(found.names);
}
