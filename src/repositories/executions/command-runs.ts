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

/** The command, of any execution; undefined for an unknown id, and for most that have ended: see {@link findIssue}. */
export async function findCommand({ sql }: Database, commandId: string): Promise<IssuedBody | undefined> {
  const [row] = await sql<IssuedBody[]>`
    select ${ISSUED(sql)} from flow.command where command_id = ${commandId}`;
  return row;
}

/** The event that announced a command of an execution, and how often it was claimed; undefined if the log has none. */
export async function findIssue(
  database: Database,
  executionId: string,
  commandId: string,
): Promise<{ eventId: number; attempt: number } | undefined> {
  const { sql } = database;
  const columns = sql.unsafe(unpacked(["event_id", "event_type", "command_id", "attempt"]));
  const [row] = await sql<{ eventId: number | null; attempt: number }[]>`
    select (min(event_id) filter (where event_type = 'command.issued'))::float8 as "eventId",
      coalesce(max(attempt) filter (where event_type = 'command.claimed'), 0) as attempt
    from (
      select e.* from ${logRows(database, executionId, commandId, COMMAND_EVENTS_SCANNED)} ${columns}
      where ${mayHaveMatches(sql, { commandId })}
    ) as scanned
    where command_id = ${commandId}`;
  const { eventId = null, attempt = 0 } = row ?? {};
  return eventId === null ? undefined : { eventId, attempt };
}

/** The step of a command that has ended, and the execution that it is of. */
export interface EndedClaim {
  step: string;
  executionId: string;
  rootExecutionId: string;
  /** Of the execution, and of the root of its tree. */
  catalogId: string;
  rootCatalogId: string;
  path: string;
}

/**
 * The first claim of a command of the execution that called `childId`, from the log: the only claim of a command that has ended and
 * has no row. Undefined if that log has no such claim.
 */
export async function findEndedClaim(
  database: Database,
  commandId: string,
  childId: string,
): Promise<EndedClaim | undefined> {
  const { sql } = database;
  const [parent] = await sql<{ id: string | null }[]>`
    select parent_execution_id as id from flow.execution where execution_id = ${childId}`;
  if (parent?.id == null) return undefined;
  const columns = sql.unsafe(unpacked(["event_type", "node_name", "command_id", "attempt"]));
  const [row] = await sql<EndedClaim[]>`
    with claim as materialized (
      select e.node_name from ${logRows(database, parent.id, commandId, COMMAND_EVENTS_SCANNED)} ${columns}
      where ${mayHaveMatches(sql, { commandId, eventType: "command.claimed" })}
        and e.command_id = ${commandId} and e.event_type = 'command.claimed' and e.attempt = 1
      limit 1
    )
    select claim.node_name as step, e.execution_id as "executionId", e.root_execution_id as "rootExecutionId",
      e.catalog_id as "catalogId", coalesce(root.catalog_id, e.catalog_id) as "rootCatalogId", e.path
    from claim join flow.execution e on e.execution_id = ${parent.id}
      left join flow.execution root on root.execution_id = e.root_execution_id
    where not exists (select from flow.command c where c.command_id = ${commandId})`;
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
