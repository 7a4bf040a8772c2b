import type { Database } from "../../../src/repositories/database/database.ts";
import { until } from "./until.ts";

/** A place in the database at which statements wait. */
export interface EventGate {
  /** Resolves when a statement waits there; gives its backend. */
  reached(): Promise<number>;
  /** Ends the backends that wait there: what they were writing is undone. */
  cutOff(): Promise<void>;
  /** Lets them go on, and everything after them. */
  open(): Promise<void>;
}

/** Key of the advisory lock; each test has a database of its own. */
const KEY = 4_711;

/** Holds back every statement that writes an event of this type: {@link closeGate}. */
export async function closeEventGate(database: Database, eventType: string): Promise<EventGate> {
  return await closeGate(database, "insert on flow.event_log", `new.body like '%"type":"${eventType}"%'`);
}

/**
 * Holds back every statement that changes such a row, so that a process can be killed between two commits that otherwise follow each
 * other within a millisecond. It is real PostgreSQL that waits, in a trigger.
 *
 * @param change `insert on flow.event_log`
 * @param when SQL about the row, as `new`.
 */
export async function closeGate({ sql }: Database, change: string, when: string): Promise<EventGate> {
  await sql.unsafe(`
    create or replace function flow.test_gate() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock_shared(${KEY}); return new; end $$;
    create or replace trigger test_gate before ${change}
      for each row when (${when}) execute function flow.test_gate()`);
  const holder = await sql.reserve();
  await holder`select pg_advisory_lock(${KEY})`;
  const waiting = async () =>
    sql<{ pid: number }[]>`
      select pid from pg_locks where locktype = 'advisory' and objid = ${KEY} and not granted
        and database = (select oid from pg_database where datname = current_database())`;
  return {
    reached: () => until(`${change} where ${when} is about to be written`, async () => (await waiting())[0]?.pid),
    async cutOff() {
      for (const { pid } of await waiting()) await sql`select pg_terminate_backend(${pid}, 5000)`;
    },
    async open() {
      await holder`select pg_advisory_unlock(${KEY})`;
      holder.release();
    },
  };
}
