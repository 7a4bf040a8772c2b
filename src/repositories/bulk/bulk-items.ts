import type { Database, Transaction } from "../database/database.ts";

/** An item to be decided. */
export interface BulkItem {
  /** Of a backfill: the number of the item. */
  executionId: string;
  /** Of a backfill: the time of the schedule. */
  dueAt: Date | null;
  /** A server has begun with it before, and has not written what came of it. */
  isAgain: boolean;
}

/** What has come of an item. */
export interface BulkOutcome {
  executionId: string;
  state: "done" | "failed" | "skipped";
  /** Why it failed or was skipped. */
  why?: { code: string; message: string };
  /** The execution that a rerun or a backfill has started. */
  newExecutionId?: string;
}

/** An item that failed. */
export interface BulkFailure {
  executionId: string;
  dueAt: Date | null;
  code: string;
  message: string;
}

/** The execution that an item has started. */
export interface BulkStarted {
  executionId: string;
  dueAt: Date | null;
  newExecutionId: string;
}

/**
 * Marks the next items of an operation as begun, in the order of their ids, if this server still holds it. Of one that is not running
 * any more only what was begun is left to be ended; so is it where nothing new may begin (`isFull`).
 */
export async function beginBulkItems(
  { sql }: Database,
  { bulkId, worker, isFull = false }: { bulkId: string; worker: string; isFull?: boolean },
  limit: number,
): Promise<BulkItem[]> {
  return await sql<BulkItem[]>`
    with held as (
      select status from flow.bulk where bulk_id = ${bulkId} and worker = ${worker}
    ), next as (
      select execution_id, due_at, state = 'begun' as again from flow.bulk_item
      where bulk_id = ${bulkId} and state in ('pending', 'begun')
        and (state = 'begun' and exists (select from held) or exists (select from held where status = 'running' and not ${isFull}))
      order by execution_id limit ${limit}
      for update
    ), begun as (
      update flow.bulk_item as i set state = 'begun' from next
      where i.bulk_id = ${bulkId} and i.execution_id = next.execution_id and i.state = 'pending'
    )
    select execution_id as "executionId", due_at as "dueAt", again as "isAgain" from next order by execution_id`;
}

/**
 * Writes what came of items, and counts each once: one that another server has ended meanwhile keeps what that has written. Gives those
 * that were ended now.
 */
export async function endBulkItems(
  { sql }: Database | Transaction,
  bulkId: string,
  outcomes: readonly BulkOutcome[],
): Promise<string[]> {
  const column = <T>(of: (outcome: BulkOutcome) => T) => outcomes.map(of);
  const [row] = await sql<{ ids: string[] }[]>`
    with told as (
      select * from unnest(
        ${column(({ executionId }) => executionId)}::bigint[], ${column(({ state }) => state)}::text[],
        ${column(({ why }) => why?.code ?? null)}::text[], ${column(({ why }) => why?.message ?? null)}::text[],
        ${column(({ newExecutionId }) => newExecutionId ?? null)}::bigint[]
      ) as t (execution_id, state, code, message, new_execution_id)
    ), ended as (
      update flow.bulk_item as i
      set state = told.state, code = told.code, message = told.message, new_execution_id = told.new_execution_id
      from told
      where i.bulk_id = ${bulkId} and i.execution_id = told.execution_id and i.state = 'begun'
      returning i.execution_id, i.state
    )
    update flow.bulk set
      done = done + (select count(*) from ended where state = 'done'),
      failed = failed + (select count(*) from ended where state = 'failed'),
      skipped = skipped + (select count(*) from ended where state = 'skipped'),
      updated_at = now()
    where bulk_id = ${bulkId}
    returning array(select execution_id::text from ended) as ids`;
  return row?.ids ?? [];
}

/** The first failed items of an operation, by their ids. */
export async function listBulkFailures({ sql }: Database, bulkId: string, limit: number): Promise<BulkFailure[]> {
  return await sql<BulkFailure[]>`
    select execution_id as "executionId", due_at as "dueAt", code, message from flow.bulk_item
    where bulk_id = ${bulkId} and state = 'failed' order by execution_id limit ${limit}`;
}

/** The first executions that an operation has started, by the ids of those that they repeat. */
export async function listBulkStarted({ sql }: Database, bulkId: string, limit: number): Promise<BulkStarted[]> {
  return await sql<BulkStarted[]>`
    select execution_id as "executionId", due_at as "dueAt", new_execution_id as "newExecutionId" from flow.bulk_item
    where bulk_id = ${bulkId} and new_execution_id is not null order by execution_id limit ${limit}`;
}
