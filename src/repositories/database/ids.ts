import { FIRST_ID_MS, IDS_PER_MS } from "../../platform/system/ids.ts";
import type { Database } from "./database.ts";

/**
 * Reserves `count` new ids, greater than every id handed out before by any server of this database, and returns the last of
 * them. They follow the database's clock ({@link FIRST_ID_MS}, {@link IDS_PER_MS}), and do not decrease when it steps back.
 * Always a separate statement, never part of a transaction: every server waits for this one row.
 */
export async function reserveIdBlock({ sql }: Database, count: number): Promise<number> {
  const [row] = await sql<{ last: string }[]>`
    update flow.id_source set last_id = greatest(
      last_id,
      (floor(extract(epoch from clock_timestamp()) * 1000)::bigint - ${FIRST_ID_MS}) * ${IDS_PER_MS}
    ) + ${count}
    returning last_id as last`;
  if (row === undefined) throw new Error("flow.id_source has no row: the migrations have not run");
  return Number(row.last);
}

/** {@link reserveIdBlock}, as a list of ids in growing order. */
export async function reserveIds(database: Database, count: number): Promise<string[]> {
  const last = await reserveIdBlock(database, count);
  return Array.from({ length: count }, (_, index) => String(last - count + 1 + index));
}
