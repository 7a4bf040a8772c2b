import type { Database } from "../database/database.ts";
import type { TriggerRow } from "./triggers.ts";

/** A schedule whose time has come, and the database's clock at that moment. */
export interface DueTrigger extends TriggerRow {
  now: Date;
}

/**
 * Takes schedules whose time has come by the database's clock, the most overdue first, so that no other server takes them for this long.
 * Rows that another server is taking at this moment are passed over, not waited for.
 */
export async function takeDueTriggers(
  { sql }: Database,
  { takenBy, leaseMs, limit }: { takenBy: string; leaseMs: number; limit: number },
): Promise<DueTrigger[]> {
  return await sql<DueTrigger[]>`
    with due as (
      select trigger_id from flow.trigger where wake_at <= now() order by wake_at limit ${limit}
      for update skip locked
    )
    update flow.trigger as t set taken_by = ${takenBy}, wake_at = now() + ${leaseMs}::float8 * interval '1 millisecond'
    from due where t.trigger_id = due.trigger_id
    returning t.trigger_id as "triggerId", t.document, t.path, t.name, t.kind, t.definition, t.version, t.user_id as "userId",
      t.address, t.enabled, t.active_since as "activeSince", t.counted_from as "countedFrom",
      t.next_due_at as "nextDueAt", t.last_fire_at as "lastFireAt", t.created_at as "createdAt",
      now()::timestamptz(3) as now`;
}

/** What was decided about a schedule that was taken: where it goes on. Milliseconds since 1970. */
export interface AdvancedTrigger {
  triggerId: string;
  countedFrom: number;
  /** Null: it has no further time. */
  nextDueAt: number | null;
  wakeAt: number | null;
}

/** A fire of a schedule. */
export interface ScheduledFire {
  fireId: string;
  triggerId: string;
  key: string;
  dueAt: number;
  status: "queued" | "missed" | "failed";
  reason: string | null;
  input: string | null;
  waits: boolean;
}

/**
 * Writes what was decided about schedules that this server has taken, with their fires: both or neither, and only of those that it still
 * has. A fire that is there stays as it is. Queued ones are this server's for `leaseMs`. Gives the ids of the fires that were written.
 */
export async function advanceTriggers(
  { sql }: Database,
  { takenBy, leaseMs }: { takenBy: string; leaseMs: number },
  triggers: readonly AdvancedTrigger[],
  fires: readonly ScheduledFire[],
): Promise<string[]> {
  const of = <T, R>(rows: readonly T[], get: (row: T) => R) => rows.map(get);
  const moments = (values: readonly (number | null)[]) =>
    values.map((ms) => (ms === null ? null : new Date(ms).toISOString()));
  const [row] = await sql<[{ ids: string[] }]>`
    with told as (
      select * from unnest(
        ${of(triggers, (one) => one.triggerId)}::bigint[],
        ${moments(of(triggers, (one) => one.countedFrom))}::text[]::timestamptz[],
        ${moments(of(triggers, (one) => one.nextDueAt))}::text[]::timestamptz[],
        ${moments(of(triggers, (one) => one.wakeAt))}::text[]::timestamptz[]
      ) as t (trigger_id, counted_from, next_due_at, wake_at)
    ), moved as (
      update flow.trigger as t set counted_from = told.counted_from, next_due_at = told.next_due_at, wake_at = told.wake_at,
        taken_by = null
      from told where t.trigger_id = told.trigger_id and t.taken_by = ${takenBy}
      returning t.trigger_id
    ), written as (
      insert into flow.trigger_fire (fire_id, trigger_id, key, due_at, status, reason, input, waits, wake_at)
      select f.fire_id, f.trigger_id, f.key, f.due_at, f.status, f.reason, f.input::json, f.waits,
        case f.status when 'queued' then now() + ${leaseMs}::float8 * interval '1 millisecond' end
      from unnest(
        ${of(fires, (one) => one.fireId)}::bigint[], ${of(fires, (one) => one.triggerId)}::bigint[],
        ${of(fires, (one) => one.key)}::text[], ${moments(of(fires, (one) => one.dueAt))}::text[]::timestamptz[],
        ${of(fires, (one) => one.status)}::text[], ${of(fires, (one) => one.reason)}::text[],
        ${of(fires, (one) => one.input)}::text[], ${of(fires, (one) => String(one.waits))}::text[]::boolean[]
      ) as f (fire_id, trigger_id, key, due_at, status, reason, input, waits)
      where f.trigger_id in (select trigger_id from moved)
      on conflict (trigger_id, key) do nothing
      returning fire_id
    )
    select array(select fire_id::text from written) as ids`;
  return row.ids;
}
