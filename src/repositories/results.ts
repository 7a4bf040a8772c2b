import type { ISql } from "postgres";
import type { ResultScope } from "../schema/result-api.ts";
import type { Database, Transaction } from "./database.ts";

/** A payload that is kept, and what is said of it. */
export interface ResultRow {
  executionId: string;
  ref: string;
  store: "kv" | "disk";
  scope: ResultScope;
  /** Milliseconds until it is gone. */
  ttlMs: number;
  contentType: string;
  /** Of the payload before compression. */
  bytes: number;
  sha256: string;
  compression: "gzip" | null;
  /** Where the payload is: in the row, or in a file. */
  payload: Uint8Array | null;
  file: string | null;
}

/** The claim under which a worker stores. */
export interface ClaimKey {
  commandId: string;
  attempt: number;
}

/** What became of a payload: until when it is kept, and the file of the one that it replaced. */
export interface SavedRow {
  expiresAt: Date;
  replacedFile: string | null;
}

/** A payload as it was found. */
export interface FoundResult {
  bytes: number;
  sha256: string;
  compression: string | null;
  contentType: string;
  payload: Uint8Array | null;
  file: string | null;
  isExpired: boolean;
}

/**
 * Keeps a result, or replaces it, if the claim is the command's present one and the command is one of the execution's:
 * undefined when it is not. The command's row is locked until the transaction ends, so that the claim cannot be lost in
 * between; a claim that is being taken at this moment is waited for, and then compared.
 */
export async function saveClaimedResult(
  { sql }: Database | Transaction,
  row: ResultRow,
  { commandId, attempt }: ClaimKey,
): Promise<SavedRow | undefined> {
  const [saved] = await sql<SavedRow[]>`
    with claim as (
      select execution_id from flow.command
      where command_id = ${commandId} and attempt = ${attempt} and status in ('CLAIMED', 'RUNNING')
        and execution_id = ${row.executionId}
      for share
    )
    insert into flow.result (${resultColumns(sql)})
    select ${resultValues(sql, row)} from claim
    ${replacing(sql)}
    returning expires_at as "expiresAt", (
      select location ->> 'file' from flow.result r where r.execution_id = ${row.executionId} and r.ref = ${row.ref}
    ) as "replacedFile"`;
  return saved;
}

/** True when the claim is the present one of a command of the execution. */
export async function isClaimed(
  { sql }: Database | Transaction,
  executionId: string,
  { commandId, attempt }: ClaimKey,
): Promise<boolean> {
  const rows = await sql`
    select 1 from flow.command
    where command_id = ${commandId} and attempt = ${attempt} and status in ('CLAIMED', 'RUNNING')
      and execution_id = ${executionId}
    for share`;
  return rows.length > 0;
}

/** Keeps a result, or replaces it, without a claim: the engine's own. */
export async function saveResult({ sql }: Database | Transaction, row: ResultRow): Promise<void> {
  await sql`
    insert into flow.result (${resultColumns(sql)})
    select ${resultValues(sql, row)}
    ${replacing(sql)}`;
}

/** The payload behind a reference, or undefined. */
export async function findResult(
  { sql }: Database,
  executionId: string,
  ref: string,
): Promise<FoundResult | undefined> {
  const [row] = await sql<(Omit<FoundResult, "bytes"> & { bytes: string })[]>`
    select bytes, sha256, compression, content_type as "contentType", payload, location ->> 'file' as file,
      coalesce(expires_at <= now(), false) as "isExpired"
    from flow.result
    where execution_id = ${executionId} and ref = ${ref} and state = 'stored'`;
  return row === undefined ? undefined : { ...row, bytes: Number(row.bytes) };
}

/** Deletes results that are past their time, at most `limit`; gives how many, and the files of those that had one. */
export async function deleteExpiredResults(
  { sql }: Database,
  limit: number,
): Promise<{ count: number; files: string[] }> {
  const rows = await sql<{ file: string | null }[]>`
    delete from flow.result where (execution_id, ref) in (
      select execution_id, ref from flow.result
      where expires_at <= now()
      order by expires_at
      limit ${limit}
      for update skip locked
    )
    returning location ->> 'file' as file`;
  return { count: rows.length, files: rows.flatMap(({ file }) => (file === null ? [] : [file])) };
}

function resultColumns(sql: ISql) {
  return sql`execution_id, ref, root_execution_id, state, store, scope, expires_at, content_type, bytes, sha256,
    compression, location, payload`;
}

function resultValues(sql: ISql, row: ResultRow) {
  const location = row.file === null ? null : JSON.stringify({ file: row.file });
  return sql`${row.executionId}::bigint, ${row.ref},
    coalesce((select root_execution_id from flow.execution where execution_id = ${row.executionId}), ${row.executionId}),
    'stored', ${row.store}, ${row.scope}, now() + ${row.ttlMs}::float8 * interval '1 millisecond', ${row.contentType},
    ${row.bytes}::bigint, ${row.sha256}, ${row.compression}, ${location}::jsonb, ${row.payload}::bytea`;
}

function replacing(sql: ISql) {
  return sql`on conflict (execution_id, ref) do update set
    state = excluded.state, store = excluded.store, scope = excluded.scope, expires_at = excluded.expires_at,
    content_type = excluded.content_type, bytes = excluded.bytes, sha256 = excluded.sha256,
    compression = excluded.compression, location = excluded.location, payload = excluded.payload, created_at = now()`;
}
