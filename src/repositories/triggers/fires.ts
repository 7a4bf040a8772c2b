import { firstIdAt } from "../../platform/system/ids.ts";
import type { FireStatus } from "../../schema/triggers/trigger.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { type Page, type PageRequest, page } from "../database/page.ts";
import { triggerFire } from "../tables/trigger.ts";

const COLUMNS = columnsOf(triggerFire, [
  "fireId",
  "triggerId",
  "key",
  "dueAt",
  "status",
  "executionId",
  "reason",
  "waits",
  "always",
  "firedAt",
]);

/** A fire, without what its execution is started with. */
export type FireRow = RowOf<typeof COLUMNS>;

/** A fire that is to be decided, with the inputs of its execution as JSON. */
export interface QueuedFire {
  fireId: string;
  triggerId: string;
  key: string;
  dueAt: Date;
  input: string;
  waits: boolean;
  always: boolean;
  /** It has just been written: no server has tried to start it. */
  isNew: boolean;
}

/** A fire to be written. A `failed` one has a reason; a queued one has inputs, as JSON. */
export interface NewFire {
  fireId: string;
  triggerId: string;
  key: string;
  dueAt: number;
  firedAt: number;
  status: "queued" | "failed" | "skipped";
  reason: string | null;
  input: string | null;
  always: boolean;
  causeId: string | null;
}

/**
 * Writes fires, and gives the ids of those that are new: one of a key that its trigger has fired for stays as it is. Queued ones are this
 * server's for `leaseMs`.
 */
export async function insertFires({ sql }: Database, fires: readonly NewFire[], leaseMs: number): Promise<string[]> {
  const of = <R>(get: (row: NewFire) => R) => fires.map(get);
  const rows = await sql<{ fireId: string }[]>`
    insert into flow.trigger_fire (fire_id, trigger_id, key, due_at, fired_at, status, reason, input, always, cause_id, wake_at)
    select f.fire_id, f.trigger_id, f.key, f.due_at, f.fired_at, f.status, f.reason, f.input::json, f.always, f.cause_id,
      case f.status when 'queued' then now() + ${leaseMs}::float8 * interval '1 millisecond' end
    from unnest(
      ${of((one) => one.fireId)}::bigint[], ${of((one) => one.triggerId)}::bigint[], ${of((one) => one.key)}::text[],
      ${of((one) => new Date(one.dueAt).toISOString())}::text[]::timestamptz[],
      ${of((one) => new Date(one.firedAt).toISOString())}::text[]::timestamptz[], ${of((one) => one.status)}::text[],
      ${of((one) => one.reason)}::text[], ${of((one) => one.input)}::text[], ${of((one) => String(one.always))}::text[]::boolean[],
      ${of((one) => one.causeId)}::bigint[]
    ) as f (fire_id, trigger_id, key, due_at, fired_at, status, reason, input, always, cause_id)
    on conflict (trigger_id, key) do nothing
    returning fire_id as "fireId"`;
  return rows.map(({ fireId }) => fireId);
}

/** Fires by their triggers and keys, those that are there. */
export async function findFires(
  { sql }: Database,
  asked: readonly { triggerId: string; key: string }[],
): Promise<FireRow[]> {
  return await sql<FireRow[]>`
    select ${COLUMNS(sql, "f")} from flow.trigger_fire as f
    join unnest(${asked.map((one) => one.triggerId)}::bigint[], ${asked.map((one) => one.key)}::text[]) as asked (trigger_id, key)
      on f.trigger_id = asked.trigger_id and f.key = asked.key`;
}

/** Fires of a trigger, the newest first. */
export async function listFires(
  { sql }: Database,
  { triggerId, status }: { triggerId: string; status?: FireStatus },
  { limit, cursor }: PageRequest<string>,
): Promise<Page<FireRow, string>> {
  const rows = await sql<FireRow[]>`
    select ${COLUMNS(sql)} from flow.trigger_fire
    where trigger_id = ${triggerId}
      ${status === undefined ? sql`` : sql`and status = ${status}`}
      ${cursor === undefined ? sql`` : sql`and fire_id < ${cursor}`}
    order by fire_id desc limit ${limit + 1}`;
  return page(rows, limit, ({ fireId }) => fireId);
}

const QUEUED = `fire_id as "fireId", trigger_id as "triggerId", key, due_at as "dueAt", input::text as input, waits, always, false as "isNew"`;

/** Takes queued fires that a server is to decide about, for this long. Those that another one is taking are passed over. */
export async function takeQueuedFires({ sql }: Database, leaseMs: number, limit: number): Promise<QueuedFire[]> {
  return await sql<QueuedFire[]>`
    with ready as (
      select fire_id from flow.trigger_fire where wake_at <= now() order by wake_at, fire_id limit ${limit}
      for update skip locked
    ), taken as (
      update flow.trigger_fire as f set wake_at = now() + ${leaseMs}::float8 * interval '1 millisecond'
      from ready where f.fire_id = ready.fire_id
      returning f.*
    )
    select ${sql.unsafe(QUEUED)} from taken order by fire_id`;
}

/** The queue of a trigger in its order, at most `limit` fires. */
export async function queueOf({ sql }: Database, triggerId: string, limit: number): Promise<QueuedFire[]> {
  return await sql<QueuedFire[]>`
    select ${sql.unsafe(QUEUED)} from flow.trigger_fire
    where trigger_id = ${triggerId} and status = 'queued' order by due_at, fire_id limit ${limit}`;
}

/** What has become of a queued fire. */
export interface FireOutcome {
  fireId: string;
  status: "started" | "skipped" | "failed";
  executionId: string | null;
  reason: string | null;
}

/** Writes what has become of queued fires, once each, but of those whose executions have started: that is written with these. */
export async function endFires({ sql }: Database, outcomes: readonly FireOutcome[]): Promise<void> {
  const of = <R>(get: (row: FireOutcome) => R) => outcomes.map(get);
  await sql`
    update flow.trigger_fire as f set status = told.status, execution_id = told.execution_id, reason = told.reason,
      wake_at = null, input = null
    from unnest(
      ${of((one) => one.fireId)}::bigint[], ${of((one) => one.status)}::text[],
      ${of((one) => one.executionId)}::bigint[], ${of((one) => one.reason)}::text[]
    ) as told (fire_id, status, execution_id, reason)
    where f.fire_id = told.fire_id and f.status = 'queued'`;
}

/** Writes of the triggers of started fires when that was, if it is their last. Locks the triggers in the order of their ids, as other servers do. */
export async function noteLastFires({ sql }: Database, fireIds: readonly string[]): Promise<void> {
  await sql`
    with last as (
      select trigger_id, max(fired_at) as fired_at from flow.trigger_fire where fire_id = any(${[...fireIds]}::bigint[])
      group by trigger_id
    ), locked as (
      select trigger_id from flow.trigger where trigger_id in (select trigger_id from last)
      order by trigger_id for no key update
    )
    update flow.trigger as t set last_fire_at = greatest(t.last_fire_at, last.fired_at)
    from locked join last using (trigger_id) where t.trigger_id = locked.trigger_id`;
}

/** Lets queued fires be decided about at this moment from now. */
export async function postponeFires({ sql }: Database, fireIds: readonly string[], ms: number): Promise<void> {
  await sql`
    update flow.trigger_fire set wake_at = now() + ${ms}::float8 * interval '1 millisecond'
    where fire_id = any(${[...fireIds]}::bigint[]) and status = 'queued'`;
}

/** Begins to decide about the fires of a trigger, alone for this long; false if someone else does. */
export async function beginDeciding(
  { sql }: Database,
  triggerId: string,
  { by, leaseMs }: { by: string; leaseMs: number },
): Promise<boolean> {
  const rows = await sql`
    update flow.trigger set decided_by = ${by}, decided_until = now() + ${leaseMs}::float8 * interval '1 millisecond'
    where trigger_id = ${triggerId} and (decided_until is null or decided_until <= now() or decided_by = ${by})
    returning 1`;
  return rows.length > 0;
}

/** Lets another one decide. */
export async function endDeciding({ sql }: Database, triggerId: string, by: string): Promise<void> {
  await sql`
    update flow.trigger set decided_by = null, decided_until = null where trigger_id = ${triggerId} and decided_by = ${by}`;
}

/** Open executions that a trigger has started, the oldest first, at most `limit`. */
export async function openExecutionsOf({ sql }: Database, triggerId: string, limit: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select execution_id as id from flow.execution
    where started_id = ${triggerId} and started_kind = 'trigger' and ended_at is null
    order by execution_id limit ${limit}`;
  return rows.map(({ id }) => id);
}

/** Deletes fires that are older than this many days and wait for nothing, the oldest first, at most `limit`. Gives how many. */
export async function deleteOldFires({ sql }: Database, days: number, limit: number): Promise<number> {
  const before = firstIdAt(Date.now() - days * 86_400_000);
  const { count } = await sql`
    delete from flow.trigger_fire where fire_id in (
      select fire_id from flow.trigger_fire where fire_id < ${before} and status <> 'queued' order by fire_id limit ${limit}
    )`;
  return count;
}
