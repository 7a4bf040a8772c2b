import { sql } from "drizzle-orm";
import { check, index, integer, primaryKey, smallint, text, uniqueIndex } from "drizzle-orm/pg-core";
import type { OriginKind } from "../../schema/rules/origin.ts";
import type { Command } from "../../schema/words/command.ts";
import type { Json } from "../../schema/words/json.ts";
import { count, createdAt, document, flow, id, instant, name, object, updatedAt } from "./columns.ts";

/*
 * Projections of the event log, written in the transaction that writes the events. Both tables are updated all the time:
 * the migration gives them room in their pages (fillfactor), so that an update which changes no indexed column stays
 * within its page and touches no index.
 */

/** States of an execution. The last three are final. */
export const EXECUTION_STATUSES = ["PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"] as const;
/**
 * States of a command. PAUSED: not claimed, and not to be, as its execution is paused. PARKED: it waits for what no worker waits for. The
 * last three are final.
 */
export const COMMAND_STATUSES = [
  "PENDING",
  "PAUSED",
  "PARKED",
  "CLAIMED",
  "RUNNING",
  "COMPLETED",
  "FAILED",
  "CANCELLED",
] as const;

/**
 * One row per execution, small: each step rewrites `progress` and `last_event_id`, which no index covers. Workload and steps
 * are not here; the first event and the state have them.
 */
export const execution = flow.table(
  "execution",
  {
    executionId: id("execution_id").primaryKey(),
    catalogId: id("catalog_id").notNull(),
    path: name("path").notNull(),
    version: integer("version").notNull(),
    status: text("status").$type<(typeof EXECUTION_STATUSES)[number]>().notNull(),
    /** Percent: steps finished of steps known. */
    progress: smallint("progress").notNull().default(0),
    /** The newest event that the row covers. A state in memory with another event is out of date. */
    lastEventId: id("last_event_id").notNull(),
    parentExecutionId: id("parent_execution_id"),
    /** The step of the parent that waits for this execution. */
    parentStep: text("parent_step"),
    /** The execution at the top of the tree; its own id at the top. Shared keychain entries and workflow results end with it. */
    rootExecutionId: id("root_execution_id").notNull(),
    /** The user in whose name the tree runs, a row of `auth.users`; null where an operator started it. */
    startedBy: id("started_by"),
    /** Whom the identity provider had vouched for at the start: that user's `issuer` and `subject` at that moment. */
    startedIssuer: text("started_issuer"),
    startedSubject: text("started_subject"),
    /** What started it, where the row does not say it otherwise: empty, it is the parent, or else the user in whose name it runs. */
    startedKind: text("started_kind").$type<OriginKind>(),
    /** The trigger, the execution or the bulk operation that started it. Empty: see {@link execution.startedKind}. */
    startedId: id("started_id"),
    /** Its name at that moment, where nothing else keeps it: that of a trigger. */
    startedName: text("started_name"),
    result: document<Json>("result"),
    error: document("error"),
    startedAt: instant("started_at").notNull().defaultNow(),
    endedAt: instant("ended_at"),
    /** When it is to fail if it is still open. */
    deadlineAt: instant("deadline_at"),
    updatedAt: updatedAt(),
    /** The caller that started it, where the start had an idempotency key: keys are unique per caller. */
    caller: text("caller"),
    idempotencyKey: text("idempotency_key"),
    /** SHA-256 of the start's body, in hex: the same key with another body is refused. */
    bodySha256: text("body_sha256"),
    /** The execution that it repeats, from where a rerun begins. */
    rerunOf: id("rerun_of"),
    /** What the rerun was asked for, as lineage shows it: where from, and which values were replaced. */
    rerunRequest: document("rerun_request"),
    /** Whose key seals what passes between its steps: that of the first execution of a line of reruns; null: the root's. */
    sealedUnder: id("sealed_under"),
    /** Executions whose stored results it refers to: these are kept as long as it is. */
    refersTo: id("refers_to").array(),
  },
  (table) => [
    // Lists without a filter, and by time (ids grow in time), use the primary key.
    index("execution_for_list_by_status").on(table.status, table.executionId),
    index("execution_for_list_by_path").on(table.path, table.executionId),
    // What triggers, agents' clients and bulk operations started, and what was run again: few beside what people start, and children.
    index("execution_for_list_by_origin").on(table.startedKind, table.executionId).where(sql`started_kind IS NOT NULL`),
    index("execution_for_list_by_origin_id").on(table.startedId, table.executionId).where(sql`started_id IS NOT NULL`),
    // What is open of a trigger: whether it may start another one.
    index("execution_for_overlap").on(table.startedId).where(sql`started_kind = 'trigger' AND ended_at IS NULL`),
    // What failed with a code.
    index("execution_for_list_by_error")
      .on(sql`flow.error_part(error, 'code')`, table.executionId)
      .where(sql`error IS NOT NULL`),
    // Cancelling with its children, and the list of children.
    index("execution_for_children")
      .on(table.parentExecutionId, table.executionId)
      .where(sql`parent_execution_id IS NOT NULL`),
    // Those whose time is over, the most overdue first.
    index("execution_for_deadline").on(table.deadlineAt).where(sql`deadline_at IS NOT NULL AND ended_at IS NULL`),
    // Lineage.
    index("execution_for_reruns").on(table.rerunOf, table.executionId).where(sql`rerun_of IS NOT NULL`),
    // Whether a draft is still needed.
    index("execution_for_drafts").on(table.catalogId).where(sql`version = 0`),
    // Whether results of an execution are still needed.
    index("execution_for_references").using("gin", table.refersTo).where(sql`refers_to IS NOT NULL`),
    uniqueIndex("execution_for_idempotency")
      .on(table.caller, table.idempotencyKey)
      .where(sql`idempotency_key IS NOT NULL`),
    check("execution_status", sql`status IN ('PENDING', 'RUNNING', 'PAUSED', 'COMPLETED', 'FAILED', 'CANCELLED')`),
    check("execution_ended", sql`(ended_at IS NOT NULL) = (status IN ('COMPLETED', 'FAILED', 'CANCELLED'))`),
    check(
      "execution_error",
      sql`CASE WHEN error IS NULL THEN status <> 'FAILED' ELSE status IN ('FAILED', 'CANCELLED') END`,
    ),
    check("execution_result", sql`result IS NULL OR ended_at IS NOT NULL`),
    check("execution_progress", sql`progress BETWEEN 0 AND 100`),
    check("execution_last_event", sql`last_event_id >= execution_id`),
    check("execution_parent", sql`(parent_execution_id IS NULL) = (root_execution_id = execution_id)`),
    check("execution_parent_step", sql`parent_step IS NULL OR parent_execution_id IS NOT NULL`),
    check(
      "execution_started",
      sql`CASE WHEN started_kind IS NULL THEN num_nonnulls(started_id, started_name) = 0
        ELSE started_kind IN ('user', 'trigger', 'execution', 'rerun', 'bulk', 'mcp') END`,
    ),
    check("execution_idempotency", sql`num_nulls(caller, idempotency_key, body_sha256) IN (0, 3)`),
    check("execution_rerun", sql`rerun_of < execution_id AND (rerun_request IS NULL OR rerun_of IS NOT NULL)`),
  ],
);

/** What lineage shows of a deleted execution from which others descend. It goes with the last of them. */
export const deletedExecution = flow.table(
  "deleted_execution",
  {
    executionId: id("execution_id").primaryKey(),
    path: name("path").notNull(),
    version: integer("version").notNull(),
    status: text("status").$type<(typeof EXECUTION_STATUSES)[number]>().notNull(),
    parentExecutionId: id("parent_execution_id"),
    rerunOf: id("rerun_of"),
    deletedAt: instant("deleted_at").notNull().defaultNow(),
  },
  (table) => [
    // What came from an execution, as of executions that are there.
    index("deleted_execution_for_children")
      .on(table.parentExecutionId, table.executionId)
      .where(sql`parent_execution_id IS NOT NULL`),
    index("deleted_execution_for_reruns").on(table.rerunOf, table.executionId).where(sql`rerun_of IS NOT NULL`),
  ],
);
/** Labels of executions, one each: words of people, by which lists are filtered. Written with the execution, and never changed. */
export const executionLabel = flow.table(
  "execution_label",
  {
    executionId: id("execution_id").notNull(),
    name: name("name").notNull(),
    value: name("value").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.executionId, table.name] }),
    index("execution_label_for_list").on(table.name, table.value, table.executionId),
  ],
);

/**
 * One row per open command: its end deletes it, and the log keeps it. Of those that have ended a few stay, where a worker may still
 * have to be told to stop (`services/orchestration/rounds/change-set`), and those that an older version has left. A PENDING row is
 * also the outbox: a worker that missed the notification finds it by polling. Its id contains its age (`firstIdAt`), so "pending
 * for a minute" is a range of ids. Ended commands of an execution have no index: its events contain them, and their rows are
 * deleted by age, a range of the primary key.
 */
export const command = flow.table(
  "command",
  {
    commandId: id("command_id").primaryKey(),
    executionId: id("execution_id").notNull(),
    catalogId: id("catalog_id").notNull(),
    step: text("step").notNull(),
    status: text("status").$type<(typeof COMMAND_STATUSES)[number]>().notNull().default("PENDING"),
    /** Number of claims: the fencing token. A report with a different number changes nothing. */
    attempt: count("attempt"),
    /** Kinds of its tasks: a worker claims what it has all kinds of. */
    kinds: text("kinds").array().notNull(),
    /** Labels that the worker must have. */
    labels: object("labels"),
    /** The worker's input, written once: step run, iterations, context. Its size is bounded; large values are references. */
    body: document<Command>("body").notNull(),
    /** The worker that holds it. This and the next two are set exactly while it is claimed. */
    worker: text("worker"),
    claimedAt: instant("claimed_at"),
    /** Renewed by heartbeats. It is in no index: a renewal stays within its page. */
    leaseExpiresAt: instant("lease_expires_at"),
    /** Iterations that people have ended while a worker had the command, which its heartbeats tell it. Null: none. */
    stoppedIterations: integer("stopped_iterations").array(),
    createdAt: createdAt(),
    endedAt: instant("ended_at"),
  },
  (table) => [
    // The reaper looks for those that are older than an id.
    index("command_for_claim").on(table.commandId).where(sql`status = 'PENDING'`),
    // Claims take the oldest command that a worker can run; the existing requirements are read by jumping from one to the next.
    // Labels by their hash: an index entry has at most 2.7 KB.
    index("command_for_group")
      .on(table.kinds, sql`coalesce(jsonb_hash_extended(labels, 0), 1)`, table.commandId)
      .where(sql`status = 'PENDING'`),
    // Heartbeats and pools read a worker's commands; the reaper walks all of it: at most the workers' capacity.
    index("command_for_reaper").on(table.worker, table.commandId).where(sql`status IN ('CLAIMED', 'RUNNING')`),
    // Cancelling an execution, and proving that a finished one left nothing open.
    index("command_for_cancel")
      .on(table.executionId)
      .where(sql`status IN ('PENDING', 'PAUSED', 'PARKED', 'CLAIMED', 'RUNNING')`),
    check(
      "command_status",
      sql`status IN ('PENDING', 'PAUSED', 'PARKED', 'CLAIMED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED')`,
    ),
    check(
      "command_lease",
      sql`num_nulls(worker, claimed_at, lease_expires_at) = CASE WHEN status IN ('CLAIMED', 'RUNNING') THEN 0 ELSE 3 END`,
    ),
    check("command_ended", sql`(ended_at IS NOT NULL) = (status IN ('COMPLETED', 'FAILED', 'CANCELLED'))`),
    check("command_attempt", sql`attempt >= 0 AND (attempt > 0 OR status IN ('PENDING', 'PAUSED', 'CANCELLED'))`),
    check("command_after_execution", sql`command_id > execution_id`),
  ],
);
