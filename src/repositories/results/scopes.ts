import type { Database } from "../database/database.ts";

/** A walk over executions that have results of a scope, oldest first. */
export interface OwnersPage {
  /** Those that have ended, or are gone. */
  ended: string[];
  /** Those that are open. */
  open: string[];
  /** The last one of the page, where there may be more. */
  next: string | undefined;
}

/**
 * Executions after an id that have results which end with them: of scope `step` or `execution`, or as the root of those of
 * scope `workflow`. Each is one step down an index, however many results it has; permanent results are not in it.
 */
export async function findOwners(
  { sql }: Database,
  scope: "step" | "execution" | "workflow",
  after: string,
  limit: number,
): Promise<OwnersPage> {
  // As the indexes `result_for_root` and `result_for_scope` have it.
  const id = scope === "workflow" ? sql`root_execution_id` : sql`(execution_id + 0)`;
  const next = (place: ReturnType<typeof sql>) => sql`
    select ${id} from flow.result
    where scope = ${sql.unsafe(`'${scope}'`)} and ${id} > ${place} order by ${id} limit 1`;
  const rows = await sql<{ id: string; isOpen: boolean }[]>`
    with recursive owner (id) as (
      (${next(sql`${after}::bigint`)})
      union all
      select (${next(sql`owner.id`)}) from owner where owner.id is not null
    ), page as materialized (select id from owner where id is not null limit ${limit})
    select page.id, e.execution_id is not null and e.ended_at is null as "isOpen"
    from page left join flow.execution e on e.execution_id = page.id
    order by page.id`;
  return {
    ended: rows.filter(({ isOpen }) => !isOpen).map(({ id }) => id),
    open: rows.filter(({ isOpen }) => isOpen).map(({ id }) => id),
    next: rows.length < limit ? undefined : rows.at(-1)?.id,
  };
}

/** Results of a step that are old enough to be looked at, of an open execution. */
export interface StepResults {
  /** The beginning of their references. */
  prefix: string;
  /** They were stored before this, by the database's clock. */
  before: Date;
}

/** The steps of an open execution that have results which go with them, stored `ageMs` ago or earlier; at most `limit`. */
export async function findStepPrefixes(
  { sql }: Database,
  executionId: string,
  ageMs: number,
  limit: number,
): Promise<StepResults[]> {
  return await sql<StepResults[]>`
    select distinct substring(ref from '^noetl://execution/[0-9]+/step/[^/]+/') as prefix, moment as before
    from flow.result, (select now() - ${ageMs}::float8 * interval '1 millisecond' as moment) as asked
    where execution_id = ${executionId} and scope = 'step' and state = 'stored' and created_at < moment
      and ref ~ '^noetl://execution/[0-9]+/step/[^/]+/'
    limit ${limit}`;
}
