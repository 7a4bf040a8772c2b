import type { EventRecord } from "../../schema/rules/event-record.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { logRows, unpacked } from "../orchestration/log-rows.ts";
import { command } from "../tables/execution.ts";
import { mayHaveMatches } from "./event-filter.ts";
import { loadThese } from "./event-list.ts";

const ISSUED = columnsOf(command, ["executionId", "attempt", "body"]);

/** A command as it was issued, and how often it was claimed. */
export type IssuedBody = RowOf<typeof ISSUED>;

/** The command, of any execution; undefined for an unknown id. It stays until its execution is deleted. */
export async function findCommand({ sql }: Database, commandId: string): Promise<IssuedBody | undefined> {
  const [row] = await sql<IssuedBody[]>`
    select ${ISSUED(sql)} from flow.command where command_id = ${commandId}`;
  return row;
}

/** Which runs of tasks. */
export interface RunsQuery {
  executionId: string;
  commandId: string;
  /** Undefined: the newest claim in which there are some. */
  attempt: number | undefined;
  /** Of a loop. */
  iteration: number | undefined;
}

/** Events after a command's issue that are looked at: no index finds those of one command. */
export const COMMAND_EVENTS_SCANNED = 20_000;
/** Of a pipeline that goes around and around the last ones count. */
const RUNS_MAX = 500;

/** The `task.done` of one claim of a command, or of one of its iterations, in order; of very many the last. */
export async function listTaskRuns(database: Database, query: RunsQuery): Promise<EventRecord[]> {
  const { sql } = database;
  const { executionId, commandId, attempt, iteration } = query;
  // A command's id is given before those of its events. A segment that does not name it is not unpacked.
  const columns = sql.unsafe(unpacked(["event_id", "event_type", "command_id", "attempt", "iteration"]));
  const [found] = await sql<{ ids: string[] }[]>`
    with scanned as materialized (
      select e.* from ${logRows(database, executionId, commandId, COMMAND_EVENTS_SCANNED)} ${columns}
      where ${mayHaveMatches(sql, { commandId, eventType: "task.done" })}
    ), runs as (
      select event_id, attempt from scanned
      where command_id = ${commandId} and event_type = 'task.done'
        and iteration is not distinct from ${iteration ?? null}::bigint
    )
    select array(
      select event_id::text from runs
      where attempt = coalesce(${attempt ?? null}::int, (select max(attempt) from runs))
      order by event_id desc limit ${RUNS_MAX}
    ) as ids`;
  return await loadThese(database, executionId, found?.ids ?? []);
}
