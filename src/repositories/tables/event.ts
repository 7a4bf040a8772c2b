import { sql } from "drizzle-orm";
import { bigint, check, doublePrecision, integer, primaryKey, smallint, text } from "drizzle-orm/pg-core";
import { createdAt, document, flow, id } from "./columns.ts";

/**
 * The event log, the source of truth: written once, never changed, dropped by whole partitions. A row is a **segment**: the events
 * that one flush wrote of an execution, as a JSON array in `body` (`orchestration/segments`). `event_id` is then that of the last
 * one, so that the key finds the segments after an event, and `node_id` the playbook's path; the columns of single events are
 * empty. Events written before there were segments, and those with texts that PostgreSQL's JSON functions refuse, are a row each; their columns are
 * the fields of the language's event record. The view `flow.event` shows both as single events.
 *
 * The migration partitions it by ranges of `event_id`, a month each (`event-partitions.ts`); ids grow in time, so a month
 * is a range of ids. No foreign keys and one index: the log is what every step writes.
 */
export const eventLog = flow.table(
  "event_log",
  {
    eventId: id("event_id").notNull(),
    executionId: id("execution_id").notNull(),
    catalogId: id("catalog_id").notNull(),
    eventType: text("event_type"),
    nodeId: text("node_id"),
    nodeName: text("node_name"),
    nodeType: text("node_type").$type<"playbook" | "step" | "task">(),
    status: text("status"),
    createdAt: createdAt(),
    parentEventId: id("parent_event_id"),
    parentExecutionId: id("parent_execution_id"),
    commandId: id("command_id"),
    worker: text("worker"),
    attempt: integer("attempt"),
    /** Counted by workers: up to the largest exact JSON number. */
    iteration: bigint("iteration", { mode: "number" }),
    page: bigint("page", { mode: "number" }),
    stepRunId: text("step_run_id"),
    taskRunId: text("task_run_id"),
    /** As it was measured: a worker's clock may give fractions. */
    durationMs: doublePrecision("duration_ms"),
    /** The reference envelope: status, reference?, bounded context. Never a large body; the migration sets EXTERNAL. */
    result: document("result"),
    error: document("error"),
    meta: document("meta"),
    /** How many events a segment has. */
    events: smallint("events"),
    /** A segment's events, as the engine has them, with their ids. The migration sets EXTERNAL. */
    body: text("body"),
  },
  (table) => [
    // The only index: pages of an execution's events, folding from a snapshot, deleting an execution. All of them also say
    // `event_id > …` (an event is younger than its execution), and so skip the partitions before.
    primaryKey({ name: "event_pkey", columns: [table.executionId, table.eventId] }),
    check("event_id_range", sql`event_id > 0 AND event_id < 9007199254740992`),
    check("event_after_execution", sql`event_id > execution_id`),
    check("event_node_type", sql`node_type IN ('playbook', 'step', 'task')`),
    check("event_attempt", sql`attempt >= 0`),
    check("event_duration", sql`duration_ms >= 0`),
  ],
);

/**
 * The state of an execution after the events up to `event_id`: loading it means this row and the events after it. Apart from
 * {@link execution}, so that what each step writes stays small; written now and then, and when an execution is unloaded.
 */
export const executionSnapshot = flow.table(
  "execution_snapshot",
  {
    executionId: id("execution_id").primaryKey(),
    eventId: id("event_id").notNull(),
    /** Form of `state`. A row of a form that the program does not know is ignored: the events give the same state. */
    format: smallint("format").notNull(),
    /** JSON as text: nothing looks into it here, and text is stored without being parsed. */
    state: text("state").notNull(),
    createdAt: createdAt(),
  },
  () => [
    check("execution_snapshot_event", sql`event_id > execution_id`),
    check("execution_snapshot_format", sql`format >= 1`),
  ],
);

/**
 * Older states of an execution, for its state as of an event long ago: how many are kept says `orchestration/past-snapshots`. Apart
 * from {@link executionSnapshot}, so that loading reads one row by its key, and servers of a version before this one write what they wrote.
 */
export const pastSnapshot = flow.table(
  "past_snapshot",
  {
    executionId: id("execution_id").notNull(),
    eventId: id("event_id").notNull(),
    /** Counts the snapshots of its execution, from 1. */
    number: integer("number").notNull(),
    format: smallint("format").notNull(),
    state: text("state").notNull(),
    createdAt: createdAt(),
  },
  (table) => [
    // The only index: the newest one before an event, and all of an execution.
    primaryKey({ name: "past_snapshot_pkey", columns: [table.executionId, table.eventId] }),
    check("past_snapshot_event", sql`event_id > execution_id`),
    check("past_snapshot_number", sql`number >= 1`),
    check("past_snapshot_format", sql`format >= 1`),
  ],
);
