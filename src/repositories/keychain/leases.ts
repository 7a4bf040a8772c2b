import { and, sql as built, eq, isNull } from "drizzle-orm";
import type { Database } from "../database/database.ts";
import { keychainLease } from "../tables/secret.ts";

/**
 * The right to resolve or renew an entry, one holder at a time across all servers. A row without a message is a lease until
 * `expires_at`; a row with one is a failure that is reported until then.
 */

/** The answer to a request for the lease. */
export type LeaseOutcome =
  | { status: "granted" }
  /** The entry is live. */
  | { status: "set" }
  | { status: "failed"; message: string }
  | { status: "held"; holder: string | undefined };

/** The requesting holder, and for how many milliseconds. */
export interface LeaseQuery {
  holder: string;
  leaseMs: number;
}

/** Gives the lease when the entry is not live and the lease is free, or to its holder. */
export async function askKeychainLease(
  database: Database,
  cacheKey: string,
  { holder, leaseMs }: LeaseQuery,
): Promise<LeaseOutcome> {
  const { sql } = database;
  const [row] = await sql<[{ isLive: boolean; isTaken: boolean; holder: string | null; message: string | null }]>`
    with live as materialized (
      select from flow.keychain where cache_key = ${cacheKey} and expires_at > clock_timestamp()
    ), taken as (
      insert into flow.keychain_lease as held (cache_key, holder, expires_at)
      select ${cacheKey}, ${holder}, clock_timestamp() + ${leaseMs}::float8 * interval '1 millisecond'
      where not exists (select from live)
      on conflict (cache_key) do update set
        holder = excluded.holder, expires_at = excluded.expires_at, message = null
      where held.expires_at <= clock_timestamp() or (held.holder = excluded.holder and held.message is null)
      returning true
    )
    select exists (select from live) as "isLive", exists (select from taken) as "isTaken", l.holder, l.message
    from (values (1)) one
    left join flow.keychain_lease l on l.cache_key = ${cacheKey} and l.expires_at > clock_timestamp()`;
  if (row.isTaken) return await confirmed(database, cacheKey, holder);
  if (row.isLive) return { status: "set" };
  if (row.message !== null) return { status: "failed", message: row.message };
  return { status: "held", holder: row.holder ?? undefined };
}

/**
 * The statement above looks at the entry as it was when it began, and at the lease as it is after waiting for its row. A holder
 * that has set the entry in between has ended its lease: another look, which sees that, and no second renewal.
 */
async function confirmed({ sql }: Database, cacheKey: string, holder: string): Promise<LeaseOutcome> {
  const { count } = await sql`
    delete from flow.keychain_lease where cache_key = ${cacheKey} and holder = ${holder} and exists (
      select from flow.keychain where cache_key = ${cacheKey} and expires_at > clock_timestamp()
    )`;
  return { status: count > 0 ? "set" : "granted" };
}

/** Ends a lease with an error message that is kept for `keepMs`; false if another holder has the lease by now. */
export async function failKeychainLease(
  { db }: Database,
  cacheKey: string,
  { holder, message, keepMs }: { holder: string; message: string; keepMs: number },
): Promise<boolean> {
  const isOwn = and(
    eq(keychainLease.cacheKey, cacheKey),
    eq(keychainLease.holder, holder),
    isNull(keychainLease.message),
  );
  const rows = await db
    .update(keychainLease)
    .set({ message, expiresAt: built`clock_timestamp() + ${keepMs}::float8 * interval '1 millisecond'` })
    .where(isOwn)
    .returning({ cacheKey: keychainLease.cacheKey });
  return rows.length > 0;
}

/** Deletes at most `limit` leases and failures that are over; gives how many. */
export async function deleteKeychainLeases({ sql }: Database, limit: number): Promise<number> {
  const { count } = await sql`
    delete from flow.keychain_lease where cache_key in (
      select cache_key from flow.keychain_lease where expires_at <= clock_timestamp() limit ${limit} for update skip locked
    )`;
  return count;
}
