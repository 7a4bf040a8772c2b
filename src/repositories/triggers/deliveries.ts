import { firstIdAt } from "../../platform/system/ids.ts";
import type { DeliveryVerdict } from "../../schema/triggers/deliveries.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { type Page, type PageRequest, page } from "../database/page.ts";
import { triggerDelivery } from "../tables/trigger.ts";

const COLUMNS = columnsOf(triggerDelivery, [
  "deliveryId",
  "triggerId",
  "verdict",
  "isRefused",
  "reason",
  "address",
  "bytes",
  "executionId",
  "count",
  "firstAt",
  "lastAt",
]);

/** What became of a delivery, or of several of a minute. */
export type DeliveryRow = RowOf<typeof COLUMNS>;

/** A row to be written. */
export interface NewDelivery {
  deliveryId: string;
  triggerId: string;
  verdict: DeliveryVerdict;
  isRefused: boolean;
  reason: string | null;
  address: string | null;
  bytes: number | null;
  executionId: string | null;
  count: number;
  /** Milliseconds since 1970. */
  firstAt: number;
  lastAt: number;
}

/**
 * Writes rows, or what has come to them since: some hundreds at most. Of a trigger that was deleted since none is written. A row is its
 * server's alone until its minute is over, so nothing waits for a lock.
 */
export async function writeDeliveries({ sql }: Database, rows: readonly NewDelivery[]): Promise<void> {
  const of = <R>(get: (row: NewDelivery) => R) => rows.map(get);
  const moment = (ms: number) => new Date(ms).toISOString();
  await sql`
    insert into flow.trigger_delivery as d
      (delivery_id, trigger_id, verdict, is_refused, reason, address, bytes, execution_id, count, first_at, last_at)
    select n.* from unnest(
      ${of((one) => one.deliveryId)}::bigint[], ${of((one) => one.triggerId)}::bigint[], ${of((one) => one.verdict)}::text[],
      ${of((one) => String(one.isRefused))}::text[]::boolean[], ${of((one) => one.reason)}::text[],
      ${of((one) => one.address)}::text[], ${of((one) => one.bytes)}::int[], ${of((one) => one.executionId)}::bigint[],
      ${of((one) => one.count)}::int[], ${of((one) => moment(one.firstAt))}::text[]::timestamptz[],
      ${of((one) => moment(one.lastAt))}::text[]::timestamptz[]
    ) as n (delivery_id, trigger_id, verdict, is_refused, reason, address, bytes, execution_id, count, first_at, last_at)
    where exists (select from flow.trigger as t where t.trigger_id = n.trigger_id)
    on conflict (delivery_id) do update set
      reason = excluded.reason, address = excluded.address, bytes = excluded.bytes, execution_id = excluded.execution_id,
      count = excluded.count, last_at = excluded.last_at`;
}

/** Deletes all but the newest `kept` of each of these triggers, of those that were taken and of those that were refused. */
export async function trimDeliveries({ sql }: Database, triggerIds: readonly string[], kept: number): Promise<void> {
  await sql`
    delete from flow.trigger_delivery as d
    using unnest(${[...triggerIds]}::bigint[]) as of (trigger_id), (values (true), (false)) as which (is_refused)
    where d.trigger_id = of.trigger_id and d.is_refused = which.is_refused
      and d.delivery_id <= (
        select old.delivery_id from flow.trigger_delivery as old
        where old.trigger_id = of.trigger_id and old.is_refused = which.is_refused
        order by old.delivery_id desc offset ${kept} limit 1
      )`;
}

/** Deliveries of a trigger, the newest first. */
export async function listDeliveries(
  { sql }: Database,
  { triggerId, isRefused }: { triggerId: string; isRefused?: boolean },
  { limit, cursor }: PageRequest<string>,
): Promise<Page<DeliveryRow, string>> {
  const rows = await sql<DeliveryRow[]>`
    select ${COLUMNS(sql)} from flow.trigger_delivery
    where trigger_id = ${triggerId}
      ${isRefused === undefined ? sql`` : sql`and is_refused = ${isRefused}`}
      ${cursor === undefined ? sql`` : sql`and delivery_id < ${cursor}`}
    order by delivery_id desc limit ${limit + 1}`;
  return page(rows, limit, ({ deliveryId }) => deliveryId);
}

/** Deletes deliveries that are older than this many days, the oldest first, at most `limit`. Gives how many. */
export async function deleteOldDeliveries({ sql }: Database, days: number, limit: number): Promise<number> {
  const before = firstIdAt(Date.now() - days * 86_400_000);
  const { count } = await sql`
    delete from flow.trigger_delivery where delivery_id in (
      select delivery_id from flow.trigger_delivery where delivery_id < ${before} order by delivery_id limit ${limit}
    )`;
  return count;
}
