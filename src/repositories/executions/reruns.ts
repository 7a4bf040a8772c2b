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

/** The labels of an execution. */
export async function listLabels({ sql }: Database, executionId: string): Promise<Record<string, string>> {
  const rows = await sql<{ name: string; value: string }[]>`
    select name, value from flow.execution_label where execution_id = ${executionId}`;
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
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

/** An execution whose result a rerun is to take in place of a call. */
export interface TakeableChild {
  executionId: string;
  path: string;
  status: string;
  /** Under whose key its secrets are sealed. */
  sealingRoot: string;
  /** Its result, or one that is stored of it, has sealed values in it. */
  isSealed: boolean;
  /** Other executions whose stored results its own result refers to, as far as it may read them by its own right. */
  refersTo: string[];
}

/** Those of these executions that there are. */
export async function findTakeable({ sql }: Database, executionIds: readonly string[]): Promise<TakeableChild[]> {
  return await sql<TakeableChild[]>`
    select e.execution_id as "executionId", e.path, e.status,
      coalesce(e.sealed_under, e.root_execution_id) as "sealingRoot",
      coalesce(strpos(e.result::text, '[sealed:') > 0, false)
        or exists (select from flow.result r where r.execution_id = e.execution_id and r.is_sealed) as "isSealed",
      coalesce(e.refers_to::text[], '{}') || array(
        select distinct owner.execution_id::text
        from regexp_matches(e.result::text, '"noetl://execution/([0-9]{1,18})/', 'g') as named
          join flow.execution owner on owner.execution_id = named[1]::bigint
        where owner.execution_id <> e.execution_id and owner.root_execution_id = e.root_execution_id
      ) as "refersTo"
    from flow.execution e where e.execution_id = any(${[...executionIds]}::bigint[])`;
}

/** The execution under whose key the secrets of this one are sealed, also of a deleted one to whose results others refer. */
export async function findSealingRoot({ sql }: Database, executionId: string): Promise<string | undefined> {
  const [row] = await sql<{ root: string }[]>`
    select coalesce(sealed_under, root_execution_id) as root from flow.execution where execution_id = ${executionId}
    union all
    select coalesce(sealed_under, root_execution_id) from flow.execution
    where refers_to @> array[${executionId}::bigint] and refers_to is not null
    limit 1`;
  return row?.root;
}
