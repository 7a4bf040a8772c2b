import { and, sql as built, eq, gt, isNull, lte, or } from "drizzle-orm";
import type { Database, Transaction } from "../database/database.ts";
import { transient } from "../tables/runtime.ts";

/** A value by bucket and key that has not expired. */
export type TransientValue = Pick<typeof transient.$inferSelect, "value" | "revision">;

/** A value to write. */
export interface NewTransientValue extends Pick<typeof transient.$inferSelect, "bucket" | "key" | "value"> {
  /** Milliseconds until it expires, by the database's clock; null: never. */
  ttlMs: number | null;
}

/** The value that is there and has not expired, or undefined. */
export async function findTransient(
  { db }: Database | Transaction,
  bucket: string,
  key: string,
): Promise<TransientValue | undefined> {
  const [row] = await db
    .select({ value: transient.value, revision: transient.revision })
    .from(transient)
    .where(and(isAt(bucket, key), IS_LIVE));
  return row;
}

/** Writes the value, whatever was there; gives its revision. */
export async function putTransient({ db }: Database | Transaction, entry: NewTransientValue): Promise<number> {
  const [row] = await db
    .insert(transient)
    .values(rowOf(entry))
    .onConflictDoUpdate({
      target: [transient.bucket, transient.key],
      set: { ...REPLACED, updatedAt: built`now()` },
    })
    .returning({ revision: transient.revision });
  if (row === undefined) throw new Error("an upsert into flow.transient returned no row");
  return row.revision;
}

/** Inserts the value unless a live one exists; returns its revision, or undefined if one exists. */
export async function insertTransient(
  { db }: Database | Transaction,
  entry: NewTransientValue,
): Promise<number | undefined> {
  const [row] = await db
    .insert(transient)
    .values(rowOf(entry))
    .onConflictDoUpdate({
      target: [transient.bucket, transient.key],
      set: { ...REPLACED, createdAt: built`now()`, updatedAt: built`now()` },
      setWhere: lte(transient.expiresAt, CLOCK),
    })
    .returning({ revision: transient.revision });
  return row?.revision;
}

/** Writes the value where the live one has this revision; gives the new one, or undefined when it does not. */
export async function updateTransient(
  { db }: Database | Transaction,
  entry: NewTransientValue,
  revision: number,
): Promise<number | undefined> {
  const [row] = await db
    .update(transient)
    .set({
      value: entry.value,
      revision: built`greatest(${transient.revision} + 1, ${FIRST_REVISION})`,
      expiresAt: expiry(entry.ttlMs),
      updatedAt: built`now()`,
    })
    .where(and(isAt(entry.bucket, entry.key), eq(transient.revision, revision), IS_LIVE))
    .returning({ revision: transient.revision });
  return row?.revision;
}

/** Deletes the value where there is one. */
export async function deleteTransient({ db }: Database | Transaction, bucket: string, key: string): Promise<void> {
  await db.delete(transient).where(isAt(bucket, key));
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

const CLOCK = built`clock_timestamp()`;
const IS_LIVE = or(isNull(transient.expiresAt), gt(transient.expiresAt, CLOCK));

function isAt(bucket: string, key: string) {
  return and(eq(transient.bucket, bucket), eq(transient.key, key));
}

/**
 * Revisions begin at the microseconds of the database's clock, not at 1: a revision that was read before a value was deleted
 * must not match the value that came after it. Below 2^53 until the year 2255.
 */
const FIRST_REVISION = built`(extract(epoch from clock_timestamp()) * 1000000)::bigint`;

function expiry(ttlMs: number | null) {
  return built`clock_timestamp() + ${ttlMs}::float8 * interval '1 millisecond'`;
}

function rowOf({ bucket, key, value, ttlMs }: NewTransientValue) {
  return { bucket, key, value, revision: FIRST_REVISION, expiresAt: expiry(ttlMs) };
}

/** Columns to update when the inserted value replaces an existing one. */
const REPLACED = {
  value: built`excluded.value`,
  revision: built`greatest(${transient.revision} + 1, excluded.revision)`,
  expiresAt: built`excluded.expires_at`,
};
