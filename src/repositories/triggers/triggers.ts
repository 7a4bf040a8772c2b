import type { Trigger, TriggerKind } from "../../schema/triggers/trigger.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database, Transaction } from "../database/database.ts";
import { type Page, type PageRequest, page, pathFilter, type Visible } from "../database/page.ts";
import { trigger } from "../tables/trigger.ts";

const COLUMNS = columnsOf(trigger, [
  "triggerId",
  "document",
  "path",
  "name",
  "kind",
  "definition",
  "version",
  "userId",
  "address",
  "enabled",
  "activeSince",
  "countedFrom",
  "nextDueAt",
  "lastFireAt",
  "createdAt",
]);

/** A trigger of the newest version of its document. */
export type TriggerRow = RowOf<typeof COLUMNS>;

/** A trigger to be written when its document is registered. */
export interface NewTrigger {
  triggerId: string;
  path: string;
  definition: Trigger;
  address: string | null;
  /** Since when an interval counts and times are missed; milliseconds since 1970. */
  activeSince: number;
  countedFrom: number;
  /** The next time of a schedule, and when a server is to look at it; both only of one that is enabled. */
  nextDueAt: number | null;
  wakeAt: number | null;
}

/** The triggers that a document has now, locked until the end of the transaction, and the database's clock. */
export async function lockTriggersOf(
  { sql }: Transaction,
  document: string,
): Promise<{ rows: TriggerRow[]; now: number }> {
  const rows = await sql<TriggerRow[]>`
    select ${COLUMNS(sql)} from flow.trigger where document = ${document} order by trigger_id for update`;
  const [clock] = await sql<[{ now: Date }]>`select clock_timestamp()::timestamptz(3) as now`;
  return { rows, now: clock.now.getTime() };
}

/** Deletes the triggers of a document but those with these ids; gives how many. Fires that wait are skipped. */
export async function deleteTriggersOf(
  { sql }: Transaction,
  document: string,
  kept: readonly string[],
): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    with gone as (
      delete from flow.trigger where document = ${document} and trigger_id <> all(${[...kept]}::bigint[])
      returning trigger_id
    ), unqueued as (
      update flow.trigger_fire as f set status = 'skipped', wake_at = null, input = null,
        reason = 'A newer version has no such trigger'
      from gone where f.trigger_id = gone.trigger_id and f.status = 'queued'
    )
    select count(*)::int as count from gone`;
  return row.count;
}

/**
 * Writes a trigger of a version: a new one, or a new definition of one that its document had. Gives false, and writes nothing, if another
 * document has one of this name for this playbook. Rejects with a violation of `trigger_address` if another trigger has its address. Who
 * looks at it at this moment does so in vain: what it would write is of the old definition.
 */
export async function writeTrigger(
  { sql }: Transaction,
  { document, version, userId }: { document: string; version: number; userId: string | null },
  row: NewTrigger,
): Promise<boolean> {
  const { triggerId, path, definition, address, nextDueAt, wakeAt } = row;
  const moment = (ms: number | null) => (ms === null ? null : new Date(ms));
  const written = await sql`
    insert into flow.trigger as t (trigger_id, document, path, name, kind, definition, version, user_id, address,
      active_since, counted_from, next_due_at, wake_at)
    values (${triggerId}, ${document}, ${path}, ${definition.name}, ${definition.kind},
      ${JSON.stringify(definition)}::text::json, ${version}, ${userId}, ${address},
      ${moment(row.activeSince)}, ${moment(row.countedFrom)}, ${moment(nextDueAt)}, ${moment(wakeAt)})
    on conflict (path, name) do update set
      kind = excluded.kind, definition = excluded.definition, version = excluded.version, user_id = excluded.user_id,
      address = excluded.address, active_since = excluded.active_since, counted_from = excluded.counted_from,
      next_due_at = excluded.next_due_at, wake_at = excluded.wake_at, taken_by = null, updated_at = now()
    where t.document = excluded.document
    returning 1`;
  return written.length > 0;
}

/** One trigger, or undefined. */
export async function findTrigger({ sql }: Database, triggerId: string): Promise<TriggerRow | undefined> {
  const [row] = await sql<TriggerRow[]>`select ${COLUMNS(sql)} from flow.trigger where trigger_id = ${triggerId}`;
  return row;
}

/** Triggers by their ids, those that are there. */
export async function findTriggers({ sql }: Database, triggerIds: readonly string[]): Promise<TriggerRow[]> {
  return await sql<TriggerRow[]>`
    select ${COLUMNS(sql)} from flow.trigger where trigger_id = any(${[...triggerIds]}::bigint[])`;
}

/** The trigger of a kind with an address, or undefined. */
export async function findTriggerAt(
  { sql }: Database,
  kind: TriggerKind,
  address: string,
): Promise<TriggerRow | undefined> {
  const [row] = await sql<TriggerRow[]>`
    select ${COLUMNS(sql)} from flow.trigger where kind = ${kind} and address = ${address}`;
  return row;
}

/** Enabled triggers of a kind other than `schedule`, by their ids, at most `limit`. */
export async function listEnabled({ sql }: Database, kind: TriggerKind, limit: number): Promise<TriggerRow[]> {
  return await sql<TriggerRow[]>`
    select ${COLUMNS(sql)} from flow.trigger
    where enabled and kind <> 'schedule' and kind = ${kind} order by trigger_id limit ${limit}`;
}

/** What a list of triggers is about. */
export interface TriggerFilter extends Visible {
  path?: string;
  name?: string;
  kind?: TriggerKind;
  enabled?: boolean;
}

/** Triggers in the order of their playbooks' paths and their names. `cursor`: the last path and name before the page. */
export async function listTriggers(
  { sql }: Database,
  filter: TriggerFilter,
  { limit, cursor }: PageRequest<readonly [string, string]>,
): Promise<Page<TriggerRow, readonly [string, string]>> {
  const rows = await sql<TriggerRow[]>`
    select ${COLUMNS(sql)} from flow.trigger
    where ${matching(sql, filter)}
      ${cursor === undefined ? sql`` : sql`and (path, name) > (${cursor[0]}, ${cursor[1]})`}
    order by path, name limit ${limit + 1}`;
  return page(rows, limit, (last) => [last.path, last.name] as const);
}

/** Triggers that fire at a time, the soonest first: by `wake_at`, jitter included, which has an index. */
export async function listNextTriggers({ sql }: Database, filter: TriggerFilter, limit: number): Promise<TriggerRow[]> {
  return await sql<TriggerRow[]>`
    select ${COLUMNS(sql)} from flow.trigger
    where wake_at is not null and next_due_at is not null and ${matching(sql, filter)}
    order by wake_at, trigger_id limit ${limit}`;
}

function matching(sql: Database["sql"], { path, name, kind, enabled, visible }: TriggerFilter) {
  return sql`true
    ${path === undefined ? sql`` : sql`and path = ${path}`}
    ${name === undefined ? sql`` : sql`and name = ${name}`}
    ${kind === undefined ? sql`` : sql`and kind = ${kind}`}
    ${enabled === undefined ? sql`` : sql`and enabled = ${enabled}`}
    ${visible === undefined ? sql`` : sql`and ${pathFilter(sql, sql`path`, visible)}`}`;
}

/** The database's clock, milliseconds since 1970: schedules go by it on every server. */
export async function databaseNow({ sql }: Database): Promise<number> {
  const [row] = await sql<[{ now: Date }]>`select now()::timestamptz(3) as now`;
  return row.now.getTime();
}

/**
 * Enables a trigger. What a schedule would have done before is not missed: it counts from `countedFrom`. Undefined if it is not there; of one
 * that is enabled nothing changes.
 */
export async function enableTrigger(
  { sql }: Database,
  triggerId: string,
  { countedFrom, nextDueAt, wakeAt }: { countedFrom: number; nextDueAt: number | null; wakeAt: number | null },
): Promise<boolean | undefined> {
  const moment = (ms: number | null) => (ms === null ? null : new Date(ms));
  const [row] = await sql<{ changed: boolean }[]>`
    with enabled as (
      update flow.trigger set enabled = true, counted_from = ${moment(countedFrom)}, next_due_at = ${moment(nextDueAt)},
        wake_at = ${moment(wakeAt)}, taken_by = null, updated_at = now()
      where trigger_id = ${triggerId} and not enabled
      returning 1
    )
    select exists (select from enabled) as changed from flow.trigger where trigger_id = ${triggerId}`;
  return row?.changed;
}

/** Disables a trigger; what it has queued is skipped. Undefined if it is not there; of one that is disabled nothing changes. */
export async function disableTrigger({ sql }: Database, triggerId: string): Promise<boolean | undefined> {
  const [row] = await sql<{ changed: boolean }[]>`
    with disabled as (
      update flow.trigger set enabled = false, next_due_at = null, wake_at = null, taken_by = null, updated_at = now()
      where trigger_id = ${triggerId} and enabled
      returning trigger_id
    ), unqueued as (
      update flow.trigger_fire as f set status = 'skipped', wake_at = null, input = null, reason = 'The trigger was disabled'
      from disabled where f.trigger_id = disabled.trigger_id and f.status = 'queued'
    )
    select exists (select from disabled) as changed from flow.trigger where trigger_id = ${triggerId}`;
  return row?.changed;
}
