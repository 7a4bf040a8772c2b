import { and, asc, eq, gt } from "drizzle-orm";
import type { SelectResultFields } from "drizzle-orm/query-builders/select.types";
import type { ISql } from "postgres";
import type { KeychainCacheType, KeychainScope } from "../../schema/api/keychain.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { auditInsert } from "../access/audit.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { keychain } from "../tables/secret.ts";

/**
 * Entries of the keychain (interface specification, Keychain). A local or shared entry belongs to an execution: an execution
 * that has ended has no entries, even before its rows are deleted. All times use the database's clock. The statement that reads
 * or changes an entry also writes the audit row.
 */

const COLUMNS = columnsOf(keychain, [
  "dataEncrypted",
  "credentialType",
  "cacheType",
  "schema",
  "expiresAt",
  "accessedAt",
  "accessCount",
  "autoRenew",
]);

/** An entry as it was found, still encrypted. `accessedAt` and `accessCount` count this read. */
export interface KeychainRow extends RowOf<typeof COLUMNS> {
  /** Seconds that are left; 0 once it has expired. */
  ttlSeconds: number;
  isExpired: boolean;
}

/** The execution that owns a local or shared entry: the requesting one, or the root of its tree. */
export interface KeychainOwner {
  executionId: string;
  /** Of the execution that asks. */
  parentExecutionId: string | null;
  /** It has not ended. */
  isOpen: boolean;
}

/** The result of a read. */
export interface KeychainRead {
  /** Undefined for a global entry, and for an unknown execution. */
  ownerId: string | undefined;
  row: KeychainRow | undefined;
}

/** Reads a global entry and counts the reads, one for each row of the audit log, in one statement. */
export async function readGlobalEntry(
  { sql }: Database,
  cacheKey: string,
  reads: readonly AuditEntry[],
): Promise<KeychainRead> {
  const [row] = await sql<KeychainRow[]>`
    with read as (
      update flow.keychain k set ${counted(sql, reads.length)} where cache_key = ${cacheKey} returning ${found(sql)}
    ), audited as (${auditInsert(sql, reads, decrypted(sql))})
    select * from read`;
  return { ownerId: undefined, row };
}

/**
 * Reads a local or shared entry, whose key is `prefix` and the owner's id, and counts the reads: one statement finds the owner
 * too. Nothing is found when the owner has ended.
 */
export async function readOwnedEntry(
  { sql }: Database,
  { prefix, scope, executionId }: { prefix: string; scope: KeychainScope; executionId: string },
  reads: readonly AuditEntry[],
): Promise<KeychainRead> {
  const [row] = await sql<({ ownerId: string; isFound: boolean | null } & KeychainRow)[]>`
    with owner as materialized (${ownerOf(sql, scope, executionId)}), read as (
      update flow.keychain k set ${counted(sql, reads.length)}
      from owner
      where k.cache_key = ${prefix}::text || owner."executionId" and owner."isOpen"
      returning true as "isFound", ${found(sql)}
    ), audited as (${auditInsert(sql, reads, decrypted(sql))})
    select owner."executionId" as "ownerId", read.* from owner left join read on true`;
  if (row === undefined) return { ownerId: undefined, row: undefined };
  const { ownerId, isFound, ...rest } = row;
  return { ownerId, row: isFound === true ? rest : undefined };
}

/** The execution that owns the entry; undefined for an unknown one. */
export async function findKeychainOwner(
  { sql }: Database,
  scope: KeychainScope,
  executionId: string,
): Promise<KeychainOwner | undefined> {
  const [row] = await sql<KeychainOwner[]>`${ownerOf(sql, scope, executionId)}`;
  return row;
}

/** An entry to write, encrypted. */
export interface NewKeychainRow {
  cacheKey: string;
  name: string;
  catalogId: string;
  scope: KeychainScope;
  /** Null for a global entry. */
  ownerId: string | null;
  parentExecutionId: string | null;
  credentialType: string;
  cacheType: KeychainCacheType;
  dataEncrypted: string;
  schema: JsonObject | null;
  /** When it expires: at a moment, or so many seconds from now. */
  expiresAt: Date | null;
  ttlSeconds: number;
  autoRenew: boolean;
}

/** When an entry expires. */
export interface KeychainExpiry {
  expiresAt: Date;
  ttlSeconds: number;
}

/**
 * Writes or replaces an entry, and ends the lease of the process that resolved it. A renewed entry goes on counting its
 * reads. Undefined, and nothing is written, when its owner has ended.
 */
export async function saveKeychainEntry(
  { sql }: Database,
  row: NewKeychainRow,
  audit: AuditEntry,
): Promise<KeychainExpiry | undefined> {
  const [saved] = await sql<KeychainExpiry[]>`
    with ended as (delete from flow.keychain_lease where cache_key = ${row.cacheKey}), written as (
    insert into flow.keychain as k (cache_key, keychain_name, catalog_id, credential_type, cache_type, scope_type,
      execution_id, parent_execution_id, data_encrypted, schema, expires_at, auto_renew)
    select ${row.cacheKey}, ${row.name}, ${row.catalogId}::bigint, ${row.credentialType}, ${row.cacheType}, ${row.scope},
      ${row.ownerId}::bigint, ${row.parentExecutionId}::bigint, ${row.dataEncrypted},
      ${row.schema === null ? null : sql.json(row.schema)}::jsonb,
      coalesce(${row.expiresAt}::timestamptz, clock_timestamp() + ${row.ttlSeconds}::float8 * interval '1 second'),
      ${row.autoRenew}::boolean
    where ${row.ownerId}::bigint is null
      or exists (select from flow.execution where execution_id = ${row.ownerId} and ended_at is null)
    on conflict (cache_key) do update set
      credential_type = excluded.credential_type, cache_type = excluded.cache_type,
      parent_execution_id = excluded.parent_execution_id, data_encrypted = excluded.data_encrypted,
      schema = excluded.schema, expires_at = excluded.expires_at, auto_renew = excluded.auto_renew, accessed_at = now()
    returning expires_at as "expiresAt", ${secondsLeft(sql)} as "ttlSeconds"
    ), audited as (${auditInsert(sql, [audit], sql`exists (select from written)`)})
    select * from written`;
  return saved;
}

/** Deletes an entry; false when there was none. */
export async function deleteKeychainEntry({ sql }: Database, cacheKey: string, audit: AuditEntry): Promise<boolean> {
  const { count } = await sql`
    with gone as (delete from flow.keychain where cache_key = ${cacheKey} returning 1),
      audited as (${auditInsert(sql, [audit], sql`exists (select from gone)`)})
    select from gone`;
  return count > 0;
}

const LISTED = {
  name: keychain.keychainName,
  cacheKey: keychain.cacheKey,
  scope: keychain.scopeType,
  credentialType: keychain.credentialType,
  expiresAt: keychain.expiresAt,
  autoRenew: keychain.autoRenew,
  accessCount: keychain.accessCount,
};

/** An entry of a list. */
export type KeychainListed = SelectResultFields<typeof LISTED>;

/** At most `limit` entries of a catalog entry after a key, in the order of keys. */
export async function listKeychainEntries(
  { db }: Database,
  catalogId: string,
  limit: number,
  after = "",
): Promise<KeychainListed[]> {
  return await db
    .select(LISTED)
    .from(keychain)
    .where(and(eq(keychain.catalogId, catalogId), gt(keychain.cacheKey, after)))
    .orderBy(asc(keychain.cacheKey))
    .limit(limit);
}

/** A read counts as a use, also that of an expired entry: entries without use are deleted (see `cleanup.ts`). */
function counted(sql: ISql, reads: number) {
  return sql`accessed_at = now(), access_count = least(k.access_count::bigint + ${reads}::int, 2147483647)`;
}

function found(sql: ISql) {
  return sql`${COLUMNS(sql, "k")}, ${secondsLeft(sql)} as "ttlSeconds", k.expires_at <= clock_timestamp() as "isExpired"`;
}

/** Of an expired entry only the request that renews it is returned. */
function decrypted(sql: ISql): ReturnType<ISql> {
  return sql`exists (select from read where not "isExpired" or "autoRenew")`;
}

function secondsLeft(sql: ISql) {
  return sql`greatest(0, round(extract(epoch from k.expires_at - clock_timestamp())))::float8`;
}

function ownerOf(sql: ISql, scope: KeychainScope, executionId: string) {
  return sql`
    select owner.execution_id as "executionId", asker.parent_execution_id as "parentExecutionId",
      owner.ended_at is null as "isOpen"
    from flow.execution asker
    join flow.execution owner
      on owner.execution_id = ${scope === "shared" ? sql`asker.root_execution_id` : sql`asker.execution_id`}
    where asker.execution_id = ${executionId}`;
}
