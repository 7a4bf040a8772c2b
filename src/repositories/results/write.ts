import { and, sql as built, eq, isNotNull, isNull } from "drizzle-orm";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Database, Transaction } from "../database/database.ts";
import { result } from "../tables/result.ts";
import { type ClaimKey, claimed, columns, type Removal, type ResultRow, type SavedRow, values } from "./results.ts";

/** A payload on its way to a store outside of its row. */
export interface Writing extends ResultRow {
  /** Unique. */
  writing: string;
  location: JsonObject;
}

/** How long writing a payload may take, by the database's clock: an older row was left by a process that died. */
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
  { sql, db }: Transaction,
  row: Pick<Writing, "executionId" | "ref" | "writing" | "location" | "ttlMs">,
  claim: ClaimKey | undefined,
): Promise<SavedRow | undefined> {
  const { executionId, ref, location } = row;
  if ((await sql`${claimed(sql, executionId, claim)}`).length === 0) return undefined;
  // Shared locks on a claim do not exclude each other; this one does, for uploads under one reference.
  await sql`select pg_advisory_xact_lock(hashtextextended(${ref}, 0))`;
  const isPresent = isAt({ executionId, ref, writing: "" });
  const [replaced] = await db
    .update(result)
    .set({ state: "deleting", writing: built`gen_random_uuid()::text`, createdAt: NOW })
    .where(and(isPresent, isNotNull(result.location)))
    .returning(REMOVAL);
  await db.delete(result).where(and(isPresent, isNull(result.location)));
  const [saved] = await db
    .update(result)
    .set({
      state: "stored",
      writing: "",
      location,
      expiresAt: built`now() + ${row.ttlMs}::float8 * interval '1 millisecond'`,
      createdAt: NOW,
    })
    .where(and(isAt(row), IS_PENDING))
    .returning({ expiresAt: EXPIRES_AT, rootExecutionId: result.rootExecutionId });
  return saved === undefined ? undefined : { ...saved, replaced: replaced ?? null };
}

/**
 * Marks an incomplete payload for removal and gives where its parts are. Undefined when it is complete after all, as where the
 * answer to {@link finishWriting} was lost, or another process cleans up.
 */
export async function abandonWriting(
  { db }: Database,
  writing: Pick<Writing, "executionId" | "ref" | "writing">,
): Promise<Removal | undefined> {
  const [removal] = await db
    .update(result)
    .set({ state: "deleting", createdAt: NOW })
    .where(and(isAt(writing), IS_PENDING))
    .returning(REMOVAL);
  return removal;
}

const NOW = built`now()`;
const IS_PENDING = eq(result.state, "pending");

function isAt({ executionId, ref, writing }: Pick<Writing, "executionId" | "ref" | "writing">) {
  return and(eq(result.executionId, executionId), eq(result.ref, ref), eq(result.writing, writing));
}

/** A row that has a payload elsewhere has a location, and a stored one expires at some time: never null here. */
const LOCATION = built<JsonObject>`${result.location}`;
const EXPIRES_AT = built<Date>`${result.expiresAt}`;
const REMOVAL = {
  executionId: result.executionId,
  ref: result.ref,
  writing: result.writing,
  store: result.store,
  location: LOCATION,
};
