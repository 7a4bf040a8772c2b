import { and, sql as built, desc, eq, lte } from "drizzle-orm";
import postgres from "postgres";
import type { Database } from "../database/database.ts";
import { resultPart } from "../tables/result.ts";

/* Results in the store `sqldb`: their items as rows to be looked into, and their bytes as they were. */

/** Items of a list, starting at `first`, each a JSON text. Throws the database's error for text that `jsonb` refuses. */
export async function insertRows(
  { sql }: Database,
  payload: string,
  first: number,
  items: readonly string[],
): Promise<void> {
  await sql`
    insert into flow.result_row (payload, item, value)
    select ${payload}, ${first}::integer + place::integer - 1, text::jsonb
    from unnest(${[...items]}::text[]) with ordinality as given (text, place)
    on conflict do nothing`;
}

/** Bytes of the payload, from `place` on. */
export async function insertPart({ db }: Database, payload: string, place: number, part: Uint8Array): Promise<void> {
  await db.insert(resultPart).values({ payload, place, part }).onConflictDoNothing();
}

/** Length of the payload in bytes; undefined if it does not exist. */
export async function payloadBytes({ db }: Database, payload: string): Promise<number | undefined> {
  const [last] = await db
    .select({ bytes: built<number>`(${resultPart.place} + length(${resultPart.part}))::float8` })
    .from(resultPart)
    .where(eq(resultPart.payload, payload))
    .orderBy(desc(resultPart.place))
    .limit(1);
  return last?.bytes;
}

/** The part that holds the byte at `place`, and where it begins; undefined past the end. */
export async function findPart(
  { db }: Database,
  payload: string,
  place: number,
): Promise<{ place: number; part: Uint8Array } | undefined> {
  const [row] = await db
    .select({ place: resultPart.place, part: resultPart.part })
    .from(resultPart)
    .where(and(eq(resultPart.payload, payload), lte(resultPart.place, place)))
    .orderBy(desc(resultPart.place))
    .limit(1);
  return row === undefined || row.place + row.part.byteLength <= place ? undefined : row;
}

/** Rows that one statement deletes: a fraction of a second. */
const DELETE_MAX = 10_000;

/** Deletes all rows of a payload. */
export async function deleteRows({ sql }: Database, payload: string): Promise<void> {
  for (const [table, column] of [
    ["result_row", "item"],
    ["result_part", "place"],
  ] as const) {
    for (;;) {
      const { count } = await sql`
        delete from flow.${sql(table)} where payload = ${payload} and ${sql(column)} in (
          select ${sql(column)} from flow.${sql(table)} where payload = ${payload} limit ${DELETE_MAX})`;
      if (count < DELETE_MAX) break;
    }
  }
}

/** True for the database's refusal of a value: SQLSTATE 22 (no JSON, U+0000), 54 (a limit of the program). */
export function isRefusedValue(error: unknown): boolean {
  return error instanceof postgres.PostgresError && /^(22|54)/.test(error.code);
}
