import type {
  BatchChange,
  CommandChange,
  ExecutionChange,
  ExecutionStart,
  Flush,
  IssuedCommand,
  Snapshot,
} from "../ports/execution-store.ts";
import { documents, numbers, texts } from "../repositories/database/bulk-columns.ts";
import type { FlushColumns } from "../repositories/orchestration/flush-columns.ts";
import type { EventRecord } from "../schema/rules/event-record.ts";

/** The rows of a flush, turned into columns for the one statement that writes them. */
export function flushColumns({ executions, batches }: Flush): FlushColumns {
  return {
    executions: movedColumns(inOrder(executions.filter((change) => change.start === undefined))),
    starts: startColumns(executions.filter(isStart)),
    events: eventColumns(executions.flatMap((change) => change.events)),
    issued: issuedColumns(executions.flatMap(({ executionId, issued }) => issued.map((row) => ({ executionId, row })))),
    commands: commandColumns(
      executions.flatMap(({ executionId, commands }) => commands.map((row) => ({ executionId, row }))),
    ),
    snapshots: snapshotColumns(
      executions.flatMap(({ executionId, snapshot }) => (snapshot === undefined ? [] : [{ executionId, ...snapshot }])),
    ),
    accepted: acceptedColumns(batches.filter(isAccepted)),
    batches: batchColumns(batches.filter((batch) => batch.accept === undefined)),
    needs: needColumns(batches, new Set(executions.map(({ executionId }) => executionId))),
  };
}

type Start = ExecutionChange & { start: ExecutionStart };
type Accepted = BatchChange & { accept: NonNullable<BatchChange["accept"]> };
const json = (value: unknown) => (value === undefined ? undefined : JSON.stringify(value));
const isStart = (change: ExecutionChange): change is Start => change.start !== undefined;
const isAccepted = (batch: BatchChange): batch is Accepted => batch.accept !== undefined;

/** Rows are locked in this order: servers that write the same executions wait for each other, and do not deadlock. */
function inOrder(changes: readonly ExecutionChange[]): ExecutionChange[] {
  return changes.toSorted((left, right) => Number(left.executionId) - Number(right.executionId));
}

function movedColumns(rows: readonly ExecutionChange[]): FlushColumns["executions"] {
  return {
    execution_id: numbers(rows, (row) => row.executionId),
    expected_event_id: numbers(rows, (row) => row.expectedEventId),
    last_event_id: numbers(rows, (row) => row.lastEventId),
    status: texts(rows, (row) => row.status),
    progress: numbers(rows, (row) => row.progress),
    result: documents(rows, (row) => json(row.result)),
    error: documents(rows, (row) => json(row.error)),
  };
}

function startColumns(rows: readonly Start[]): FlushColumns["starts"] {
  return {
    execution_id: numbers(rows, (row) => row.executionId),
    catalog_id: numbers(rows, (row) => row.start.catalogId),
    path: texts(rows, (row) => row.start.path),
    version: numbers(rows, (row) => row.start.version),
    status: texts(rows, (row) => row.status),
    progress: numbers(rows, (row) => row.progress),
    last_event_id: numbers(rows, (row) => row.lastEventId),
    parent_execution_id: numbers(rows, (row) => row.start.parentExecutionId),
    parent_step: texts(rows, (row) => row.start.parentStep),
    root_execution_id: numbers(rows, (row) => row.start.rootExecutionId),
    started_by: numbers(rows, (row) => row.start.startedBy ?? null),
    result: documents(rows, (row) => json(row.result)),
    error: documents(rows, (row) => json(row.error)),
    started_ms: numbers(rows, (row) => row.start.startedAt ?? null),
    deadline_ms: numbers(rows, (row) => row.start.deadlineAt),
    caller: texts(rows, (row) => row.start.idempotency?.caller),
    idempotency_key: texts(rows, (row) => row.start.idempotency?.key),
    body_sha256: texts(rows, (row) => row.start.idempotency?.bodySha256),
  };
}

function eventColumns(rows: readonly EventRecord[]): FlushColumns["events"] {
  return {
    event_id: numbers(rows, (row) => row.event_id),
    execution_id: numbers(rows, (row) => row.execution_id),
    catalog_id: numbers(rows, (row) => row.catalog_id),
    event_type: texts(rows, (row) => row.event_type),
    node_id: texts(rows, (row) => row.node_id),
    node_name: texts(rows, (row) => row.node_name),
    node_type: texts(rows, (row) => row.node_type),
    status: texts(rows, (row) => row.status),
    created_at: texts(rows, (row) => row.created_at),
    parent_event_id: numbers(rows, (row) => row["parent_event_id"] as number | undefined),
    parent_execution_id: numbers(rows, (row) => row["parent_execution_id"] as string | undefined),
    command_id: numbers(rows, (row) => row["command_id"] as string | undefined),
    worker: texts(rows, (row) => row["worker"] as string | undefined),
    attempt: numbers(rows, (row) => row["attempt"] as number | undefined),
    iteration: numbers(rows, (row) => row["iteration"] as number | undefined),
    page: numbers(rows, (row) => row["page"] as number | undefined),
    step_run_id: texts(rows, (row) => row["step_run_id"] as string | undefined),
    task_run_id: texts(rows, (row) => row["task_run_id"] as string | undefined),
    duration_ms: numbers(rows, (row) => row["duration_ms"] as number | undefined),
    result: documents(rows, (row) => json(row["result"])),
    error: documents(rows, (row) => json(row["error"])),
    meta: documents(rows, (row) => json(row["meta"])),
  };
}

function issuedColumns(rows: readonly { executionId: string; row: IssuedCommand }[]): FlushColumns["issued"] {
  return {
    command_id: numbers(rows, ({ row }) => row.commandId),
    execution_id: numbers(rows, ({ executionId }) => executionId),
    catalog_id: numbers(rows, ({ row }) => row.catalogId),
    step: texts(rows, ({ row }) => row.step),
    status: texts(rows, ({ row }) => row.status),
    attempt: numbers(rows, ({ row }) => row.attempt),
    // An array in an array's text: quoted twice, and cast in the statement.
    kinds: texts(rows, ({ row }) => texts(row.kinds, (kind) => kind)),
    labels: documents(rows, ({ row }) => json(row.labels ?? undefined)),
    body: documents(rows, ({ row }) => json(row.body)),
    worker: texts(rows, ({ row }) => row.worker),
    lease_ms: numbers(rows, ({ row }) => row.leaseMs),
  };
}

function commandColumns(rows: readonly { executionId: string; row: CommandChange }[]): FlushColumns["commands"] {
  return {
    command_id: numbers(rows, ({ row }) => row.commandId),
    execution_id: numbers(rows, ({ executionId }) => executionId),
    status: texts(rows, ({ row }) => row.status),
    attempt: numbers(rows, ({ row }) => row.attempt),
    worker: texts(rows, ({ row }) => row.worker),
    lease_ms: numbers(rows, ({ row }) => row.leaseMs),
  };
}

function snapshotColumns(rows: readonly (Snapshot & { executionId: string })[]): FlushColumns["snapshots"] {
  return {
    execution_id: numbers(rows, (row) => row.executionId),
    event_id: numbers(rows, (row) => row.eventId),
    format: numbers(rows, (row) => row.format),
    state: documents(rows, (row) => row.state),
  };
}

function acceptedColumns(rows: readonly Accepted[]): FlushColumns["accepted"] {
  return {
    request_id: numbers(rows, (row) => row.requestId),
    caller: texts(rows, (row) => row.accept.caller),
    idempotency_key: texts(rows, (row) => row.accept.idempotencyKey),
    body_sha256: texts(rows, (row) => row.accept.bodySha256),
    state: texts(rows, (row) => row.state),
    code: texts(rows, (row) => row.code),
    message: texts(rows, (row) => row.message),
    execution_ids: texts(rows, (row) => `{${row.accept.executionIds.join(",")}}`),
    event_ids: texts(rows, (row) => `{${row.accept.eventIds.join(",")}}`),
    commands_generated: numbers(rows, (row) => row.commandsGenerated),
  };
}

function batchColumns(rows: readonly BatchChange[]): FlushColumns["batches"] {
  return {
    request_id: numbers(rows, (row) => row.requestId),
    state: texts(rows, (row) => row.state),
    code: texts(rows, (row) => row.code),
    message: texts(rows, (row) => row.message),
    commands_generated: numbers(rows, (row) => row.commandsGenerated),
  };
}

/** An execution without a change has no change that could fail. */
function needColumns(batches: readonly BatchChange[], changed: ReadonlySet<string>): FlushColumns["needs"] {
  const rows = batches.flatMap(({ requestId, executionIds }) =>
    executionIds.filter((id) => changed.has(id)).map((executionId) => ({ requestId, executionId })),
  );
  return {
    request_id: numbers(rows, (row) => row.requestId),
    execution_id: numbers(rows, (row) => row.executionId),
  };
}
