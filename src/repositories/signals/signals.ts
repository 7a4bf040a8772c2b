import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { signal } from "../tables/wait.ts";

const COLUMNS = columnsOf(signal, [
  "signalId",
  "name",
  "key",
  "senderId",
  "data",
  "sentBy",
  "userId",
  "state",
  "reached",
  "walkedTo",
  "createdAt",
]);

/** A signal that was sent to everyone who waits for it. */
export type SignalRow = RowOf<typeof COLUMNS>;

/** A signal to be written. */
interface NewSignal extends Pick<SignalRow, "signalId" | "name" | "key" | "senderId" | "data" | "sentBy" | "userId"> {
  /** How long it is kept if it reaches none. */
  keepMs: number;
}

/**
 * Writes a signal, which this server works on for `leaseMs`; its sender's name for it is known for `knownMs`. Undefined: it was sent before
 * under that name. `full`: as many of its name and key as may be, `openMax`, are on their way or kept.
 */
export async function insertSignal(
  { sql }: Database,
  { signalId, name, key, senderId, data, sentBy, userId, keepMs }: NewSignal,
  { leaseMs, knownMs, openMax }: { leaseMs: number; knownMs: number; openMax: number },
): Promise<SignalRow | "full" | undefined> {
  const after = (ms: number) => sql`now() + ${ms}::float8 * interval '1 millisecond'`;
  const [row] = await sql<SignalRow[]>`
    insert into flow.signal (signal_id, name, key, sender_id, data, sent_by, user_id, lease_expires_at, kept_until, expires_at)
    select ${signalId}, ${name}, ${key}, ${senderId}, ${sql.json(data)}, ${sentBy}, ${userId}, ${after(leaseMs)}, ${after(keepMs)},
      ${after(senderId === null ? keepMs : knownMs)}
    where (
      select count(*) from (
        select from flow.signal where name = ${name} and key = ${key} and state <> 'done' limit ${openMax}
      ) as open
    ) < ${openMax}
    on conflict (name, key, sender_id) where sender_id is not null do nothing
    returning ${COLUMNS(sql)}`;
  if (row !== undefined || senderId === null) return row ?? "full";
  const before = await sql`
    select from flow.signal where name = ${name} and key = ${key} and sender_id = ${senderId}`;
  return before.length > 0 ? undefined : "full";
}

/** Takes a signal that is on its way and on which no server works, the oldest, for this long. Undefined if not found. */
export async function takeSignal({ sql }: Database, leaseMs: number): Promise<SignalRow | undefined> {
  const [row] = await sql<SignalRow[]>`
    update flow.signal set lease_expires_at = now() + ${leaseMs}::float8 * interval '1 millisecond'
    where signal_id = (
      select signal_id from flow.signal where state = 'sending' and (lease_expires_at <= now()) is not false
      order by signal_id limit 1
      for update skip locked
    )
    returning ${COLUMNS(sql)}`;
  return row;
}

/** The next executions that wait for a signal, behind `after`, by id. */
export async function nextWaiters(
  { sql }: Database,
  { name, key, walkedTo }: Pick<SignalRow, "name" | "key" | "walkedTo">,
  limit: number,
): Promise<{ executionId: string; path: string }[]> {
  return await sql<{ executionId: string; path: string }[]>`
    select w.execution_id as "executionId", e.path
    from (
      select distinct execution_id from flow.wait
      where name = ${name} and key = ${key} and execution_id > ${walkedTo ?? "0"}
      order by execution_id limit ${limit}
    ) as w join flow.execution as e using (execution_id)
    order by w.execution_id`;
}

/** How many waits for a signal are behind the place to which it has come; at most `limit`. */
export async function countWaitersLeft(
  { sql }: Database,
  { name, key, walkedTo }: Pick<SignalRow, "name" | "key" | "walkedTo">,
  limit: number,
): Promise<number> {
  const [row] = await sql<{ count: string }[]>`
    select count(*) as count from (
      select from flow.wait where name = ${name} and key = ${key} and execution_id > ${walkedTo ?? "0"} limit ${limit}
    ) as w`;
  return Number(row?.count ?? 0);
}

/** Notes how far a signal has come, and keeps it for this server. The numbers after that; undefined: another server was faster. */
export async function noteWalk(
  { sql }: Database,
  signalId: string,
  { walkedTo, reached, leaseMs }: { walkedTo: string; reached: number; leaseMs: number },
): Promise<SignalRow | undefined> {
  const [row] = await sql<SignalRow[]>`
    update flow.signal set walked_to = ${walkedTo}, reached = reached + ${reached},
      lease_expires_at = now() + ${leaseMs}::float8 * interval '1 millisecond'
    where signal_id = ${signalId} and state = 'sending' and (walked_to >= ${walkedTo}) is not true
    returning ${COLUMNS(sql)}`;
  return row;
}

/** No server works on the signal: another one may go on at once. */
export async function releaseSignal({ sql }: Database, signalId: string): Promise<void> {
  await sql`update flow.signal set lease_expires_at = null where signal_id = ${signalId} and state = 'sending'`;
}

const DONE =
  "state = 'done', data = null, taken_by = null, expires_at = case when sender_id is null then now() else expires_at end";

/** A signal has been everywhere: it is kept if it has reached none. Returns what has become of it. */
export async function endWalk(
  { sql }: Database,
  signalId: string,
): Promise<Pick<SignalRow, "state" | "reached"> | undefined> {
  const [row] = await sql<Pick<SignalRow, "state" | "reached">[]>`
    update flow.signal set
      state = case when is_kept then 'kept' else 'done' end,
      data = case when is_kept then data end,
      lease_expires_at = null,
      expires_at = case when is_kept or sender_id is not null then expires_at else now() end
    from (
      select signal_id as id, reached = 0 and kept_until > now() as is_kept from flow.signal where signal_id = ${signalId}
    ) as told
    where signal_id = told.id and state = 'sending'
    returning state, reached`;
  return row;
}

/** A wait for a signal that was not yet looked for signals that were kept. */
export interface NewWait {
  commandId: string;
  executionId: string;
  path: string;
  /** The place of its row: another one if it has changed. */
  place: string;
  /** Signals of its name and key that are kept, the oldest first. */
  kept: string[];
  /** A signal of its name and key is on its way: it may be kept after that. */
  isSent: boolean;
}

/** Waits for signals that were not yet looked for signals that were kept, at most `limit`, each with at most `keptMax` of these. */
export async function newWaits({ sql }: Database, limit: number, keptMax: number): Promise<NewWait[]> {
  return await sql<NewWait[]>`
    select w.command_id as "commandId", w.execution_id as "executionId", e.path, w.ctid::text as place,
      array(
        select s.signal_id from flow.signal as s
        where s.name = w.name and s.key = w.key and s.state <> 'done' and s.state = 'kept' and s.kept_until > now()
        order by s.signal_id limit ${keptMax}
      )::text[] as kept,
      exists (
        select from flow.signal as s
        where s.name = w.name and s.key = w.key and s.state <> 'done' and s.state = 'sending'
      ) as "isSent"
    from flow.wait as w join flow.execution as e using (execution_id)
    where not w.is_looked
    order by w.command_id limit ${limit}`;
}

/** These waits were looked for kept signals; not those that have changed since. */
export async function noteLooked({ sql }: Database, waits: readonly NewWait[]): Promise<void> {
  const ids = waits.map(({ commandId }) => commandId);
  const places = waits.map(({ place }) => place);
  await sql`
    update flow.wait as w set is_looked = true
    from unnest(${ids}::bigint[], ${places}::text[]) as seen (command_id, place)
    where w.command_id = seen.command_id and w.ctid = seen.place::tid and not w.is_looked`;
}

/** A kept signal, as one execution takes it. */
type TakenSignal = SignalRow & {
  /** Another execution had it before, whose server has not come to say what became of it. */
  before: string | null;
};

/** Gives a kept signal to one execution, so that no other takes it for this long. Undefined: another one has it, or it is gone. */
export async function takeKeptSignal(
  { sql }: Database,
  signalId: string,
  executionId: string,
  leaseMs: number,
): Promise<TakenSignal | undefined> {
  const [row] = await sql<TakenSignal[]>`
    update flow.signal set taken_by = ${executionId},
      lease_expires_at = now() + ${leaseMs}::float8 * interval '1 millisecond'
    from (
      select signal_id as id, taken_by as before from flow.signal
      where signal_id = ${signalId} and state = 'kept' and kept_until > now()
        and (taken_by is null or taken_by = ${executionId} or lease_expires_at <= now())
      for update
    ) as free
    where signal_id = free.id
    returning ${COLUMNS(sql)}, nullif(free.before, ${executionId}) as before`;
  return row;
}

/** A kept signal has reached an execution, or has not: then another one may take it. */
export async function endTaking({ sql }: Database, signalId: string, hasReached: boolean): Promise<void> {
  await sql`
    update flow.signal set ${hasReached ? sql.unsafe(`reached = 1, ${DONE}`) : sql`taken_by = null, lease_expires_at = null`}
    where signal_id = ${signalId} and state = 'kept'`;
}

/** Deletes signals of which nothing is needed any more, at most `limit`; returns how many. */
export async function deleteOldSignals({ sql }: Database, limit: number): Promise<number> {
  const rows = await sql`
    delete from flow.signal where signal_id in (
      select signal_id from flow.signal where expires_at <= now() and state <> 'sending' order by expires_at limit ${limit}
    )
    returning 1`;
  return rows.length;
}
