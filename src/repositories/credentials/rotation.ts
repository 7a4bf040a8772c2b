import type { Database } from "../database/database.ts";
import { credential, keychain } from "../tables/secret.ts";

/** Tables whose `data_encrypted` names a key. */
export const ENCRYPTED_TABLES = ["credential", "keychain"] as const;
/** One of {@link ENCRYPTED_TABLES}. */
export type EncryptedTable = (typeof ENCRYPTED_TABLES)[number];

/** An encrypted value, and what names its row. */
export interface EncryptedRow {
  /** The row's key as text: an id, a cache key. */
  key: string;
  name: string;
  envelope: string;
}

const COLUMNS = {
  credential: { key: credential.id.name, name: credential.name.name },
  keychain: { key: keychain.cacheKey.name, name: keychain.keychainName.name },
} as const satisfies Record<EncryptedTable, { key: string; name: string }>;

/** The key's id in an envelope stands at its beginning: of a long value no more than that is read. */
const HEAD_CHARS = 80;

/** Rows that another key than `keyId` has encrypted, in the order of their keys, at most `limit` after the key `after`. */
export async function findOtherwiseEncrypted(
  { sql }: Database,
  table: EncryptedTable,
  { keyId, after, limit }: { keyId: string; after: string | undefined; limit: number },
): Promise<EncryptedRow[]> {
  const { key, name } = COLUMNS[table];
  const type = sql.unsafe(table === "credential" ? "bigint" : "text");
  return await sql<EncryptedRow[]>`
    select ${sql(key)}::text as key, ${sql(name)} as name, data_encrypted as envelope
    from ${sql(`flow.${table}`)}
    where split_part(substr(data_encrypted, 1, ${HEAD_CHARS}), '.', 2) <> ${keyId}
    ${after === undefined ? sql`` : sql`and ${sql(key)} > ${after}::${type}`}
    order by ${sql(key)}
    limit ${limit}`;
}

/** How many rows of all tables another key than `keyId` has encrypted. */
export async function countOtherwiseEncrypted({ sql }: Database, keyId: string): Promise<number> {
  const other = sql`split_part(substr(data_encrypted, 1, ${HEAD_CHARS}), '.', 2) <> ${keyId}`;
  const [row] = await sql<{ count: string }[]>`
    select (select count(*) from flow.credential where ${other}) + (select count(*) from flow.keychain where ${other}) as count`;
  return Number(row?.count ?? 0);
}

/** Keys of encrypted values that are not among `keyIds`, with the number of values. */
export async function countUnknownKeys(
  { sql }: Database,
  keyIds: readonly string[],
): Promise<{ keyId: string; count: number }[]> {
  const rows = await sql<{ keyId: string; count: string }[]>`
    select "keyId", count(*) as count from (
      select split_part(substr(data_encrypted, 1, ${HEAD_CHARS}), '.', 2) as "keyId" from flow.credential
      union all
      select split_part(substr(data_encrypted, 1, ${HEAD_CHARS}), '.', 2) from flow.keychain
    ) used
    where "keyId" <> all (${[...keyIds]}::text[])
    group by 1 order by 1`;
  return rows.map(({ keyId, count }) => ({ keyId, count: Number(count) }));
}

/**
 * Replaces envelopes by those made from them; a value that was replaced meanwhile stays. Rows that another process has locked are
 * skipped, so that two servers never wait for each other. Gives how many were written.
 */
export async function replaceEnvelopes(
  { sql }: Database,
  table: EncryptedTable,
  changes: readonly { key: string; from: string; to: string }[],
): Promise<number> {
  if (changes.length === 0) return 0;
  const key = sql(COLUMNS[table].key);
  const rows = JSON.stringify(changes);
  const written = await sql`
    with change as (select * from jsonb_to_recordset(${rows}::text::jsonb) as change (key text, "from" text, "to" text)),
    held as (
      select ${key} as held_key, change."to" from ${sql(`flow.${table}`)} t
      join change on change.key = ${key}::text and change."from" = data_encrypted
      for update of t skip locked
    )
    update ${sql(`flow.${table}`)} set data_encrypted = held."to" from held where ${key} = held_key`;
  return written.count;
}
