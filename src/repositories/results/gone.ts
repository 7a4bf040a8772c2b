import type { Database } from "../database/database.ts";
import { isOver, isOwner } from "./results.ts";

/** Of these references those under which nothing can be read any more: deleted, past its time, or gone with what its scope names. */
export async function findGone(
  { sql }: Database,
  asked: readonly { executionId: string; ref: string }[],
): Promise<string[]> {
  const rows = await sql<{ ref: string }[]>`
    select asked.ref
    from unnest(${asked.map(({ executionId }) => executionId)}::bigint[], ${asked.map(({ ref }) => ref)}::text[])
      as asked (execution_id, ref)
    where not exists (
      select from flow.result r left join flow.execution owner on ${isOwner(sql)}
      where r.execution_id = asked.execution_id and r.ref = asked.ref and r.writing = ''
        and coalesce(r.expires_at > now(), true)
        and (r.scope = 'permanent' or (owner.execution_id is not null and not ${isOver(sql)}))
    )`;
  return rows.map(({ ref }) => ref);
}
