import type { EventRecord } from "../../schema/rules/event-record.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import { loadEvents } from "../orchestration/load-execution.ts";
import { executionSnapshot } from "../tables/event.ts";
import { execution } from "../tables/execution.ts";
import type { Reading } from "./read-snapshot.ts";

const COLUMNS = columnsOf(execution, ["executionId", "path", "status", "lastEventId", "updatedAt"]);
const SNAPSHOT = columnsOf(executionSnapshot, ["eventId", "format", "state"]);

/** An execution according to its rows, to be compared with its log. */
export interface ProjectedExecution extends Omit<RowOf<typeof COLUMNS>, "lastEventId"> {
  lastEventId: number;
  /** It has an error. */
  hasError: boolean;
  /** Ids of its commands that are open by their rows, in order. */
  openCommands: string[];
  snapshot: { eventId: number; format: number; state: string } | null;
}

/**
 * The newest executions, and beside them the oldest open ones: what goes wrong shows in either. At most `newest` and `oldest`
 * of them.
 */
export async function sampleExecutions(
  { sql }: Reading,
  { newest, oldest }: { newest: number; oldest: number },
): Promise<ProjectedExecution[]> {
  type Snapshot = RowOf<typeof SNAPSHOT>;
  type Row = RowOf<typeof COLUMNS> &
    Pick<ProjectedExecution, "hasError" | "openCommands"> & { [K in keyof Snapshot]: Snapshot[K] | null };
  const rows = await sql<Row[]>`
    with sample as (
      (select execution_id from flow.execution order by execution_id desc limit ${newest})
      union
      (select execution_id from flow.execution where status = 'RUNNING' order by execution_id limit ${oldest})
    )
    select ${COLUMNS(sql, "e")}, e.error is not null as "hasError", ${SNAPSHOT(sql, "s")},
      array(
        select c.command_id::text from flow.command c
        where c.execution_id = e.execution_id and c.status in ('PENDING', 'PAUSED', 'PARKED', 'CLAIMED', 'RUNNING') order by c.command_id
      ) as "openCommands"
    from sample join flow.execution e using (execution_id) left join flow.execution_snapshot s using (execution_id)
    order by e.execution_id`;
  return rows.map(({ eventId, format, state, lastEventId, ...row }) => ({
    ...row,
    lastEventId: Number(lastEventId),
    snapshot:
      eventId === null || format === null || state === null ? null : { eventId: Number(eventId), format, state },
  }));
}

/** The whole log of an execution at the reading's moment; undefined when it has more than `max` events. */
export async function readLog(reading: Reading, executionId: string, max: number): Promise<EventRecord[] | undefined> {
  const records = await loadEvents(reading, executionId, 0, max + 1);
  return records.length > max ? undefined : records;
}
