import type { Database } from "../database/database.ts";
import { logRows, unpacked } from "../orchestration/log-rows.ts";
import { announceDeletion, findResultOwners, forgetDeleted } from "./deleted-executions.ts";
import { deleteExecutionValues } from "./execution-values.ts";

/** Events of one statement: a few hundred milliseconds at most, so that the log can be written meanwhile. */
const EVENTS_MAX = 10_000;

/** The result of a deletion. */
export type Deletion = "deleted" | "missing" | "open";

/**
 * Deletes an execution that has ended, with everything that is stored of it: its results, which `removeResults` takes away unless a rerun
 * refers to them, the rows of its events and commands, the state, and at last its own row, so that a deletion that breaks off can be asked for
 * again.
 */
export async function deleteExecution(
  database: Database,
  executionId: string,
  removeResults: (executionIds: readonly string[]) => Promise<void>,
): Promise<Deletion> {
  const { sql } = database;
  const [row] = await sql<{ isOpen: boolean }[]>`
    select ended_at is null as "isOpen" from flow.execution where execution_id = ${executionId}`;
  if (row === undefined) return "missing";
  if (row.isOpen) return "open";
  await announceDeletion(database, [executionId]);
  await removeResults(await findResultOwners(database, [executionId]));
  while ((await deleteHistory(database, executionId)) > 0);
  await deleteExecutionValues(database, executionId);
  await sql`delete from flow.execution_snapshot where execution_id = ${executionId}`;
  await deleteApprovals(database, executionId);
  await sql`delete from flow.execution_label where execution_id = ${executionId}`;
  await sql`delete from flow.past_snapshot where execution_id = ${executionId}`;
  await sql`delete from flow.execution where execution_id = ${executionId} and ended_at is not null`;
  await forgetDeleted(database, [executionId]);
  return "deleted";
}

/**
 * The oldest events and the commands that they name: no index finds the ended commands of an execution, its events do. Gives
 * the number of rows.
 */
async function deleteHistory(database: Database, executionId: string): Promise<number> {
  const { sql } = database;
  const { count } = await sql`
    with page as materialized (
      select event_id, body, command_id from ${logRows(database, executionId, executionId, EVENTS_MAX)}
    ), commands as (
      delete from flow.command where command_id in (
        select e.command_id from page as l ${sql.unsafe(unpacked(["command_id"]))} where e.command_id is not null
      )
    )
    delete from flow.event_log
    where execution_id = ${executionId} and event_id > ${executionId}
      and event_id <= (select max(event_id) from page)`;
  return count;
}

/** The approvals for which it has waited, with what people have said. */
async function deleteApprovals({ sql }: Database, executionId: string): Promise<void> {
  await sql`
    with gone as (delete from flow.approval where execution_id = ${executionId} returning approval_id),
      decisions as (delete from flow.approval_decision where approval_id in (select approval_id from gone))
    delete from flow.approval_message where approval_id in (select approval_id from gone)`;
}
