import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { auditInsert } from "../access/audit.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { workerPool } from "../tables/runtime.ts";

const COLUMNS = columnsOf(workerPool, ["name", "paths", "labels", "createdBy", "createdAt", "rotatedAt", "revokedAt"]);

/** A pool, without its token. */
export type WorkerPoolRow = RowOf<typeof COLUMNS>;

/** A pool to be made. */
export interface NewPool {
  name: string;
  paths: readonly string[];
  labels: Readonly<Record<string, string>>;
  tokenSha256: string;
  createdBy: string;
}

/** Pools that one installation may have. */
export const POOLS_MAX = 1_000;

/**
 * Makes a pool, also in the place of a revoked one, together with its audit row. Undefined if there is one of the name. Locks the
 * row of its name.
 */
export async function insertPool(
  { sql }: Database,
  pool: NewPool,
  entry: AuditEntry,
): Promise<WorkerPoolRow | undefined> {
  const [row] = await sql<WorkerPoolRow[]>`
    with made as (
      insert into flow.worker_pool as p (name, paths, labels, token_sha256, created_by)
      values (${pool.name}, ${[...pool.paths]}::text[], ${sql.json(pool.labels)}, ${pool.tokenSha256}, ${pool.createdBy})
      on conflict (name) do update set paths = excluded.paths, labels = excluded.labels,
        token_sha256 = excluded.token_sha256, created_by = excluded.created_by, created_at = now(), rotated_at = null,
        revoked_at = null
      where p.revoked_at is not null
      returning ${COLUMNS(sql, "p")}
    ), audited as (${auditInsert(sql, [entry], sql`exists (select from made)`)})
    select * from made`;
  return row;
}

/** Replaces the token of a pool that is not revoked, together with its audit row; undefined for an unknown one. Locks its row. */
export async function replacePoolToken(
  { sql }: Database,
  name: string,
  tokenSha256: string,
  entry: AuditEntry,
): Promise<WorkerPoolRow | undefined> {
  const [row] = await sql<WorkerPoolRow[]>`
    with changed as (
      update flow.worker_pool as p set token_sha256 = ${tokenSha256}, rotated_at = now()
      where name = ${name} and revoked_at is null returning ${COLUMNS(sql, "p")}
    ), audited as (${auditInsert(sql, [entry], sql`exists (select from changed)`)})
    select * from changed`;
  return row;
}

/** Revokes a pool, together with its audit row; undefined for an unknown or revoked one. Locks its row. */
export async function revokePool(
  { sql }: Database,
  name: string,
  entry: AuditEntry,
): Promise<WorkerPoolRow | undefined> {
  const [row] = await sql<WorkerPoolRow[]>`
    with changed as (
      update flow.worker_pool as p set revoked_at = now()
      where name = ${name} and revoked_at is null returning ${COLUMNS(sql, "p")}
    ), audited as (${auditInsert(sql, [entry], sql`exists (select from changed)`)})
    select * from changed`;
  return row;
}

/** Pools in the order of their names, also revoked ones; at most {@link POOLS_MAX}. */
export async function listPools({ sql }: Database): Promise<WorkerPoolRow[]> {
  return await sql<WorkerPoolRow[]>`select ${COLUMNS(sql)} from flow.worker_pool order by name limit ${POOLS_MAX}`;
}

/** The pool of a token that is not revoked: asked with each call of its workers, so that a revoked one is refused at once. */
export async function findPool({ sql }: Database, tokenSha256: string): Promise<WorkerPoolRow | undefined> {
  const [row] = await sql<WorkerPoolRow[]>`
    select ${COLUMNS(sql)} from flow.worker_pool where token_sha256 = ${tokenSha256} and revoked_at is null`;
  return row;
}
