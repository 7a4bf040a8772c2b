import type { ResourceKind } from "../../schema/api/catalog.ts";
import type { ExecutionStateName } from "../../schema/rules/execution-filter.ts";
import type { Database } from "../database/database.ts";

/** What a start needs from a catalog entry. */
export interface Executable {
  catalogId: string;
  path: string;
  version: number;
  kind: ResourceKind;
  /** Its path is paused: since when, by whom and why. Null while it is started. */
  pausedAt: Date | null;
  pausedBy: string | null;
  pauseReason: string | null;
}

/** SQL: of the head `r` of a path. */
const PAUSE = `r.paused_at as "pausedAt", r.paused_by as "pausedBy", r.pause_reason as "pauseReason"`;

/** The newest versions of these paths, without their documents; paths that were never registered are left out. */
export async function findExecutables({ sql }: Database, paths: readonly string[]): Promise<Executable[]> {
  return await sql<Executable[]>`
    select r.catalog_id as "catalogId", r.path, r.version, r.kind, ${sql.unsafe(PAUSE)}
    from flow.resource as r where r.path = any(${[...paths]}::text[])`;
}

/** One version of a path without its document, or undefined. */
export async function findExecutableVersion(
  { sql }: Database,
  path: string,
  version: number,
): Promise<Executable | undefined> {
  const [row] = await sql<Executable[]>`
    select c.catalog_id as "catalogId", c.path, c.version, c.kind, ${sql.unsafe(PAUSE)}
    from flow.catalog as c left join flow.resource as r on r.path = c.path
    where c.path = ${path} and c.version = ${version}`;
  return row;
}

/** The entry or draft (version 0) with this id without its document, or undefined. */
export async function findExecutableById({ sql }: Database, catalogId: string): Promise<Executable | undefined> {
  const [row] = await sql<Executable[]>`
    select c.catalog_id as "catalogId", c.path, c.version, c.kind, ${sql.unsafe(PAUSE)}
    from (
      select catalog_id, path, version, kind from flow.catalog where catalog_id = ${catalogId}
      union all
      select catalog_id, path, 0, kind from flow.draft where catalog_id = ${catalogId}
    ) as c left join flow.resource as r on r.path = c.path`;
  return row;
}

/** What the start of a child needs from its parent. */
export interface ParentRow {
  status: ExecutionStateName;
  path: string;
  /** The execution at the top of the tree, and its catalog entry. */
  rootExecutionId: string;
  rootCatalogId: string;
  /** Whose key seals its secrets; null: the root's. */
  sealedUnder: string | null;
  /** Of a rerun: completed executions whose results it takes, by the step, or iteration, that calls. */
  reuseChildren: Record<string, string> | null;
  /** The user in whose name it runs; null if an operator started it. */
  startedBy: number | null;
  /** Executions from the top of the tree down to the parent, inclusive. Counting stops at the requested maximum. */
  depth: number;
}

/** The calling execution and its depth in the tree; undefined if it does not exist. */
export async function findParent(
  { sql }: Database,
  executionId: string,
  depthMax: number,
): Promise<ParentRow | undefined> {
  const [row] = await sql<ParentRow[]>`
    with recursive line (parent_execution_id, depth) as (
      select parent_execution_id, 1 from flow.execution where execution_id = ${executionId}
      union all
      select e.parent_execution_id, line.depth + 1
      from line join flow.execution e on e.execution_id = line.parent_execution_id
      where line.depth < ${depthMax}
    )
    select e.status, e.path, e.root_execution_id as "rootExecutionId", root.catalog_id as "rootCatalogId",
      e.sealed_under as "sealedUnder", e.rerun_request -> 'reuse_children' as "reuseChildren", e.started_by::float8 as "startedBy",
      (select max(depth) from line) as depth
    from flow.execution e join flow.execution root on root.execution_id = e.root_execution_id
    where e.execution_id = ${executionId}`;
  return row;
}

/** The executions that these commands belong to, by command; unknown commands are left out. */
export async function findCommandExecutions(
  { sql }: Database,
  commandIds: readonly string[],
): Promise<Map<string, string>> {
  const rows = await sql<{ commandId: string; executionId: string }[]>`
    select command_id as "commandId", execution_id as "executionId" from flow.command
    where command_id = any(${[...commandIds]}::bigint[])`;
  return new Map(rows.map(({ commandId, executionId }) => [commandId, executionId]));
}
