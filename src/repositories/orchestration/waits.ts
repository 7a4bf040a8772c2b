import type { DueWait } from "../../ports/execution-store.ts";
import type { Database } from "../database/database.ts";

/**
 * Takes parked commands whose time has come by the database's clock, the most overdue first, so that no other server takes them for this
 * long. Rows that another server is taking at this moment are passed over, not waited for.
 */
export async function takeDueWaits({ sql }: Database, leaseMs: number, limit: number): Promise<DueWait[]> {
  const rows = await sql<{ commandId: string; executionId: string; dueAt: string; takenAt: string }[]>`
    with due as (
      select command_id from flow.wait
      where due_at <= now() and (taken_until is null or taken_until <= now())
      order by due_at limit ${limit}
      for update skip locked
    )
    update flow.wait as w set taken_until = now() + ${leaseMs}::float8 * interval '1 millisecond'
    from due where w.command_id = due.command_id
    returning w.command_id as "commandId", w.execution_id as "executionId",
      round(extract(epoch from w.due_at) * 1000) as "dueAt", round(extract(epoch from now()) * 1000) as "takenAt"`;
  return rows
    .map((row) => ({ ...row, dueAt: Number(row.dueAt), takenAt: Number(row.takenAt) }))
    .sort((left, right) => left.dueAt - right.dueAt);
}
