import type { PendingQuery, Row } from "postgres";
import { firstIdAt } from "../../platform/system/ids.ts";
import { type PathRule, patternRegex } from "../../schema/rules/access-rules.ts";
import { type ExecutionFilter, isPathPattern } from "../../schema/rules/execution-filter.ts";
import type { Database } from "../database/database.ts";
import { type Page, type PageRequest, page, pathFilter, type Visible } from "../database/page.ts";

/*
 * Which executions a filter means: of lists and of bulk operations. An index leads to those with a status, a path, a parent, a label,
 * the code of an error, or an origin other than a user or a parent. What no index knows is looked for among the newest of these, a
 * bounded number at a time.
 */

/**
 * So many executions are looked at for one page where no index knows which are meant, or which the caller may see: it may be short, or
 * empty, without being the last.
 */
export const LOOKED_AT_MAX = 10_000;

/** So many where an input is asked for: that stands in the first event of each. */
export const LOOKED_INTO_MAX = 1_000;

/** Up to so many paths the index of paths is walked once for each; more of them are found among any executions soon enough. */
export const MATCHED_PATHS_MAX = 100;

/** The same where as many executions of each path may have to be looked at. */
const LOOKED_PATHS_MAX = 4;

/**
 * Ids follow the database's clock: that of an execution is given at most seconds before it starts (longer where the database
 * could not be reached meanwhile), and is ahead of the clock by milliseconds. Ids this much around the times that are asked
 * for are looked at; `started_at` decides.
 */
const ID_BEFORE_MS = 60_000;
const ID_AHEAD_MS = 5_000;

type Piece = PendingQuery<Row[]>;
type Sql = Database["sql"];

/** Ids of the executions that a filter means, newest first. The cursor is an execution's id. */
export async function matchingExecutions(
  database: Database,
  { visible, ...filter }: ExecutionFilter & Visible,
  { limit, cursor }: PageRequest<string>,
): Promise<Page<string, string>> {
  const { sql } = database;
  const paths = await pathsOf(database, filter, visible);
  if (paths?.length === 0 || visible?.length === 0) return { items: [] };
  const isMany = paths !== undefined && paths.length > MATCHED_PATHS_MAX;
  const rest = restOf(sql, filter);
  const isTested = isMany || (visible !== undefined && (paths === undefined || isExact(filter)));
  if (!isTested && rest === undefined) {
    const rows = await sql<{ id: string }[]>`
      select found.execution_id as id from (${newest(sql, filter, paths, cursor, limit + 1)}) as found
      order by found.execution_id desc
      limit ${limit + 1}`;
    return page(
      rows.map(({ id }) => id),
      limit,
      (last) => last,
    );
  }
  const isWalked = paths !== undefined && paths.length <= LOOKED_PATHS_MAX;
  const rules = isTested ? visible : undefined;
  const test = isWalked
    ? pathTest(sql, { ...filter, path: undefined, path_contains: undefined }, rules)
    : pathTest(sql, filter, visible);
  const max = filter.input === undefined ? LOOKED_AT_MAX : LOOKED_INTO_MAX;
  return await lookThrough(
    database,
    { from: newest(sql, filter, isWalked ? paths : undefined, cursor, max), rest, test, max },
    limit,
  );
}

function isExact({ path }: ExecutionFilter): boolean {
  return path !== undefined && !isPathPattern(path);
}

/**
 * The paths that are asked for, of those in the catalog that the caller may see; one more than {@link MATCHED_PATHS_MAX} at the
 * most. Undefined: any path. An exact path need not be in the catalog any more.
 */
async function pathsOf(
  { sql }: Database,
  filter: ExecutionFilter,
  visible: readonly PathRule[] | undefined,
): Promise<string[] | undefined> {
  const { path, path_contains } = filter;
  if (path !== undefined && !isPathPattern(path)) {
    const isMeant = path_contains === undefined || path.toLowerCase().includes(path_contains.toLowerCase());
    return isMeant ? [path] : [];
  }
  if (path === undefined && path_contains === undefined) return undefined;
  const rows = await sql<{ path: string }[]>`
    select path from flow.resource as each where ${pathTest(sql, filter, visible)}
    limit ${MATCHED_PATHS_MAX + 1}`;
  return rows.map((row) => row.path);
}

/** The condition that `each.path` is asked for, and may be seen. */
function pathTest(
  sql: Sql,
  { path, path_contains }: { path?: string | undefined; path_contains?: string | undefined },
  visible: readonly PathRule[] | undefined,
) {
  return sql`
    ${visible === undefined ? sql`true` : pathFilter(sql, sql`each.path`, visible)}
    ${path === undefined ? sql`` : isPathPattern(path) ? sql`and each.path ~ ${patternRegex(path)}` : sql`and each.path = ${path}`}
    ${path_contains === undefined ? sql`` : sql`and strpos(lower(each.path), lower(${path_contains})) > 0`}`;
}

/** What is looked through: the newest of `from`, for those that the two conditions mean. */
interface Look {
  from: Piece;
  rest: Piece | undefined;
  /** On `each.path`. */
  test: Piece;
  max: number;
}

async function lookThrough(
  { sql }: Database,
  { from, rest, test, max }: Look,
  limit: number,
): Promise<Page<string, string>> {
  const [found] = await sql<{ ids: string[]; last: string | null; looked: number }[]>`
    with looked as materialized (
      select e.execution_id, e.path, ${rest ?? sql`true`} as fits from (${from}) as e
      order by e.execution_id desc
      limit ${max}
    ), seen as materialized (
      -- There are fewer paths than executions: each is asked about once.
      select path from (select distinct path from looked where fits) as each where ${test}
    )
    select
      array(
        select looked.execution_id::text from looked where fits and path in (select path from seen)
        order by looked.execution_id desc limit ${limit + 1}
      ) as ids,
      (select min(execution_id) from looked) as last,
      (select count(*)::int from looked) as looked`;
  if (found === undefined || found.last === null) return { items: [] };
  const { items, next } = page(found.ids, limit, (id) => id);
  if (next !== undefined) return { items, next };
  return found.looked === max ? { items, next: found.last } : { items };
}

/** The newest `limit` executions, of each path if there are paths, by what indexes know of the filter. */
function newest(
  sql: Sql,
  filter: ExecutionFilter,
  paths: readonly string[] | undefined,
  cursor: string | undefined,
  limit: number,
) {
  const [path] = paths ?? [];
  if (paths === undefined || paths.length === 1)
    return newestOfStates(sql, filter, path === undefined ? undefined : sql`${path}`, cursor, limit);
  return sql`
    select e.* from unnest(${[...paths]}::text[]) as asked (path)
    cross join lateral (${newestOfStates(sql, filter, sql`asked.path`, cursor, limit)}) as e`;
}

/**
 * The newest `limit` of each requested status: they include the newest `limit` of all. One statement per
 * status goes along its index; asked for several at once the planner walks every execution there is, for three that run.
 */
function newestOfStates(
  sql: Sql,
  filter: ExecutionFilter,
  path: Piece | undefined,
  cursor: string | undefined,
  limit: number,
) {
  const states = filter.status ?? [undefined];
  const [label] = Object.entries(filter.labels ?? {});
  // In the order of the label's index, or of the row's.
  const key = label === undefined ? sql`e.execution_id` : sql`l.execution_id`;
  const from =
    label === undefined
      ? sql`flow.execution as e where true`
      : sql`flow.execution_label as l join flow.execution as e on e.execution_id = l.execution_id
        where l.name = ${label[0]} and l.value = ${label[1]}`;
  const [first, ...others] = states.map(
    (status) => sql`(
      select e.* from ${from} ${conditions(sql, filter, { key, path, cursor })}
        ${status === undefined ? sql`` : sql`and e.status = ${status}`}
      order by ${key} desc limit ${limit})`,
  );
  if (first === undefined) return sql`select * from flow.execution where false`;
  return others.reduce((all, one) => sql`${all} union all ${one}`, first);
}

/** Conditions that indexes know. Those that are not asked for are not in the text, so that the planner sees which index serves. */
function conditions(
  sql: Sql,
  filter: ExecutionFilter,
  { key, path, cursor }: { key: Piece; path: Piece | undefined; cursor: string | undefined },
) {
  const {
    parent_execution_id: parent,
    since,
    until,
    id_prefix: prefix,
    execution_ids: ids,
    error_code: code,
    started_by: kind,
    started_by_id: by,
  } = filter;
  const range = prefix === undefined ? undefined : idsFrom(prefix, Date.now());
  const oldest = since === undefined ? "0" : String(firstIdAt(Date.parse(since) - ID_BEFORE_MS));
  const youngest = until === undefined ? "0" : String(firstIdAt(Date.parse(until) + ID_AHEAD_MS));
  return sql`
      ${cursor === undefined ? sql`` : sql`and ${key} < ${cursor}`}
      ${range === undefined ? sql`` : sql`and ${key} between ${range.from} and ${range.to}`}
      ${ids === undefined ? sql`` : sql`and ${key} = any(${ids}::bigint[])`}
      ${path === undefined ? sql`` : sql`and e.path = ${path}`}
      ${parent === undefined ? sql`` : sql`and e.parent_execution_id = ${parent}`}
      ${code === undefined ? sql`` : sql`and e.error is not null and flow.error_part(e.error, 'code') = ${code}`}
      ${isWritten(kind) ? sql`and e.started_kind = ${kind ?? ""}` : sql``}
      ${isWritten(kind) && kind !== "mcp" && by !== undefined ? sql`and e.started_id = ${by}` : sql``}
      ${since === undefined ? sql`` : sql`and ${key} >= ${oldest} and e.started_at >= ${since}`}
      ${until === undefined ? sql`` : sql`and ${key} < ${youngest} and e.started_at < ${until}`}`;
}

/** Origins that rows always name; the others follow from other columns. */
function isWritten(kind: ExecutionFilter["started_by"]): boolean {
  return kind === "trigger" || kind === "bulk" || kind === "mcp";
}

/** SQL: what started the execution `e`, and its id. */
export const ORIGIN_KIND = `coalesce(e.started_kind,
  case when e.parent_execution_id is not null then 'execution' when e.rerun_of is not null then 'rerun' else 'user' end)`;
/** See {@link ORIGIN_KIND}. Of an agent's client it is the user, also where the call repeats an execution. */
export const ORIGIN_ID = `case when e.started_kind = 'mcp' then e.started_by
  else coalesce(e.started_id, e.parent_execution_id, e.rerun_of, e.started_by) end`;

/** The conditions on the row `e` that no index knows, one of them at least; undefined without any. */
function restOf(sql: Sql, filter: ExecutionFilter): Piece | undefined {
  const { version, step, labels = {}, input = {}, roots_only, started_by: kind, started_by_id: by } = filter;
  const [, ...otherLabels] = Object.entries(labels);
  const all = [
    ...(version === undefined ? [] : [sql`e.version = ${version}`]),
    ...(roots_only === undefined ? [] : [sql`e.parent_execution_id is null`]),
    ...(kind === undefined || isWritten(kind) ? [] : [sql`${sql.unsafe(ORIGIN_KIND)} = ${kind}`]),
    ...(by === undefined || (isWritten(kind) && kind !== "mcp") ? [] : [sql`(${sql.unsafe(ORIGIN_ID)}) = ${by}`]),
    ...(step === undefined ? [] : [atStep(sql, step)]),
    ...otherLabels.map(
      ([name, value]) => sql`exists (
        select from flow.execution_label as l where l.execution_id = e.execution_id and l.name = ${name} and l.value = ${value})`,
    ),
    ...Object.entries(input).map(([name, value]) => withInput(sql, name, value)),
  ];
  const [first, ...others] = all;
  return first && others.reduce((before, one) => sql`${before} and ${one}`, first);
}

/** It failed at the step, or has open work in it. */
function atStep(sql: Sql, step: string) {
  return sql`(case when e.ended_at is null then exists (
      select from flow.command as c
      where c.execution_id = e.execution_id and c.step = ${step} and c.status in ('PENDING', 'PAUSED', 'PARKED', 'CLAIMED', 'RUNNING'))
    else e.error is not null and flow.error_part(e.error, 'step') is not distinct from ${step} end)`;
}

/** PostgreSQL's functions refuse texts with these escapes. */
const REFUSED = "\\\\u(0000|d[89a-f])";

/** Its workload, which stands in its first event, has the value at the name, or at names with dots. */
function withInput(sql: Sql, name: string, value: string) {
  const names = name.split(".");
  const [top = ""] = names;
  return sql`coalesce((
      select case
        when l.body is null and l.meta::text ~* ${REFUSED} then false
        when l.body is null then l.meta #>> ${["workload", ...names]}::text[] = ${value}
        else strpos(l.body, ${JSON.stringify(top)}) > 0 and l.body::json #>> ${["0", "workload", ...names]}::text[] = ${value}
      end
      from flow.event_log as l
      where l.execution_id = e.execution_id and l.event_id > e.execution_id
      order by l.event_id limit 1
    ), false)`;
}

/** The ids that begin with these digits and are as long as those that are given at `now`, milliseconds since 1970. */
function idsFrom(digits: string, now: number): { from: string; to: string } {
  const length = String(firstIdAt(now)).length;
  return { from: digits.padEnd(length, "0"), to: digits.padEnd(length, "9") };
}
