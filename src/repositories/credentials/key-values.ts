import type { Database, Transaction } from "../database/database.ts";

/** A value by bucket and key that has not expired. */
export interface TransientValue {
  value: Uint8Array;
  revision: number;
}

/** What is written. */
export interface NewTransientValue {
  bucket: string;
  key: string;
  value: Uint8Array;
  /** Milliseconds until it expires, by the database's clock; null: never. */
  ttlMs: number | null;
}

/** The value that is there and has not expired, or undefined. */
export async function findTransient(
  { sql }: Database | Transaction,
  bucket: string,
  key: string,
): Promise<TransientValue | undefined> {
  const [row] = await sql<{ value: Uint8Array; revision: string }[]>`
    select value, revision from flow.transient
    where bucket = ${bucket} and key = ${key} and (expires_at is null or expires_at > clock_timestamp())`;
  return row && { value: row.value, revision: Number(row.revision) };
}

/** Writes the value, whatever was there; gives its revision. */
export async function putTransient({ sql }: Database | Transaction, entry: NewTransientValue): Promise<number> {
  const { bucket, key, value, ttlMs } = entry;
  const [row] = await sql<{ revision: string }[]>`
    insert into flow.transient as present (bucket, key, value, revision, expires_at)
    values (${bucket}, ${key}, ${value}, ${firstRevision(sql)}, ${expiry(sql, ttlMs)})
    on conflict (bucket, key) do update set
      value = excluded.value,
      revision = greatest(present.revision + 1, excluded.revision),
      expires_at = excluded.expires_at,
      updated_at = now()
    returning revision`;
  if (row === undefined) throw new Error("an upsert into flow.transient returned no row");
  return Number(row.revision);
}

/** Writes the value where there is none, or only one that has expired; gives its revision, or undefined when one is there. */
export async function insertTransient(
  { sql }: Database | Transaction,
  entry: NewTransientValue,
): Promise<number | undefined> {
  const { bucket, key, value, ttlMs } = entry;
  const [row] = await sql<{ revision: string }[]>`
    insert into flow.transient as present (bucket, key, value, revision, expires_at)
    values (${bucket}, ${key}, ${value}, ${firstRevision(sql)}, ${expiry(sql, ttlMs)})
    on conflict (bucket, key) do update set
      value = excluded.value,
      revision = greatest(present.revision + 1, excluded.revision),
      expires_at = excluded.expires_at,
      created_at = now(),
      updated_at = now()
    where present.expires_at <= clock_timestamp()
    returning revision`;
  return row && Number(row.revision);
}

/** Writes the value where the live one has this revision; gives the new one, or undefined when it does not. */
export async function updateTransient(
  { sql }: Database | Transaction,
  entry: NewTransientValue,
  revision: number,
): Promise<number | undefined> {
  const { bucket, key, value, ttlMs } = entry;
  const [row] = await sql<{ revision: string }[]>`
    update flow.transient set
      value = ${value},
      revision = greatest(revision + 1, ${firstRevision(sql)}),
      expires_at = ${expiry(sql, ttlMs)},
      updated_at = now()
    where bucket = ${bucket} and key = ${key} and revision = ${revision}
      and (expires_at is null or expires_at > clock_timestamp())
    returning revision`;
  return row && Number(row.revision);
}

/** Deletes the value where there is one. */
export async function deleteTransient({ sql }: Database | Transaction, bucket: string, key: string): Promise<void> {
  await sql`delete from flow.transient where bucket = ${bucket} and key = ${key}`;
}

/**
 * Deletes at most `limit` expired values, the oldest first; gives how many. Fewer than `limit`: no more are left, or another
 * process deletes them now.
 */
export async function deleteExpiredTransients({ sql }: Database | Transaction, limit: number): Promise<number> {
  const deleted = await sql`
    with expired as materialized (
      select bucket, key from flow.transient
      where expires_at <= clock_timestamp()
      order by expires_at
      limit ${limit}
      for update skip locked
    )
    delete from flow.transient using expired
    where transient.bucket = expired.bucket and transient.key = expired.key`;
  return deleted.count;
}

type Tagged = (Database | Transaction)["sql"];

/**
 * Revisions begin at the microseconds of the database's clock, not at 1: a revision that was read before a value was deleted
 * must not match the value that came after it. Below 2^53 until the year 2255.
 */
function firstRevision(sql: Tagged) {
  return sql`(extract(epoch from clock_timestamp()) * 1000000)::bigint`;
}

function expiry(sql: Tagged, ttlMs: number | null) {
  return sql`clock_timestamp() + ${ttlMs}::float8 * interval '1 millisecond'`;
}
