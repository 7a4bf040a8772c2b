import type { Database } from "./database.ts";

/** Rows of one statement: a few hundred milliseconds at most, so that the log can be written meanwhile. */
const ROWS_MAX = 10_000;

/** What became of a deletion. */
export type Deletion = "deleted" | "missing" | "open";

/**
 * Deletes an execution that has ended, with everything that is stored of it: the rows of its events, commands and results,
 * the state, and at last its own row, so that a deletion that breaks off can be asked for again. `onFiles` is given the
 * files of its results, once their rows are gone.
 */
export async function deleteExecution(
  database: Database,
  executionId: string,
  onFiles: (files: string[]) => Promise<void>,
): Promise<Deletion> {
  const { sql } = database;
  const [row] = await sql<{ isOpen: boolean }[]>`
    select ended_at is null as "isOpen" from flow.execution where execution_id = ${executionId}`;
  if (row === undefined) return "missing";
  if (row.isOpen) return "open";
  await onFiles(await deleteResults(database, executionId));
  while ((await deleteHistory(database, executionId)) === ROWS_MAX);
  await sql`delete from flow.execution_snapshot where execution_id = ${executionId}`;
  await sql`delete from flow.execution where execution_id = ${executionId} and ended_at is not null`;
  return "deleted";
}

/** The files whose rows were deleted. */
async function deleteResults({ sql }: Database, executionId: string): Promise<string[]> {
  const rows = await sql<{ file: string | null }[]>`
    delete from flow.result where execution_id = ${executionId} returning location ->> 'file' as file`;
  return rows.flatMap(({ file }) => (file === null ? [] : [file]));
}

/**
 * The oldest events and the commands that they name: no index finds the ended commands of an execution, its events do. Gives
 * the number of events.
 */
async function deleteHistory({ sql }: Database, executionId: string): Promise<number> {
  const { count } = await sql`
    with page as materialized (
      select event_id, command_id from flow.event
      where execution_id = ${executionId} and event_id > ${executionId}
      order by event_id
      limit ${ROWS_MAX}
    ), commands as (
      delete from flow.command where command_id in (select command_id from page where command_id is not null)
    )
    delete from flow.event
    where execution_id = ${executionId} and event_id > ${executionId}
      and event_id <= (select max(event_id) from page)`;
  return count;
}
