import type { ExecutionStateName } from "../../schema/rules/execution-filter.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Database } from "../database/database.ts";

/*
 * Where executions come from, and what came from them. An execution has at most one origin among executions: the one that called it,
 * that it repeats, for whose approval it tells people, or whose end fired the trigger that started it. A deleted one from which others descend has left a row.
 */

/** How an execution came from another one. */
export type LineageLink = "rerun" | "parent" | "trigger" | "hook";

/** An execution in a lineage. */
export interface Relative {
  executionId: string;
  path: string;
  version: number;
  status: ExecutionStateName;
  /** The execution that it came from, and how; null at the top. */
  of: string | null;
  link: LineageLink | null;
  /** The trigger that started it; null where none did. */
  trigger: string | null;
  /** Of a rerun: what it was asked for. */
  changed: JsonObject | null;
  /** Null of a deleted one. */
  startedAt: Date | null;
  /** Null of one that is there. */
  deletedAt: Date | null;
}

/** SQL: the origin of the row `e`, of executions and of deleted ones. */
const OF = `coalesce(e.parent_execution_id, e.rerun_of, case e.started_kind when 'execution' then e.started_id
    when 'trigger' then (
      select f.cause_id from flow.trigger_fire as f where f.execution_id = e.execution_id and f.cause_id is not null limit 1)
    end)`;
const LINK = `case when e.parent_execution_id is not null then 'parent' when e.rerun_of is not null then 'rerun'
    when e.started_kind = 'execution' and e.started_id is not null then 'hook' when e.started_kind = 'trigger' then 'trigger' end`;
const TRIGGER = "case when e.started_kind = 'trigger' then e.started_name end";
const OF_DELETED = "coalesce(e.parent_execution_id, e.rerun_of)";
const LINK_OF_DELETED =
  "case when e.parent_execution_id is not null then 'parent' when e.rerun_of is not null then 'rerun' end";

/** These executions, in no order; those of which nothing is left are not among them. */
export async function findRelatives({ sql }: Database, executionIds: readonly string[]): Promise<Relative[]> {
  const ids = [...executionIds];
  return await sql<Relative[]>`
    select e.execution_id as "executionId", e.path, e.version, e.status, ${sql.unsafe(OF)} as of, ${sql.unsafe(LINK)} as link,
      ${sql.unsafe(TRIGGER)} as trigger,
      e.rerun_request as changed, e.started_at as "startedAt", null::timestamptz as "deletedAt"
    from flow.execution as e where e.execution_id = any(${ids}::bigint[])
    union all
    select e.execution_id, e.path, e.version, e.status, ${sql.unsafe(OF_DELETED)}, ${sql.unsafe(LINK_OF_DELETED)},
      null, null, null, e.deleted_at
    from flow.deleted_execution as e
    where e.execution_id = any(${ids}::bigint[])
      and not exists (select from flow.execution as other where other.execution_id = e.execution_id)`;
}

/** The executions that this one came from, the nearest first, at most `limit`. */
export async function listAncestors({ sql }: Database, executionId: string, limit: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    with recursive line (execution_id, place) as (
      select ${executionId}::bigint, 0
      union all
      select above.of, line.place + 1
      from line cross join lateral (
        select ${sql.unsafe(OF)} as of from flow.execution as e where e.execution_id = line.execution_id
        union all
        select ${sql.unsafe(OF_DELETED)} from flow.deleted_execution as e where e.execution_id = line.execution_id
        limit 1
      ) as above
      where above.of is not null and line.place < ${limit}
    )
    select execution_id as id from line where place > 0 order by place`;
  return rows.map(({ id }) => id);
}

/** One that came from another. */
export interface Descent {
  executionId: string;
  of: string;
}

/**
 * Executions that came from these, in the order of these and then of their ids, those after `after`; at most `limit` in all. Each kind
 * of origin has an index.
 */
export async function listDescents(
  { sql }: Database,
  executionIds: readonly string[],
  after: string,
  limit: number,
): Promise<Descent[]> {
  const from = (table: string, condition: string) => sql`(
      select e.execution_id from ${sql.unsafe(`flow.${table}`)} as e
      where ${sql.unsafe(condition)} and e.execution_id > ${after}
      order by e.execution_id limit ${limit})`;
  return await sql<Descent[]>`
    select below.execution_id as "executionId", asked.id as of
    from unnest(${[...executionIds]}::bigint[]) with ordinality as asked (id, place)
    cross join lateral (
      select execution_id from (
        ${from("execution", "e.parent_execution_id = asked.id")}
        union ${from("execution", "e.rerun_of = asked.id and e.parent_execution_id is null")}
        union ${from("execution", "e.started_id = asked.id and e.started_kind = 'execution' and e.parent_execution_id is null")}
        union (
          select f.execution_id from flow.trigger_fire as f
          where f.cause_id = asked.id and f.cause_id is not null and f.execution_id > ${after}
          order by f.execution_id limit ${limit})
        union ${from("deleted_execution", "e.parent_execution_id = asked.id")}
        union ${from("deleted_execution", "e.rerun_of = asked.id and e.parent_execution_id is null")}
      ) as all_kinds
      order by execution_id limit ${limit}
    ) as below
    order by asked.place, below.execution_id
    limit ${limit}`;
}
