import type { PathRule } from "../../schema/rules/access-rules.ts";
import { type ApprovalDecision, type ApprovalStatus, LINK_OF } from "../../schema/words/approval.ts";
import type { Json } from "../../schema/words/json.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { type Page, type PageRequest, page, pathFilter } from "../database/page.ts";
import { approval } from "../tables/approval.ts";

const COLUMNS = columnsOf(approval, [
  "approvalId",
  "executionId",
  "commandId",
  "step",
  "iteration",
  "path",
  "title",
  "description",
  "form",
  "approvers",
  "byPath",
  "notStarter",
  "required",
  "rejections",
  "linkLogin",
  "status",
  "openedAt",
  "dueAt",
  "closedAt",
]);

/** An approval with what people have said. */
export interface ApprovalRow extends RowOf<typeof COLUMNS> {
  decisions: ApprovalDecision[];
  /** Who has started the execution, if a person has: the id of a user, or `operator`; null: no person. */
  starter: string | null;
}

/** Whose approvals are listed, where that is not everybody's. */
export interface ApprovalReader {
  /** The person, as decisions name them. */
  by: string;
  /** Names as approvals have them: `role:NAME` and `user:EMAIL`. */
  names: readonly string[];
  /** Paths that they may look at; undefined: all. */
  view: readonly PathRule[] | undefined;
  /** Paths that they may execute; undefined: all. */
  execute: readonly PathRule[] | undefined;
}

/** Which approvals are listed. */
export interface ApprovalFilter {
  status?: ApprovalStatus | undefined;
  executionId?: string | undefined;
  /** Those alone over which the reader may decide, and has not. */
  mine?: boolean | undefined;
  /** Undefined: an operator, who sees all. */
  reader?: ApprovalReader | undefined;
  /** The person, as decisions name them: of `mine` for an operator. */
  by: string;
}

/** Approvals that one page looks at, where not all of them may be seen. */
const LOOKED_AT_MAX = 5_000;

/**
 * Approvals, newest first, by the primary key or the index of those that are open. The cursor is an approval's id. Of more than
 * {@link LOOKED_AT_MAX} that others alone may see the page may be short, or empty, without being the last.
 */
export async function listApprovals(
  { sql }: Database,
  { status, executionId, mine = false, reader, by }: ApprovalFilter,
  { limit, cursor }: PageRequest<string>,
): Promise<Page<ApprovalRow, string>> {
  const named = reader === undefined ? sql`true` : sql`a.approvers && ${[...reader.names]}::text[]`;
  const on = (rules: readonly PathRule[] | undefined) =>
    rules === undefined ? sql`true` : pathFilter(sql, sql`a.path`, rules);
  const mayDecide = reader === undefined ? sql`true` : sql`(${named} or (a.by_path and ${on(reader.execute)}))`;
  const maySee = reader === undefined ? sql`true` : sql`(${mayDecide} or ${on(reader.view)})`;
  const undecided = sql`not exists (
    select from flow.approval_decision as d where d.approval_id = a.approval_id
      and lower(d.decided_by) in (lower(${by}), ${LINK_OF} || lower(${by})))`;
  const [found] = await sql<{ ids: string[]; last: string | null; looked: number }[]>`
    with looked as materialized (
      select * from flow.approval as each
      where ${cursor === undefined ? sql`true` : sql`each.approval_id < ${cursor}`}
        ${mine ? sql`and each.status = 'open'` : sql``}
        ${status === undefined ? sql`` : status === "open" ? sql`and each.status = 'open'` : sql`and each.status = ${status}`}
        ${executionId === undefined ? sql`` : sql`and each.execution_id = ${executionId}`}
      order by each.approval_id desc limit ${LOOKED_AT_MAX}
    )
    select
      array(
        select a.approval_id::text from looked as a
        where ${mine ? sql`${mayDecide} and ${undecided}` : maySee}
        order by a.approval_id desc limit ${limit + 1}
      ) as ids,
      (select min(approval_id) from looked) as last,
      (select count(*)::int from looked) as looked`;
  if (found === undefined) return { items: [] };
  const { items: ids, next } = page(found.ids, limit, (id) => id);
  const rows = await findApprovals({ sql }, ids);
  if (next !== undefined) return { items: rows, next };
  return found.looked === LOOKED_AT_MAX && found.last !== null ? { items: rows, next: found.last } : { items: rows };
}

/** One approval; undefined for an unknown id. */
export async function findApproval(
  database: Pick<Database, "sql">,
  approvalId: string,
): Promise<ApprovalRow | undefined> {
  const [row] = await findApprovals(database, [approvalId]);
  return row;
}

/** Executions that started each other, up to that which something else started. */
const ORIGINS_MAX = 16;

/** Who stands at the beginning of what started an execution: a rerun, a bulk operation and a call of an agent have a person too. */
const STARTER = `(
  with recursive up as (
    select r.started_by, r.started_kind, r.started_id, 1 as depth
    from flow.execution as e join flow.execution as r on r.execution_id = e.root_execution_id
    where e.execution_id = a.execution_id
    union all
    select r.started_by, r.started_kind, r.started_id, up.depth + 1
    from up join flow.execution as e on e.execution_id = up.started_id
      join flow.execution as r on r.execution_id = e.root_execution_id
    where up.started_kind = 'execution' and up.depth < ${ORIGINS_MAX}
  )
  select case when up.started_kind = 'trigger' then null else coalesce(up.started_by::text, 'operator') end
  from up order by up.depth desc limit 1)`;

const DECISIONS = `coalesce((
  select json_agg(json_build_object('decision', d.decision, 'by', d.decided_by,
    'at', to_char(d.decided_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'data', d.data, 'hasData', d.data is not null, 'comment', d.comment, 'link', d.link) order by d.decided_at, d.decided_by)
  from flow.approval_decision as d where d.approval_id = a.approval_id), '[]')`;

type StoredDecision = { decision: ApprovalDecision["decision"]; by: string; at: string } & {
  data: Json;
  hasData: boolean;
  comment: string | null;
  link: number | null;
};

async function findApprovals({ sql }: Pick<Database, "sql">, ids: readonly string[]): Promise<ApprovalRow[]> {
  if (ids.length === 0) return [];
  const rows = await sql<(Omit<ApprovalRow, "decisions"> & { decisions: StoredDecision[] })[]>`
    select ${COLUMNS(sql, "a")}, ${sql.unsafe(DECISIONS)} as decisions, ${sql.unsafe(STARTER)} as starter
    from flow.approval as a where a.approval_id = any(${[...ids]}::bigint[])
    order by a.approval_id desc`;
  return rows.map(({ decisions, ...row }) => ({ ...row, decisions: decisions.map(decisionOf) }));
}

function decisionOf({ decision, by, at, data, hasData, comment, link }: StoredDecision): ApprovalDecision {
  return {
    ...{ decision, by, at },
    ...(hasData && { data }),
    ...(comment !== null && { comment }),
    ...(link !== null && { link }),
  };
}
