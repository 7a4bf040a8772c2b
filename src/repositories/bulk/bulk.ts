import type { BulkAction, BulkStatus } from "../../schema/api/steering.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database, Transaction } from "../database/database.ts";
import { bulk } from "../tables/bulk.ts";

const COLUMNS = columnsOf(bulk, [
  "bulkId",
  "action",
  "status",
  "filter",
  "options",
  "askedBy",
  "userId",
  "asker",
  "bodySha256",
  "matched",
  "done",
  "failed",
  "skipped",
  "createdAt",
  "endedAt",
]);

/** An operation on many executions. */
export type BulkRow = RowOf<typeof COLUMNS>;

/** An operation to be written. */
export interface NewBulk {
  bulkId: string;
  action: BulkAction;
  filter: JsonObject;
  options: JsonObject;
  askedBy: string;
  userId: string | null;
  asker: JsonObject;
  idempotency?: { caller: string; key: string; bodySha256: string };
}

/**
 * Writes an operation with what it is about, executions, or of a backfill times that are numbered: both or neither. One without any has
 * ended. Rejects with a violation of `bulk_for_idempotency` if another call had its key first.
 */
export async function insertBulk(
  { sql }: Database | Transaction,
  { bulkId, action, filter, options, askedBy, userId, asker, idempotency }: NewBulk,
  about: readonly string[] | readonly Date[],
): Promise<void> {
  const dues = about.filter((one) => one instanceof Date);
  const ids = about.map((one, index) => (one instanceof Date ? String(index + 1) : one));
  const isEmpty = ids.length === 0;
  await sql`
    with made as (
      insert into flow.bulk (bulk_id, action, status, filter, options, asked_by, user_id, asker,
        caller, idempotency_key, body_sha256, matched, ended_at)
      values (${bulkId}, ${action}, ${isEmpty ? "completed" : "running"}, ${sql.json(filter)}, ${sql.json(options)},
        ${askedBy}, ${userId}, ${sql.json(asker)}, ${idempotency?.caller ?? null}, ${idempotency?.key ?? null},
        ${idempotency?.bodySha256 ?? null}, ${ids.length}, ${isEmpty ? sql`now()` : null})
      returning bulk_id
    )
    insert into flow.bulk_item (bulk_id, execution_id, due_at)
    select made.bulk_id, asked.id, asked.due_at
    from made cross join
      unnest(${ids}::bigint[], ${dues.map((due) => due.toISOString())}::text[]::timestamptz[]) as asked (id, due_at)`;
}

/** One operation, or undefined. */
export async function findBulk({ sql }: Database, bulkId: string): Promise<BulkRow | undefined> {
  const [row] = await sql<BulkRow[]>`select ${COLUMNS(sql)} from flow.bulk where bulk_id = ${bulkId}`;
  return row;
}

/** The operation that a caller began under an idempotency key, or undefined. */
export async function findBulkByKey({ sql }: Database, caller: string, key: string): Promise<BulkRow | undefined> {
  const [row] = await sql<BulkRow[]>`
    select ${COLUMNS(sql)} from flow.bulk where caller = ${caller} and idempotency_key = ${key}`;
  return row;
}

/**
 * Changes its status if it is one of `from`; undefined if it is not. One that is paused or cancelled keeps its server until that has
 * ended what it had begun.
 */
export async function setBulkStatus(
  { sql }: Database,
  bulkId: string,
  from: readonly BulkStatus[],
  to: BulkStatus,
): Promise<BulkRow | undefined> {
  const [row] = await sql<BulkRow[]>`
    update flow.bulk set status = ${to}, updated_at = now(), ended_at = ${to === "cancelled" ? sql`now()` : null}
    where bulk_id = ${bulkId} and status = any(${[...from]}::text[])
    returning ${COLUMNS(sql)}`;
  return row;
}

/**
 * Takes, for this server and this long, the operation on which no server worked for longest, of those that no other one works on: one
 * that is running, or that was paused or cancelled while a server worked on it. None of `except`. Undefined if not found.
 */
export async function claimBulk(
  { sql }: Database,
  worker: string,
  leaseMs: number,
  except: readonly string[] = [],
): Promise<BulkRow | undefined> {
  const [row] = await sql<BulkRow[]>`
    update flow.bulk set worker = ${worker}, updated_at = now(),
      lease_expires_at = now() + ${leaseMs}::float8 * interval '1 millisecond'
    where bulk_id = (
      select bulk_id from flow.bulk
      where (status = 'running' or worker is not null) and (worker is null or worker = ${worker} or lease_expires_at <= now())
        and bulk_id <> all(${[...except]}::bigint[])
      order by updated_at limit 1
      for update skip locked
    )
    returning ${COLUMNS(sql)}`;
  return row;
}

/** Prolongs the right of this server to an operation; false if it has that no more. */
export async function renewBulk(
  { sql }: Database,
  { bulkId, worker }: { bulkId: string; worker: string },
  leaseMs: number,
): Promise<boolean> {
  const { count } = await sql`
    update flow.bulk set lease_expires_at = now() + ${leaseMs}::float8 * interval '1 millisecond'
    where bulk_id = ${bulkId} and worker = ${worker}`;
  return count > 0;
}

/** Gives an operation up if nothing of it is left to be worked on: a running one has ended then. */
export async function completeBulk({ sql }: Database, bulkId: string): Promise<void> {
  await sql`
    update flow.bulk as b set status = case b.status when 'running' then 'completed' else b.status end,
      ended_at = case b.status when 'running' then now() else b.ended_at end,
      updated_at = now(), worker = null, lease_expires_at = null
    where bulk_id = ${bulkId} and not exists (
      select from flow.bulk_item as i
      where i.bulk_id = ${bulkId} and (i.state = 'begun' or i.state = 'pending' and b.status = 'running'))`;
}

/** Gives back what this server works on, so that another one may go on at once. */
export async function releaseBulk({ sql }: Database, worker: string): Promise<void> {
  await sql`
    update flow.bulk set worker = case status when 'running' then null else worker end,
      lease_expires_at = case status when 'running' then null else now() end
    where worker = ${worker}`;
}

/**
 * Deletes items of operations that ended before this many days, at most `limit` of them, and those operations of which none is left.
 * Returns the number of rows.
 */
export async function deleteOldBulk({ sql }: Database, days: number, limit: number): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    with old as (
      select bulk_id from flow.bulk where ended_at < now() - ${days}::int * interval '1 day' order by ended_at limit ${limit}
    ), items as (
      delete from flow.bulk_item as i using (
        select bulk_id, execution_id from flow.bulk_item join old using (bulk_id) limit ${limit}
      ) as gone
      where i.bulk_id = gone.bulk_id and i.execution_id = gone.execution_id
      returning 1
    ), operations as (
      delete from flow.bulk where bulk_id in (
        select bulk_id from old where not exists (select from flow.bulk_item as i where i.bulk_id = old.bulk_id)
      )
      returning 1
    )
    select (select count(*) from items)::int + (select count(*) from operations)::int as count`;
  return row?.count ?? 0;
}
