import type { JsonObject } from "../../schema/words/json.ts";
import type { Database } from "../database/database.ts";

/** What is known of a rerun from its beginning. */
export interface RerunRow {
  executionId: string;
  path: string;
  version: number;
  rerunOf: string | null;
  request: JsonObject | null;
}

/** The rerun with this id; undefined for an unknown id. */
export async function findRerun({ sql }: Database, executionId: string): Promise<RerunRow | undefined> {
  const [row] = await sql<RerunRow[]>`
    select execution_id as "executionId", path, version, rerun_of as "rerunOf", rerun_request as request
    from flow.execution where execution_id = ${executionId}`;
  return row;
}

/**
 * Of these executions those whose results an execution may read by its own right: of its tree, and those that its tree took results over
 * from. Reports of workers name references of others too; who repeats a run must not gain a right by that.
 */
export async function findOwnersWithin(
  { sql }: Database,
  executionId: string,
  owners: readonly string[],
): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select asked.id::text as id
    from unnest(${[...owners]}::bigint[]) as asked (id)
      join flow.execution reader on reader.execution_id = ${executionId}
      left join flow.execution root on root.execution_id = reader.root_execution_id
      left join flow.execution owner on owner.execution_id = asked.id
    where owner.root_execution_id = reader.root_execution_id or asked.id = any(root.refers_to)`;
  return rows.map(({ id }) => id);
}
