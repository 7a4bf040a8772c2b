import { firstIdAt } from "../../platform/system/ids.ts";
import type { ExecutionStateName } from "../../schema/api/executions.ts";
import type { PathRule } from "../../schema/rules/access-rules.ts";
import type { Json } from "../../schema/words/json.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { type Page, type PageRequest, page, pathFilter, type Visible } from "../database/page.ts";
import { execution } from "../tables/execution.ts";

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

/** Which executions of a list. */
export interface ExecutionFilter {
  /** One of these; each once. Absent: any. */
  statuses?: readonly ExecutionStateName[];
  path?: string;
  /** This text is in its path, in whatever case. */
  pathContains?: string;
  parentExecutionId?: string;
  /** Started at this moment or later. */
  since?: Date;
  /** Started before this moment. */
  until?: Date;
  /** The first digits of their ids. */
  idPrefix?: string;
}

/**
 * No index knows which executions a caller may see. So one page scans at most this many: it may be short, or empty, without
 * being the last.
 */
export const LOOKED_AT_MAX = 10_000;

/** Up to so many paths the index of paths is walked once for each; more of them are found among any executions soon enough. */
export const MATCHED_PATHS_MAX = 100;

/** A page of 500 results at the inline limit would be 32 MB. */
export const LISTED_RESULT_BYTES_MAX = 1_024;

/**
 * Ids follow the database's clock: that of an execution is given at most seconds before it starts (longer where the database
 * could not be reached meanwhile), and is ahead of the clock by milliseconds. Ids this much around the times that are asked
 * for are looked at; `started_at` decides.
 */
const ID_BEFORE_MS = 60_000;
const ID_AHEAD_MS = 5_000;

/** Executions, newest first. The cursor is an execution's id. */
export async function listExecutions(
  database: Database,
  { visible, pathContains, ...filter }: ExecutionFilter & Visible,
  request: PageRequest<string>,
): Promise<Page<ExecutionRow, string>> {
  const { sql } = database;
  const { limit, cursor } = request;
  const paths = pathContains === undefined ? undefined : await pathsWith(database, pathContains, visible);
  if (paths?.length === 0) return { items: [] };
  const isMany = paths !== undefined && paths.length > MATCHED_PATHS_MAX;
  if (isMany || (paths === undefined && visible !== undefined)) {
    return await listMatching(database, { visible, pathContains }, filter, request);
  }
  const found =
    paths === undefined
      ? newest(sql, filter, cursor, limit + 1)
      : sql`
        select execution.* from unnest(${paths}::text[]) as asked (path)
        cross join lateral (${newest(sql, { ...filter, path: sql`asked.path` }, cursor, limit + 1)}) as execution`;
  const rows = await sql<Stored[]>`
    select ${listedColumns(sql)} from (${found}) as found
    order by execution_id desc
    limit ${limit + 1}`;
  return page(rows.map(rowOf), limit, (last) => last.executionId);
}

/** Paths of the catalog with the text in them that the caller may see: one more than {@link MATCHED_PATHS_MAX} at the most. */
async function pathsWith({ sql }: Database, text: string, visible: readonly PathRule[] | undefined): Promise<string[]> {
  const rows = await sql<{ path: string }[]>`
    select path from flow.resource as each where ${matching(sql, { visible, pathContains: text })}
    limit ${MATCHED_PATHS_MAX + 1}`;
  return rows.map(({ path }) => path);
}

/** Conditions on the path. */
interface PathQuery extends Visible {
  pathContains: string | undefined;
}

function matching(sql: Database["sql"], { visible, pathContains }: PathQuery) {
  return sql`
    ${visible === undefined ? sql`true` : pathFilter(sql, sql`each.path`, visible)}
    ${pathContains === undefined ? sql`` : sql`and strpos(lower(each.path), lower(${pathContains})) > 0`}`;
}

/** Looks through the newest {@link LOOKED_AT_MAX} for those whose path is asked for. */
async function listMatching(
  { sql }: Database,
  query: PathQuery,
  filter: Narrowing,
  { limit, cursor }: PageRequest<string>,
): Promise<Page<ExecutionRow, string>> {
  if (query.visible?.length === 0) return { items: [] };
  const [found] = await sql<{ ids: string[]; last: string | null; looked: number }[]>`
    with looked as materialized (
      select execution_id, path from (${newest(sql, filter, cursor, LOOKED_AT_MAX)}) as found
      order by execution_id desc
      limit ${LOOKED_AT_MAX}
    ), seen as materialized (
      -- There are fewer paths than executions: each is asked about once.
      select path from (select distinct path from looked) as each where ${matching(sql, query)}
    )
    select
      array(
        select execution_id::text from looked where path in (select path from seen)
        order by execution_id desc limit ${limit + 1}
      ) as ids,
      (select min(execution_id) from looked) as last,
      (select count(*)::int from looked) as looked`;
  if (found === undefined || found.last === null) return { items: [] };
  const { items: ids, next } = page(found.ids, limit, (id) => id);
  const rows = await sql<Stored[]>`
    select ${listedColumns(sql)} from flow.execution where execution_id = any(${ids}::bigint[])
    order by execution_id desc`;
  const items = rows.map(rowOf);
  if (next !== undefined) return { items, next };
  return found.looked === LOOKED_AT_MAX ? { items, next: found.last } : { items };
}

/**
 * The newest `limit` of each requested status: they include the newest `limit` of all. One statement per
 * status goes along its index; asked for several at once the planner walks every execution there is, for three that run.
 */
function newest(sql: Database["sql"], filter: Narrowing, cursor: string | undefined, limit: number) {
  const { statuses = [undefined], ...rest } = filter;
  const [first, ...others] = statuses.map(
    (status) => sql`(
      select * from flow.execution where ${conditions(sql, { ...rest, status }, cursor)}
      order by execution_id desc limit ${limit})`,
  );
  if (first === undefined) return sql`select * from flow.execution where false`;
  return others.reduce((all, one) => sql`${all} union all ${one}`, first);
}

/** Conditions on the row alone; the path may be one of another table. */
type Narrowing = Omit<ExecutionFilter, "pathContains" | "path"> & { path?: string | PendingQuery };
type PendingQuery = ReturnType<Database["sql"]>;
type OneStatus = Omit<Narrowing, "statuses"> & { status: ExecutionStateName | undefined };

/** Conditions that are not asked for are not in the text, so that the planner sees which index serves. */
function conditions(sql: Database["sql"], filter: OneStatus, cursor: string | undefined) {
  const { status, path, parentExecutionId, since, until, idPrefix } = filter;
  const range = idPrefix === undefined ? undefined : idsFrom(idPrefix, Date.now());
  const oldest = since === undefined ? undefined : String(firstIdAt(since.getTime() - ID_BEFORE_MS));
  const youngest = until === undefined ? undefined : String(firstIdAt(until.getTime() + ID_AHEAD_MS));
  return sql`true
      ${cursor === undefined ? sql`` : sql`and execution_id < ${cursor}`}
      ${range === undefined ? sql`` : sql`and execution_id between ${range.from} and ${range.to}`}
      ${status === undefined ? sql`` : sql`and status = ${status}`}
      ${path === undefined ? sql`` : sql`and path = ${path}`}
      ${parentExecutionId === undefined ? sql`` : sql`and parent_execution_id = ${parentExecutionId}`}
      ${since === undefined ? sql`` : sql`and execution_id >= ${oldest ?? "0"} and started_at >= ${since}`}
      ${until === undefined ? sql`` : sql`and execution_id < ${youngest ?? "0"} and started_at < ${until}`}`;
}

/** The ids that begin with these digits and are as long as those that are given at `now`, milliseconds since 1970. */
function idsFrom(digits: string, now: number): { from: string; to: string } {
  const length = String(firstIdAt(now)).length;
  return { from: digits.padEnd(length, "0"), to: digits.padEnd(length, "9") };
}

/** One execution; undefined for an unknown id. */
export async function findExecution({ sql }: Database, executionId: string): Promise<ExecutionRow | undefined> {
  const [row] = await sql<Stored[]>`
    select ${COLUMNS(sql)}, result, false as "isLong" from flow.execution where execution_id = ${executionId}`;
  return row === undefined ? undefined : rowOf(row);
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

/** Of long results nothing is read. */
function listedColumns(sql: Database["sql"]) {
  return sql`${COLUMNS(sql)},
    case when octet_length(result::text) <= ${LISTED_RESULT_BYTES_MAX} then result end as result,
    result is not null and octet_length(result::text) > ${LISTED_RESULT_BYTES_MAX} as "isLong"`;
}

function rowOf({ lastEventId, result, isLong, ...row }: Stored): ExecutionRow {
  return { ...row, lastEventId: Number(lastEventId), ...(isLong ? {} : { result }) };
}
