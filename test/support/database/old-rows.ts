import { createPostgresExecutionStore } from "../../../src/adapters/postgres-execution-store.ts";
import { firstIdAt } from "../../../src/platform/system/ids.ts";
import type { BatchChange, ExecutionStart } from "../../../src/ports/execution-store.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { SHA256, storeRows } from "./store-rows.ts";
import { POLICY } from "./store-setup.ts";

const DAY_MS = 86_400_000;

/** An execution with everything that the database keeps of one. */
export interface OldExecution {
  executionId: string;
  commandId: string;
  ref: string;
}

/** When an execution ran. */
export interface OldTimes extends Partial<ExecutionStart> {
  began: Date;
  /** Null: it is open. */
  ended: Date | null;
  /** File of its result; absent: the result is in its row. */
  file?: string;
}

/** Tables that have rows of an execution or a batch. */
type CountedTable = "event" | "command" | "execution_snapshot" | "past_snapshot" | "result" | "batch" | "execution";

/** Writes rows as they were written some time ago: with ids of that time. */
export interface OldRows {
  /** An execution with an event, a command, a snapshot and a result. */
  execution(times: OldTimes): Promise<OldExecution>;
  /** A batch that came and was last touched then. */
  batch(at: Date, state: BatchChange["state"]): Promise<string>;
  /** Which of these are still there. */
  executionsLeft(executions: readonly OldExecution[]): Promise<boolean[]>;
  /** Rows of a table, by the column that names the execution. */
  count(table: CountedTable): Promise<number>;
}

/** Midnight (UTC) so many days before now. */
export function daysBefore(days: number): Date {
  return new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - days * DAY_MS);
}

/** Over an open database with the service's schema. */
export function oldRows(database: Database): OldRows {
  const { sql } = database;
  const store = createPostgresExecutionStore({ database, policy: POLICY, processor: "server" });
  // Any two rows of one moment still have different ids.
  let written = 0;
  const rowsAt = (moment: Date) => {
    written += 100;
    return storeRows(firstIdAt(moment.getTime()) + written);
  };
  return {
    async execution({ began, ended, file, ...start }) {
      const rows = rowsAt(began);
      const change = rows.begin(start);
      const { executionId } = change;
      const status = ended === null ? "RUNNING" : "COMPLETED";
      const command = rows.issue(change, ended === null ? {} : { status, attempt: 1 });
      const snapshot = { eventId: change.lastEventId, format: 1, state: "{}" };
      await store.flush({ executions: [{ ...change, status, issued: [command], snapshot }], batches: [] });
      await sql`
        update flow.execution set started_at = ${began}, ended_at = ${ended} where execution_id = ${executionId}`;
      const ref = `noetl://execution/${executionId}/step/a/task/a/run/1`;
      const location = file === undefined ? null : JSON.stringify({ file });
      await sql`
        insert into flow.result (execution_id, ref, root_execution_id, state, store, scope, content_type, bytes, sha256,
          location)
        values (${executionId}, ${ref}, ${executionId}, 'stored', ${file === undefined ? "kv" : "disk"}, 'permanent',
          'application/json', 1, ${SHA256}, ${location}::jsonb)`;
      return { executionId, commandId: command.commandId, ref };
    },
    async batch(at, state) {
      const requestId = String(rowsAt(at).next());
      const accept = { caller: "w1", idempotencyKey: requestId, bodySha256: SHA256, executionIds: [], eventIds: [] };
      const failure = state === "failed" ? { code: "processing_error", message: "no" } : {};
      const batch = { requestId, accept, state, commandsGenerated: 0, executionIds: [], ...failure };
      await store.flush({ executions: [], batches: [batch] });
      await sql`update flow.batch set created_at = ${at}, updated_at = ${at} where request_id = ${requestId}`;
      return requestId;
    },
    async executionsLeft(executions) {
      const found = await Promise.all(executions.map(({ executionId }) => store.find(executionId)));
      return found.map((execution) => execution !== undefined);
    },
    async count(table) {
      const [row] = await sql<[{ rows: number }]>`select count(*)::int as rows from ${sql(`flow.${table}`)}`;
      return row.rows;
    },
  };
}
