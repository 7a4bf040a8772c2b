import type { JsonObject } from "../../schema/words/json.ts";
import type { Database, Transaction } from "../database/database.ts";
import { type ClaimKey, claimed, columns, type Removal, type ResultRow, type SavedRow, values } from "./results.ts";

/** A payload on its way to a store outside of its row. */
export interface Writing extends ResultRow {
  /** Unique. */
  writing: string;
  location: JsonObject;
}

/** How long a payload may be written, by the database's clock: what is older was left by a process that died. */
export const WRITING_MS_MAX = 900_000;

/** Notes that a payload is about to be written. False, and nothing is noted, when the claim is not the present one. */
export async function beginWriting(
  { sql }: Database | Transaction,
  row: Writing,
  claim: ClaimKey | undefined,
): Promise<boolean> {
  const { count } = await sql`
    with claim as materialized (${claimed(sql, row.executionId, claim)})
    insert into flow.result (${columns(sql)}, writing, state, location)
    select ${values(sql, row)}, ${row.writing}, 'pending', ${JSON.stringify(row.location)}::jsonb from claim`;
  return count > 0;
}

/**
 * The payload is complete: readers find it from now on, and what they found before is to be removed. Undefined when the claim
 * was lost meanwhile, or when the note of {@link beginWriting} is gone: then nothing is replaced. In a transaction: two
 * payloads under one reference must not both take the place.
 */
export async function finishWriting(
  { sql }: Transaction,
  row: Pick<Writing, "executionId" | "ref" | "writing" | "location" | "ttlMs">,
  claim: ClaimKey | undefined,
): Promise<SavedRow | undefined> {
  const { executionId, ref, writing } = row;
  if ((await sql`${claimed(sql, executionId, claim)}`).length === 0) return undefined;
  // Shared locks on a claim do not exclude each other; this one does, for uploads under one reference.
  await sql`select pg_advisory_xact_lock(hashtextextended(${ref}, 0))`;
  const replaced = await sql<Removal[]>`
    update flow.result set state = 'deleting', writing = gen_random_uuid()::text, created_at = now()
    where execution_id = ${executionId} and ref = ${ref} and writing = '' and location is not null
    returning execution_id as "executionId", ref, writing, store, location`;
  await sql`
    delete from flow.result
    where execution_id = ${executionId} and ref = ${ref} and writing = '' and location is null`;
  const [saved] = await sql<Omit<SavedRow, "replaced">[]>`
    update flow.result set state = 'stored', writing = '', location = ${JSON.stringify(row.location)}::jsonb,
      expires_at = now() + ${row.ttlMs}::float8 * interval '1 millisecond', created_at = now()
    where execution_id = ${executionId} and ref = ${ref} and writing = ${writing} and state = 'pending'
    returning expires_at as "expiresAt", root_execution_id as "rootExecutionId"`;
  return saved === undefined ? undefined : { ...saved, replaced: replaced[0] ?? null };
}

/**
 * The payload will not be complete: what there is of it is to be removed. Undefined when it is complete after all, as where
 * the answer to {@link finishWriting} was lost, or somebody else cleans up.
 */
export async function abandonWriting(
  { sql }: Database,
  { executionId, ref, writing }: Pick<Writing, "executionId" | "ref" | "writing">,
): Promise<Removal | undefined> {
  const [removal] = await sql<Removal[]>`
    update flow.result set state = 'deleting', created_at = now()
    where execution_id = ${executionId} and ref = ${ref} and writing = ${writing} and state = 'pending'
    returning execution_id as "executionId", ref, writing, store, location`;
  return removal;
}
