import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { batch } from "../tables/batch.ts";

/** A batch that was accepted and is not processed yet. */
export interface OpenBatch {
  requestId: string;
  executionIds: string[];
  eventIds: number[];
  /** A server that still lives took it over before: it is slow, and was not lost with the batch. Default false. */
  isHeld?: boolean;
}

/**
 * Who takes over batches and how long they are protected. During that time no other process may take them over; the same
 * process may again once they were idle, because it could not finish them.
 */
export interface Takeover {
  processor: string;
  leaseMs: number;
  /** Batches touched within this time stay with their current owner. */
  idleMs: number;
  /** Silence after which a server counts as gone. */
  silentMs: number;
  limit: number;
}

/**
 * Takes over batches left by a dead or slow process, oldest first. Each goes to one caller: rows that another caller is taking
 * at this moment are skipped (`skip locked`).
 *
 * The rows are chosen and locked in a subquery of their own, materialized: in a join, the planner may run it once per row and
 * then take more than `limit`.
 */
export async function takeOpenBatches({ sql }: Database, takeover: Takeover): Promise<OpenBatch[]> {
  const { processor, leaseMs, idleMs, silentMs, limit } = takeover;
  const rows = await sql<{ requestId: string; executionIds: string[]; eventIds: string[]; isHeld: boolean }[]>`
    with open as materialized (
      select request_id,
        exists (
          select from flow.runtime as r
          where r.kind = 'server' and r.name = batch.processor and r.status <> 'offline'
            and r.heartbeat_at > now() - ${silentMs}::float8 * interval '1 millisecond'
        ) as is_held
      from flow.batch
      where state in ('accepted', 'processing')
        and updated_at <= now() - ${idleMs}::float8 * interval '1 millisecond'
        and (lease_expires_at is null or lease_expires_at <= now() or processor = ${processor})
      order by request_id
      limit ${limit}
      for no key update of batch skip locked
    )
    update flow.batch as b set
      state = 'processing',
      processor = ${processor},
      lease_expires_at = now() + ${leaseMs}::float8 * interval '1 millisecond',
      updated_at = now()
    from open
    where b.request_id = open.request_id
    returning b.request_id as "requestId", b.execution_ids as "executionIds", b.event_ids as "eventIds",
      open.is_held as "isHeld"`;
  return rows
    .map(({ isHeld, ...row }) => ({ ...row, eventIds: row.eventIds.map(Number), ...(isHeld && { isHeld }) }))
    .sort((left, right) => Number(left.requestId) - Number(right.requestId));
}

const COLUMNS = columnsOf(batch, [
  "requestId",
  "caller",
  "bodySha256",
  "state",
  "code",
  "message",
  "executionIds",
  "eventIds",
  "commandsGenerated",
  "createdAt",
  "updatedAt",
]);

/** A batch as returned to its sender. */
export interface BatchRow extends Omit<RowOf<typeof COLUMNS>, "eventIds"> {
  eventIds: number[];
}

/** The batch with this id, or undefined. */
export async function findBatch({ sql }: Database, requestId: string): Promise<BatchRow | undefined> {
  const [row] = await sql<
    RowOf<typeof COLUMNS>[]
  >`select ${COLUMNS(sql)} from flow.batch where request_id = ${requestId}`;
  return row && batchRow(row);
}

/** The batch that a caller sent under this idempotency key, or undefined. */
export async function findBatchByKey({ sql }: Database, caller: string, key: string): Promise<BatchRow | undefined> {
  const [row] = await sql<RowOf<typeof COLUMNS>[]>`
    select ${COLUMNS(sql)} from flow.batch where caller = ${caller} and idempotency_key = ${key}`;
  return row && batchRow(row);
}

function batchRow(row: RowOf<typeof COLUMNS>): BatchRow {
  return { ...row, eventIds: row.eventIds.map(Number) };
}
