import { and, asc, sql as built, eq, getTableColumns, gt } from "drizzle-orm";
import type { ISql } from "postgres";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { auditInsert } from "../access/audit.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { type Page, type PageRequest, page } from "../database/page.ts";
import { credential } from "../tables/secret.ts";

const COLUMNS = columnsOf(credential, [
  "id",
  "name",
  "type",
  "description",
  "schema",
  "meta",
  "createdAt",
  "updatedAt",
]);

/** A credential without its data. */
export interface CredentialRow extends RowOf<typeof COLUMNS> {
  tags: string[];
}

/** With its data, encrypted. */
export interface EncryptedCredential extends CredentialRow {
  dataEncrypted: string;
}

/** A credential to write. */
export type NewCredential = Omit<EncryptedCredential, "createdAt" | "updatedAt">;

/** Which credential: by its name, or by the id that the text may be as well. */
export interface CredentialKey {
  name: string;
  /** Undefined for a text that can be no id. */
  id: string | undefined;
}

/** Which part of the list. The cursor is a name. */
export type CredentialsRequest = PageRequest<string> & { type?: string; tag?: string; q?: string };

/** A credential without its data, or undefined. */
export async function findCredential(
  { db }: Database,
  { name, id }: CredentialKey,
): Promise<CredentialRow | undefined> {
  const [row] = await db
    .select(LISTED)
    .from(credential)
    .where(id === undefined ? eq(credential.name, name) : eq(credential.id, id));
  return row;
}

/** A credential with its data, encrypted, or undefined. */
export async function readCredential({ sql }: Database, key: CredentialKey): Promise<EncryptedCredential | undefined> {
  const [row] = await sql<EncryptedCredential[]>`
    select ${columns(sql)}, data_encrypted as "dataEncrypted" from flow.credential where ${matches(sql, key)}`;
  return row;
}

/** The id of a credential; undefined if the name is unknown. */
export async function findCredentialId({ db }: Database, name: string): Promise<string | undefined> {
  const [row] = await db.select({ id: credential.id }).from(credential).where(eq(credential.name, name));
  return row?.id;
}

/** Writes a new credential; undefined when one of that name is there. */
export async function insertCredential(
  { sql }: Database,
  row: NewCredential,
  entry: AuditEntry,
): Promise<CredentialRow | undefined> {
  const [written] = await sql<CredentialRow[]>`
    with written as (
      insert into flow.credential (id, name, type, data_encrypted, schema, meta, tags, description)
      values (${row.id}, ${row.name}, ${row.type}, ${row.dataEncrypted}, ${json(sql, row.schema)}, ${json(sql, row.meta)},
        ${row.tags}::text[], ${row.description})
      on conflict (name) do nothing
      returning *
    ),
    told as (${auditInsert(sql, [entry], sql`exists (select from written)`)})
    select ${columns(sql)} from written`;
  return written;
}

/** Replaces everything but a credential's id, name and age; undefined if no credential has this id and name any more. */
export async function replaceCredential(
  { sql }: Database,
  row: NewCredential,
  entry: AuditEntry,
): Promise<CredentialRow | undefined> {
  const [written] = await sql<CredentialRow[]>`
    with written as (
      update flow.credential set
        type = ${row.type}, data_encrypted = ${row.dataEncrypted}, schema = ${json(sql, row.schema)},
        meta = ${json(sql, row.meta)}, tags = ${row.tags}::text[], description = ${row.description},
        updated_at = greatest(now(), created_at)
      where id = ${row.id} and name = ${row.name}
      returning *
    ),
    told as (${auditInsert(sql, [entry], sql`exists (select from written)`)})
    select ${columns(sql)} from written`;
  return written;
}

/** Writes these keys of a credential's `meta` and leaves the others; undefined if the name is unknown. */
export async function replaceCredentialMeta(
  { sql }: Database,
  name: string,
  meta: JsonObject,
  entry: AuditEntry,
): Promise<CredentialRow | undefined> {
  const [written] = await sql<CredentialRow[]>`
    with written as (
      update flow.credential set
        meta = coalesce(meta, '{}') || ${json(sql, meta)}, updated_at = greatest(now(), created_at)
      where name = ${name}
      returning *
    ),
    told as (${auditInsert(sql, [entry], sql`exists (select from written)`)})
    select ${columns(sql)} from written`;
  return written;
}

/** Deletes a credential; false if the name is unknown. */
export async function deleteCredential({ sql }: Database, name: string, entry: AuditEntry): Promise<boolean> {
  const rows = await sql`
    with gone as (delete from flow.credential where name = ${name} returning 1),
    told as (${auditInsert(sql, [entry], sql`exists (select from gone)`)})
    select from gone`;
  return rows.length > 0;
}

/** Credentials in the order of their names, without data. Few rows: filters read all of them. */
export async function listCredentials(
  { db }: Database,
  { limit, cursor, type, tag, q }: CredentialsRequest,
): Promise<Page<CredentialRow, string>> {
  const { name, description, tags } = credential;
  const text = built`lower(concat_ws(chr(1), ${name}, ${description}, array_to_string(${tags}, chr(1))))`;
  const rows = await db
    .select(LISTED)
    .from(credential)
    .where(
      and(
        cursor === undefined ? undefined : gt(name, cursor),
        type === undefined ? undefined : eq(credential.type, type),
        tag === undefined ? undefined : built`${tag} = any (${tags})`,
        q === undefined ? undefined : built`strpos(${text}, ${q.toLowerCase()}) > 0`,
      ),
    )
    .orderBy(asc(name))
    .limit(limit + 1);
  return page(rows, limit, (last) => last.name);
}

const { dataEncrypted: _, ...WITHOUT_DATA } = getTableColumns(credential);
const LISTED = { ...WITHOUT_DATA, tags: built<string[]>`coalesce(${credential.tags}, '{}')` };

function columns(sql: ISql) {
  return sql`${COLUMNS(sql)}, coalesce(tags, '{}') as tags`;
}

/** No name is a number, so at most one of both is meant. */
function matches(sql: ISql, { name, id }: CredentialKey) {
  return id === undefined ? sql`name = ${name}` : sql`id = ${id}::bigint`;
}

function json(sql: ISql, value: JsonObject | null) {
  return value === null ? sql`null::jsonb` : sql`${JSON.stringify(value)}::text::jsonb`;
}
