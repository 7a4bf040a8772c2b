import { FIRST_ID_MS, IDS_PER_MS } from "../platform/ids.ts";
import type { Database } from "./database.ts";

/**
 * `count` new ids, growing, unique over all servers of this database and ahead of every id that was given before. They
 * follow the database's clock ({@link FIRST_ID_MS}, {@link IDS_PER_MS}), and do not shrink when that steps back.
 *
 * A statement of its own, never part of a transaction: every server waits on this one row.
 */
export async function reserveIds({ sql }: Database, count: number): Promise<string[]> {
  const [row] = await sql<{ last: string }[]>`
    update flow.id_source set last_id = greatest(
      last_id,
      (floor(extract(epoch from clock_timestamp()) * 1000)::bigint - ${FIRST_ID_MS}) * ${IDS_PER_MS}
    ) + ${count}
    returning last_id as last`;
  if (row === undefined) throw new Error("flow.id_source has no row: the migrations have not run");
  const last = BigInt(row.last);
  return Array.from({ length: count }, (_, index) => String(last - BigInt(count - 1 - index)));
}
