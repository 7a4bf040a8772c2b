import {
  EXECUTION_STATES,
  type ExecutionFilter,
  type ExecutionStateName,
} from "../../schema/rules/execution-filter.ts";
import type { OriginKind } from "../../schema/rules/origin.ts";
import type { Json } from "../../schema/words/json.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import type { Page, PageRequest, Visible } from "../database/page.ts";
import { execution } from "../tables/execution.ts";
import { matchingExecutions, ORIGIN_ID, ORIGIN_KIND } from "./matching-executions.ts";

const COLUMNS = columnsOf(execution, [
  "executionId",
  "catalogId",
  "path",
  "version",
  "status",
  "progress",
  "lastEventId",
  "parentExecutionId",
  "rootExecutionId",
  "rerunOf",
  "sealedUnder",
  "error",
  "startedAt",
  "endedAt",
]);

/** An execution according to its row. */
export interface ExecutionRow extends Omit<RowOf<typeof COLUMNS>, "lastEventId"> {
  lastEventId: number;
  /** In a list: undefined where it is longer than {@link LISTED_RESULT_BYTES_MAX}. */
  result?: Json;
}

/** A page of 500 results at the inline limit would be 32 MB. */
export const LISTED_RESULT_BYTES_MAX = 1_024;

/** Executions, newest first. The cursor is an execution's id. */
export async function listExecutions(
  database: Database,
  filter: ExecutionFilter & Visible,
  request: PageRequest<string>,
): Promise<Page<ListedRow, string>> {
  const { sql } = database;
  const { items: ids, ...rest } = await matchingExecutions(database, filter, request);
  if (ids.length === 0) return { items: [], ...rest };
  const rows = await sql<(Stored & Shown & Present)[]>`
    select ${COLUMNS(sql, "e")}, ${sql.unsafe(SHOWN)}, ${sql.unsafe(PRESENT)} as present,
      exists (select from flow.execution as c where c.parent_execution_id = e.execution_id) as "hasCalled",
      -- Of long results nothing is read.
      case when octet_length(e.result::text) <= ${LISTED_RESULT_BYTES_MAX} then e.result end as result,
      e.result is not null and octet_length(e.result::text) > ${LISTED_RESULT_BYTES_MAX} as "isLong"
    from flow.execution as e where e.execution_id = any(${ids}::bigint[])
    order by e.execution_id desc`;
  return { items: rows.map(rowOf), ...rest };
}

/** As many executions of each state are counted. */
export const COUNTED_MAX = 1_000;

/** How many executions there are in a state; with `more` at least so many. */
export interface StateCount {
  count: number;
  more: boolean;
}

/** How many executions a filter means of each state that it asks for, of each of them {@link COUNTED_MAX} at most. */
export async function countExecutions(
  database: Database,
  { status = [...EXECUTION_STATES], ...filter }: ExecutionFilter & Visible,
): Promise<Partial<Record<ExecutionStateName, StateCount>>> {
  const counts: Partial<Record<ExecutionStateName, StateCount>> = {};
  // One after another: a page that asks has one connection's worth of the database, not six.
  for (const state of status) {
    const found = await matchingExecutions(database, { ...filter, status: [state] }, { limit: COUNTED_MAX });
    counts[state] = { count: found.items.length, more: found.next !== undefined };
  }
  return counts;
}

/** Waits of an execution among which the soonest is looked for. */
const WAITS_LOOKED_AT = 200;

/**
 * SQL: what the execution `e` does now, if it is open: a step that a worker has, else one that waits for a worker, else the wait that
 * ends first. An index has its open commands; the first of these three that finds one is the last that is read.
 */
const PRESENT = `case when e.ended_at is null then (
      select json_build_object('step', now.step, 'does', now.does, 'kind', now.kind, 'name', now.name, 'dueAt', now.due_at) from (
        (select c.step, 'runs' as does, null as kind, null as name, null::timestamptz as due_at from flow.command as c
          where c.execution_id = e.execution_id and c.status in ('CLAIMED', 'RUNNING') limit 1)
        union all
        (select c.step, 'queues', null, null, null from flow.command as c
          where c.execution_id = e.execution_id and c.status = 'PENDING' limit 1)
        union all
        (select c.step, 'waits', w.kind, w.name, w.due_at from (
            select command_id, step from flow.command
            where execution_id = e.execution_id and status = 'PARKED' limit ${WAITS_LOOKED_AT}
          ) as c join flow.wait as w using (command_id) order by w.due_at limit 1)
      ) as now limit 1) end`;

/** What an open execution does now: of several steps, one. */
export interface PresentWork {
  step: string;
  does: "runs" | "queues" | "waits";
  /** Of a wait: what kind of one, the signal's name, and when it ends by itself. */
  kind: string | null;
  name: string | null;
  dueAt: string | null;
}

interface Present {
  /** Null where nothing is open, as between two steps. */
  present: PresentWork | null;
  /** It has called other executions. */
  hasCalled: boolean;
}

/** An execution as a list has it. */
export type ListedRow = ShownRow & Present;

/** SQL: what people see of the execution `e` beside its row. */
const SHOWN = `json_build_object('kind', ${ORIGIN_KIND}, 'id', (${ORIGIN_ID})::text, 'name', case ${ORIGIN_KIND}
      when 'execution' then ${pathOf(ORIGIN_ID)} when 'rerun' then ${pathOf(ORIGIN_ID)}
      when 'user' then ${userOf("e.started_by")} when 'mcp' then ${userOf("e.started_by")}
      else e.started_name end) as origin,
    coalesce((select json_object_agg(l.name, l.value order by l.name) from flow.execution_label as l
      where l.execution_id = e.execution_id), '{}') as labels`;

/** The path of an execution that may be deleted by now. */
function pathOf(id: string): string {
  return `coalesce((select path from flow.execution as other where other.execution_id = ${id}),
        (select path from flow.deleted_execution as other where other.execution_id = ${id}))`;
}

function userOf(id: string): string {
  return `case when ${id} is null then 'operator' else (select email from auth.users where user_id = ${id}) end`;
}

/** What started an execution, as lists show it. */
export interface ShownOrigin {
  kind: OriginKind;
  /** Null: an operator. */
  id: string | null;
  name: string | null;
}

interface Shown {
  origin: ShownOrigin;
  labels: Record<string, string>;
}

/** An execution with what people see of it beside its row. */
export type ShownRow = ExecutionRow & Shown;

/** One execution as lists show it, with all of its result; undefined for an unknown id. */
export async function findShownExecution({ sql }: Database, executionId: string): Promise<ShownRow | undefined> {
  const [row] = await sql<(Stored & Shown)[]>`
    select ${COLUMNS(sql, "e")}, ${sql.unsafe(SHOWN)}, e.result, false as "isLong"
    from flow.execution as e where e.execution_id = ${executionId}`;
  return row === undefined ? undefined : rowOf(row);
}

/** One execution; undefined for an unknown id. */
export async function findExecution({ sql }: Database, executionId: string): Promise<ExecutionRow | undefined> {
  const [row] = await sql<Stored[]>`
    select ${COLUMNS(sql)}, result, false as "isLong" from flow.execution where execution_id = ${executionId}`;
  return row === undefined ? undefined : rowOf(row);
}

/** Executions by their ids, newest first, without their results; unknown ones are left out. */
export async function findExecutions({ sql }: Database, executionIds: readonly string[]): Promise<ExecutionRow[]> {
  const rows = await sql<Stored[]>`
    select ${COLUMNS(sql)}, null::json as result, true as "isLong" from flow.execution
    where execution_id = any(${[...executionIds]}::bigint[]) order by execution_id desc`;
  return rows.map(rowOf);
}

const CHILD = columnsOf(execution, ["executionId"]);

/** A called execution. */
export interface Child extends RowOf<typeof CHILD> {
  isOpen: boolean;
}

/** Executions that this one has called, also those that have ended, oldest first, after the id `after`. */
export async function listChildren(
  { sql }: Database,
  parentExecutionId: string,
  after: string,
  limit: number,
): Promise<Child[]> {
  return await sql<Child[]>`
    select ${CHILD(sql)}, ended_at is null as "isOpen" from flow.execution
    where parent_execution_id = ${parentExecutionId} and execution_id > ${after}
    order by execution_id
    limit ${limit}`;
}

/** An open child execution, and its caller's idempotency key, which begins with the calling command's id. */
export interface OpenChild extends RowOf<typeof CHILD> {
  key: string;
}

/** Called executions that are looked at for open ones: a loop may have called a hundred thousand, nearly all long over. */
const CHILDREN_LOOKED_AT = 500;

/** Of the executions that this one called last those that are open, newest first. */
export async function listOpenChildren({ sql }: Database, parentExecutionId: string): Promise<OpenChild[]> {
  return await sql<OpenChild[]>`
    select ${CHILD(sql)}, idempotency_key as key
    from (
      select execution_id, idempotency_key, ended_at from flow.execution
      where parent_execution_id = ${parentExecutionId}
      order by execution_id desc
      limit ${CHILDREN_LOOKED_AT}
    ) as called
    where ended_at is null and idempotency_key is not null
    order by execution_id desc`;
}

interface Stored extends RowOf<typeof COLUMNS> {
  result: Json;
  isLong: boolean;
}

function rowOf<R extends Stored>({ lastEventId, result, isLong, ...row }: R) {
  return { ...row, lastEventId: Number(lastEventId), ...(isLong ? {} : { result }) };
}
