import type { ExecutionChange, StartedFire } from "../../ports/execution-store.ts";
import { type BulkColumn, column, columns } from "../database/bulk-columns.ts";
import { triggerFire } from "../tables/trigger.ts";

/* The parts of a flush that concern fires of triggers: rows, columns, and text. Only executions that triggers start have them. */

/** What a queued fire has come to. */
interface OutcomeRow {
  executionId: string;
  fireId: string;
}

type NewRow = StartedFire & { executionId: string };

type Changes = readonly ExecutionChange[];

/** Queued fires whose executions begin. */
export function fireOutcomes(executions: Changes): OutcomeRow[] {
  return executions.flatMap(({ executionId, start: { fireId } = {} }) =>
    fireId === undefined ? [] : [{ executionId, fireId }],
  );
}

/** Fires that are written with their executions. */
export function newFires(executions: Changes): NewRow[] {
  return executions.flatMap(({ executionId, start: { newFire } = {} }) =>
    newFire === undefined ? [] : [{ executionId, ...newFire }],
  );
}

/** Columns of {@link fireOutcomes}. */
export const OUTCOME_COLUMNS: readonly BulkColumn<OutcomeRow>[] = columns<typeof triggerFire, OutcomeRow>(triggerFire, {
  executionId: (row) => row.executionId,
  fireId: (row) => row.fireId,
});

/** Columns of {@link newFires}. */
export const FIRE_COLUMNS: readonly BulkColumn<NewRow>[] = [
  ...columns<typeof triggerFire, NewRow>(triggerFire, {
    executionId: (row) => row.executionId,
    fireId: (row) => row.fireId,
    triggerId: (row) => row.triggerId,
    key: (row) => row.key,
    causeId: (row) => row.causeId,
  }),
  column("due_ms", "float8", (row: NewRow) => row.dueAt),
  column("fired_ms", "float8", (row: NewRow) => row.firedAt),
  column("is_always", "smallint", (row: NewRow) => (row.always ? 1 : 0)),
];

/** Where the rows are, and the condition under which they are written. */
interface RowPlaces {
  rowsOf(table: "fired" | "newFires"): string;
  written: string;
}

/** Writes {@link fireOutcomes}. One that has an outcome keeps it. */
export const endFires = ({ rowsOf, written }: RowPlaces) => `
  update flow.trigger_fire as f
  set status = 'started', execution_id = t.execution_id, reason = null, wake_at = null, input = null
  from ${rowsOf("fired")} as t
  where f.fire_id = t.fire_id and f.status = 'queued' and ${written}`;

/** Writes {@link newFires}. A key that its trigger has fired for refuses the flush: of two servers that take one delivery one starts it. */
export const insertFires = ({ rowsOf, written }: RowPlaces) => `
  insert into flow.trigger_fire (fire_id, trigger_id, key, due_at, fired_at, status, execution_id, always, cause_id)
  select fire_id, trigger_id, key, to_timestamp(due_ms / 1000), to_timestamp(fired_ms / 1000), 'started', execution_id,
    is_always = 1, cause_id
  from ${rowsOf("newFires")} as t
  where ${written}`;
