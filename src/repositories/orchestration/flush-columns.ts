import type {
  BatchChange,
  CommandChange,
  EndTally,
  ExecutionChange,
  ExecutionStart,
  Flush,
  IssuedCommand,
  ParkedCommand,
  Snapshot,
  StoppedIteration,
} from "../../ports/execution-store.ts";
import type { EventRecord } from "../../schema/rules/event-record.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { auditRow } from "../access/audit.ts";
import { type BulkColumn, column, columns, type Getters } from "../database/bulk-columns.ts";
import { batch } from "../tables/batch.ts";
import { eventLog, executionSnapshot } from "../tables/event.ts";
import { command, execution, executionLabel } from "../tables/execution.ts";
import { result } from "../tables/result.ts";
import { uncountedExecution } from "../tables/statistic.ts";
import { watchedEnd } from "../tables/trigger.ts";
import { wait } from "../tables/wait.ts";
import { type SentPayload, sentPayload } from "./attached-payloads.ts";
import { olderSnapshotsMax } from "./past-snapshots.ts";
import * as rareRows from "./rare-rows.ts";
import { type LogRows, packSegments, type Segment } from "./segments.ts";

/*
 * What a flush writes, by table and column. Names and types come from the tables: renaming a column there renames it here, and
 * renaming a field breaks the compilation. Each column states how its values are read from the rows of a flush.
 */

/** The rows of a flush that go to one table, with their columns. */
interface FlushPart {
  /** In the order of {@link FlushPart.columns}; undefined if the flush has no rows for it. */
  send(flush: FlushRows): { parameters: string[]; rows: number } | undefined;
  columns: readonly Pick<BulkColumn<never>, "name" | "type">[];
}

/** A flush with its events as rows of the log. */
type FlushRows = Flush & LogRows;

function part<R>(rowsOf: (flush: FlushRows) => readonly R[], parts: readonly BulkColumn<R>[]): FlushPart {
  return {
    columns: parts,
    send(flush) {
      const rows = rowsOf(flush);
      return rows.length === 0 ? undefined : { parameters: parts.map(({ send }) => send(rows)), rows: rows.length };
    },
  };
}

type OfExecution<R> = { executionId: string; row: R };
type Start = ExecutionChange & { start: ExecutionStart };
type Need = { requestId: string; executionId: string };
type StoredSnapshot = Snapshot & { executionId: string };
type Accepted = BatchChange & { accept: NonNullable<BatchChange["accept"]> };
const ENDS: ReadonlySet<string> = new Set(["COMPLETED", "FAILED", "CANCELLED"]);
type End = ExecutionChange & { tally: EndTally };
const isEnd = (change: ExecutionChange): change is End => change.tally !== undefined;
/** Parts of which most flushes have nothing. `of`: what a change has that has rows for them. */
const rarePart =
  (of: (change: ExecutionChange) => unknown) =>
  <R>(rowsOf: (all: readonly ExecutionChange[]) => readonly R[], parts: readonly BulkColumn<R>[]) =>
    part(({ executions: all }) => (all.some(of) ? rowsOf(all) : []), parts);
const approvalPart = rarePart(({ approvals, messages }) => approvals ?? messages);
const firePart = rarePart(({ start }) => start?.fireId ?? start?.newFire);
const isStart = (change: ExecutionChange): change is Start => change.start !== undefined;
const isAccepted = (change: BatchChange): change is Accepted => change.accept !== undefined;

/**
 * The tables of a flush. Columns that are not in the tables: `expected_event_id` is compared with the row's, `lease_ms` counts
 * from the database's now, `started_ms` and `deadline_ms` from 1970.
 */
const FLUSH = {
  /** Executions that continue. Rows are locked in this order, so that servers that write the same ones do not deadlock. */
  executions: part(
    ({ executions }) =>
      executions
        .filter((change) => change.start === undefined)
        .sort((left, right) => Number(left.executionId) - Number(right.executionId)),
    [
      column("expected_event_id", "bigint", (row: ExecutionChange) => row.expectedEventId),
      ...columns<typeof execution, ExecutionChange>(execution, {
        executionId: (row) => row.executionId,
        lastEventId: (row) => row.lastEventId,
        status: (row) => row.status,
        progress: (row) => row.progress,
        result: (row) => row.result,
        error: (row) => row.error,
      }),
    ],
  ),
  /** Executions that begin. */
  starts: part(
    ({ executions }) => executions.filter(isStart),
    [
      ...columns<typeof execution, Start>(execution, {
        executionId: (row) => row.executionId,
        catalogId: (row) => row.start.catalogId,
        path: (row) => row.start.path,
        version: (row) => row.start.version,
        status: (row) => row.status,
        progress: (row) => row.progress,
        lastEventId: (row) => row.lastEventId,
        parentExecutionId: (row) => row.start.parentExecutionId,
        parentStep: (row) => row.start.parentStep,
        rootExecutionId: (row) => row.start.rootExecutionId,
        startedBy: (row) => row.start.startedBy,
        startedKind: (row) => row.start.origin?.kind,
        startedId: (row) => row.start.origin?.id,
        startedName: (row) => row.start.origin?.name,
        result: (row) => row.result,
        error: (row) => row.error,
        caller: (row) => row.start.idempotency?.caller,
        idempotencyKey: (row) => row.start.idempotency?.key,
        bodySha256: (row) => row.start.idempotency?.bodySha256,
      }),
      column("started_ms", "float8", (row: Start) => row.start.startedAt),
      column("deadline_ms", "float8", (row: Start) => row.start.deadlineAt),
      column("line", "json", (row: Start) => row.start.line),
      column("must_be_newest", "smallint", (row: Start) => (row.start.mustBeNewest === true ? 1 : 0)),
    ],
  ),
  /** Labels of executions that begin. */
  labelled: part(
    ({ executions }) =>
      executions.flatMap(({ executionId, start }) =>
        Object.entries(start?.labels ?? {}).map((row) => ({ executionId, row })),
      ),
    columns<typeof executionLabel, OfExecution<[name: string, value: string]>>(executionLabel, {
      executionId: ({ executionId }) => executionId,
      name: ({ row: [name] }) => name,
      value: ({ row: [, value] }) => value,
    }),
  ),
  /** Ends of executions, where some trigger watches them. */
  watched: part(
    ({ executions, watchesEnds = false }) =>
      watchesEnds
        ? executions.filter(({ status }) => ENDS.has(status)).map(({ executionId }) => ({ executionId }))
        : [],
    columns<typeof watchedEnd, { executionId: string }>(watchedEnd, { executionId: ({ executionId }) => executionId }),
  ),
  /** Fires of triggers whose executions begin. */
  fired: firePart(rareRows.fireOutcomes, rareRows.OUTCOME_COLUMNS),
  newFires: firePart(rareRows.newFires, rareRows.FIRE_COLUMNS),
  segments: part(
    ({ segments }) => segments,
    [
      ...columns<typeof eventLog, Segment>(eventLog, {
        eventId: (row) => row.eventId,
        executionId: (row) => row.executionId,
        catalogId: (row) => row.catalogId,
        nodeId: (row) => row.path,
        events: (row) => row.events,
      }),
      // JSON, in which nothing needs quotes.
      column(eventLog.body.name, "document", (row: Segment) => row.body),
    ],
  ),
  /** Events that are in no segment. All columns of an event: one added there must be added here too. */
  events: part(
    ({ rows }) => rows,
    columns<typeof eventLog, EventRecord>(eventLog, {
      eventId: (row) => row.event_id,
      executionId: (row) => row.execution_id,
      catalogId: (row) => row.catalog_id,
      eventType: (row) => row.event_type,
      nodeId: (row) => row.node_id,
      nodeName: (row) => row.node_name,
      nodeType: (row) => row.node_type,
      status: (row) => row.status,
      createdAt: (row) => row.created_at,
      parentEventId: (row) => row["parent_event_id"] as number | undefined,
      parentExecutionId: (row) => row["parent_execution_id"] as string | undefined,
      commandId: (row) => row["command_id"] as string | undefined,
      worker: (row) => row["worker"] as string | undefined,
      attempt: (row) => row["attempt"] as number | undefined,
      iteration: (row) => row["iteration"] as number | undefined,
      page: (row) => row["page"] as number | undefined,
      stepRunId: (row) => row["step_run_id"] as string | undefined,
      taskRunId: (row) => row["task_run_id"] as string | undefined,
      durationMs: (row) => row["duration_ms"] as number | undefined,
      result: (row) => row["result"],
      error: (row) => row["error"],
      meta: (row) => row["meta"],
    } satisfies Required<Omit<Getters<typeof eventLog, EventRecord>, "events" | "body">>),
  ),
  /** Commands that begin. */
  issued: part(
    ({ executions }) => executions.flatMap(({ executionId, issued }) => issued.map((row) => ({ executionId, row }))),
    [
      ...columns<typeof command, OfExecution<IssuedCommand>>(command, {
        commandId: ({ row }) => row.commandId,
        executionId: ({ executionId }) => executionId,
        catalogId: ({ row }) => row.catalogId,
        step: ({ row }) => row.step,
        status: ({ row }) => row.status,
        attempt: ({ row }) => row.attempt,
        kinds: ({ row }) => row.kinds,
        labels: ({ row }) => row.labels ?? undefined,
        body: ({ row }) => row.body,
        worker: ({ row }) => row.worker,
      }),
      column("lease_ms", "float8", ({ row }: OfExecution<IssuedCommand>) => row.leaseMs),
    ],
  ),
  /** Commands issued by earlier changes. */
  commands: part(
    ({ executions }) =>
      executions.flatMap(({ executionId, commands }) => commands.map((row) => ({ executionId, row }))),
    [
      ...columns<typeof command, OfExecution<CommandChange>>(command, {
        commandId: ({ row }) => row.commandId,
        executionId: ({ executionId }) => executionId,
        status: ({ row }) => row.status,
        attempt: ({ row }) => row.attempt,
        worker: ({ row }) => row.worker,
      }),
      column("lease_ms", "float8", ({ row }: OfExecution<CommandChange>) => row.leaseMs),
    ],
  ),
  /** Iterations that people have ended in commands that workers have: part of the commands' rows. */
  stopped: part(
    ({ executions }) => executions.flatMap(({ stopped = [] }) => stopped),
    [
      column(command.commandId.name, "bigint", (row: StoppedIteration) => row.commandId),
      column("iteration", "int", (row: StoppedIteration) => row.iteration),
    ],
  ),
  /** Commands issued by earlier changes whose rows go. */
  ended: part(
    ({ executions }) => executions.flatMap(({ executionId, ended }) => ended.map((row) => ({ executionId, row }))),
    columns<typeof command, OfExecution<string>>(command, {
      commandId: ({ row }) => row,
      executionId: ({ executionId }) => executionId,
    }),
  ),
  /** Commands that are parked. */
  parked: part(
    ({ executions }) =>
      executions.flatMap(({ executionId, parked = [] }) => parked.map((row) => ({ executionId, row }))),
    [
      ...columns<typeof wait, OfExecution<ParkedCommand>>(wait, {
        commandId: ({ row }) => row.commandId,
        executionId: ({ executionId }) => executionId,
        kind: ({ row }) => row.kind,
        name: ({ row }) => row.signal?.name,
        key: ({ row }) => row.signal?.key,
      }),
      column("due_ms", "float8", ({ row }: OfExecution<ParkedCommand>) => row.dueAt),
    ],
  ),
  /** Commands that wait no longer. */
  unparked: part(
    ({ executions }) =>
      executions.flatMap(({ executionId, unparked = [] }) => unparked.map((row) => ({ executionId, row }))),
    columns<typeof wait, OfExecution<string>>(wait, {
      commandId: ({ row }) => row,
      executionId: ({ executionId }) => executionId,
    }),
  ),
  approvals: approvalPart(rareRows.openedApprovals, rareRows.OPENED_COLUMNS),
  approvalChanges: approvalPart(rareRows.changedApprovals, rareRows.CHANGED_COLUMNS),
  approvalDecisions: approvalPart(rareRows.givenDecisions, rareRows.DECISION_COLUMNS),
  approvalMessages: approvalPart(rareRows.newMessages, rareRows.MESSAGE_COLUMNS),
  /** Rows of the audit log: what it says about starts. A JSON text each, in which nothing needs quotes. */
  audited: part(
    ({ executions }) =>
      executions.flatMap(({ executionId, start }) => (start?.audit ?? []).map((row) => ({ executionId, row }))),
    [
      column("execution_id", "bigint", ({ executionId }: OfExecution<AuditEntry>) => executionId),
      column("entry", "document", ({ row }: OfExecution<AuditEntry>) => JSON.stringify(auditRow(row))),
    ],
  ),
  snapshots: part(
    ({ executions }) =>
      executions.flatMap(({ executionId, snapshot }) => (snapshot === undefined ? [] : [{ executionId, ...snapshot }])),
    [
      ...columns<typeof executionSnapshot, StoredSnapshot>(executionSnapshot, {
        executionId: (row) => row.executionId,
        eventId: (row) => row.eventId,
        format: (row) => row.format,
      }),
      // JSON, in which nothing needs quotes.
      column(executionSnapshot.state.name, "document", (row: StoredSnapshot) => row.state),
      column("older_max", "int", (row: StoredSnapshot) => olderSnapshotsMax(row.state)),
    ],
  ),
  /** Executions that end, for statistics. */
  uncounted: part(
    ({ executions }) => executions.filter(isEnd),
    columns<typeof uncountedExecution, End>(uncountedExecution, {
      executionId: (row) => row.executionId,
      path: (row) => row.path,
      status: (row) => row.status,
      tally: (row) => row.tally,
    }),
  ),
  /** Large results of the events. Bytes that are no text go as hexadecimal digits. */
  payloads: part(
    ({ executions }) =>
      executions.flatMap(({ executionId, payloads = [] }) =>
        payloads.map((row) => ({ executionId, ...sentPayload(row) })),
      ),
    [
      ...columns<typeof result, SentPayload>(result, {
        executionId: (row) => row.executionId,
        ref: (row) => row.ref,
        bytes: (row) => row.bytes,
        sha256: (row) => row.sha256,
        compression: (row) => row.compression,
      }),
      column("is_sealed", "smallint", (row: SentPayload) => (row.isSealed ? 1 : 0)),
      column("expires_ms", "float8", (row: SentPayload) => row.expiresAt),
      column("is_text", "smallint", (row: SentPayload) => (row.isText ? 1 : 0)),
      column(result.payload.name, "document", (row: SentPayload) => row.text),
    ],
  ),
  /** Batches that begin. */
  accepted: part(
    ({ batches }) => batches.filter(isAccepted),
    columns<typeof batch, Accepted>(batch, {
      requestId: (row) => row.requestId,
      caller: (row) => row.accept.caller,
      idempotencyKey: (row) => row.accept.idempotencyKey,
      bodySha256: (row) => row.accept.bodySha256,
      state: (row) => row.state,
      code: (row) => row.code,
      message: (row) => row.message,
      executionIds: (row) => row.accept.executionIds,
      eventIds: (row) => row.accept.eventIds,
      commandsGenerated: (row) => row.commandsGenerated,
    }),
  ),
  /** Batches accepted by an earlier flush. */
  batches: part(
    ({ batches }) => batches.filter((change) => change.accept === undefined),
    columns<typeof batch, BatchChange>(batch, {
      requestId: (row) => row.requestId,
      state: (row) => row.state,
      code: (row) => row.code,
      message: (row) => row.message,
      commandsGenerated: (row) => row.commandsGenerated,
    }),
  ),
  /** Which batch needs which executions, one row each. An execution without a change cannot fail. */
  needs: part(
    ({ executions, batches }) => {
      const changed = new Set(executions.map(({ executionId }) => executionId));
      return batches.flatMap(({ requestId, executionIds }) =>
        executionIds.filter((id) => changed.has(id)).map((executionId) => ({ requestId, executionId })),
      );
    },
    [
      column("request_id", "bigint", ({ requestId }: Need) => requestId),
      column("execution_id", "bigint", ({ executionId }: Need) => executionId),
    ],
  ),
} satisfies Record<string, FlushPart>;

/** A table of a flush: one of the parts of its statement. */
export type FlushTable = keyof typeof FLUSH;

/** In the order in which their parameters are sent. */
export const TABLES = Object.entries<FlushPart>(FLUSH) as [FlushTable, FlushPart][];

/** What a flush sends. */
export interface BulkColumns {
  /** The tables that it has rows for. */
  tables: ReadonlySet<FlushTable>;
  /** Their columns, in the order of the tables. */
  parameters: string[];
  /** It is of one execution and at most one batch, and has one row for each table. */
  isSingle: boolean;
}

/** The columns of a flush. */
export function flushColumns(flush: Flush): BulkColumns {
  const log: LogRows = { segments: [], rows: [] };
  for (const change of flush.executions) packSegments(change, change.events, log);
  const rows = { ...flush, ...log };
  const sent = TABLES.flatMap(([table, { send }]) => {
    const found = send(rows);
    return found === undefined ? [] : [{ table, found }];
  });
  const isSingle =
    flush.executions.length === 1 && flush.batches.length <= 1 && sent.every(({ found }) => found.rows === 1);
  const parameters = sent.flatMap(({ table, found }) => (isRead(table, isSingle) ? found.parameters : []));
  return { tables: new Set(sent.map(({ table }) => table)), parameters, isSingle };
}

/** Which executions a batch needs is not asked where there is one. */
export function isRead(table: FlushTable, isSingle: boolean): boolean {
  return table !== "needs" || !isSingle;
}
