import { sql } from "drizzle-orm";
import { boolean, check, index, integer, text, uniqueIndex } from "drizzle-orm/pg-core";
import { DELIVERY_VERDICTS, type DeliveryVerdict } from "../../schema/triggers/deliveries.ts";
import {
  FIRE_STATUSES,
  type FireStatus,
  TRIGGER_KINDS,
  type Trigger,
  type TriggerKind,
} from "../../schema/triggers/trigger.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { createdAt, document, flow, id, instant, name, updatedAt } from "./columns.ts";

const listed = (words: readonly string[]) => sql.raw(words.map((word) => `'${word}'`).join(", "));

/** The triggers of the newest versions, one row each. A version that leaves one out deletes it; its fires stay as long as executions do. */
export const trigger = flow.table(
  "trigger",
  {
    triggerId: id("trigger_id").primaryKey(),
    /** The catalog path of the document that it stands in. */
    document: name("document").notNull(),
    /** The playbook that it starts: the document itself, or the one that a trigger document names. */
    path: name("path").notNull(),
    name: name("name").notNull(),
    kind: text("kind").$type<TriggerKind>().notNull(),
    definition: document<Trigger>("definition").notNull(),
    /** Version of the document. */
    version: integer("version").notNull(),
    /** Who registered it, a row of `auth.users`: the playbooks that its executions call are those that this user may execute. Null: an operator. */
    userId: id("user_id"),
    /** What is looked up when something comes from outside: the path of a webhook. */
    address: name("address"),
    enabled: boolean("enabled").notNull().default(true),
    /** Since when it is there: intervals are counted from then. */
    activeSince: instant("active_since").notNull().defaultNow(),
    /** Of a schedule: the last time that was decided about, or when it was enabled. */
    countedFrom: instant("counted_from").notNull().defaultNow(),
    /** Of a schedule that is enabled: its next time. */
    nextDueAt: instant("next_due_at"),
    /** When a server is to look at it: its next time, put off by the jitter. While a server does so, when another one may. */
    wakeAt: instant("wake_at"),
    /** Who looks at it: what another one writes has no effect. */
    takenBy: text("taken_by"),
    lastFireAt: instant("last_fire_at"),
    /** Who decides about its fires one after another, and until when: only where executions of it may not overlap. */
    decidedBy: text("decided_by"),
    decidedUntil: instant("decided_until"),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (table) => [
    // The name of a trigger among those of a playbook; also their list.
    uniqueIndex("trigger_path_name").on(table.path, table.name),
    uniqueIndex("trigger_address").on(table.kind, table.address).where(sql`address IS NOT NULL`),
    index("trigger_for_document").on(table.document),
    // Those whose time has come, the most overdue first.
    index("trigger_for_due").on(table.wakeAt).where(sql`wake_at IS NOT NULL`),
    // Those that wait for something else than a time.
    index("trigger_for_kind").on(table.kind, table.triggerId).where(sql`enabled AND kind <> 'schedule'`),
    check("trigger_kind", sql`kind IN (${listed(TRIGGER_KINDS)})`),
    check("trigger_due", sql`next_due_at IS NULL OR (enabled AND kind = 'schedule')`),
    check("trigger_decided", sql`num_nulls(decided_by, decided_until) IN (0, 2)`),
  ],
);

/**
 * What triggers have fired, or should have. A row is written before its execution is started, so that a server which dies in between leaves
 * one that another server takes up; the execution has the row's key as its idempotency key.
 */
export const triggerFire = flow.table(
  "trigger_fire",
  {
    fireId: id("fire_id").primaryKey(),
    triggerId: id("trigger_id").notNull(),
    /** What makes it this fire, and none twice: a time, or the id of a delivery. */
    key: name("key").notNull(),
    dueAt: instant("due_at").notNull(),
    status: text("status").$type<FireStatus>().notNull(),
    executionId: id("execution_id"),
    reason: text("reason"),
    /** What its execution is started with; forgotten when that is decided. */
    input: document<JsonObject>("input"),
    /** Whether it waits for the end of an open execution where others are skipped: a time that is made up for. */
    waits: boolean("waits").notNull().default(false),
    /** Whether it starts however many executions are open. */
    always: boolean("always").notNull().default(false),
    /** The execution whose end it is for. */
    causeId: id("cause_id"),
    /** Of a queued one: when a server is to decide about it. In the future while one does so. */
    wakeAt: instant("wake_at"),
    firedAt: instant("fired_at").notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("trigger_fire_key").on(table.triggerId, table.key),
    index("trigger_fire_for_list").on(table.triggerId, table.fireId),
    index("trigger_fire_for_work").on(table.wakeAt, table.fireId).where(sql`wake_at IS NOT NULL`),
    // What waits behind an open execution, in its order.
    index("trigger_fire_for_queue").on(table.triggerId, table.dueAt, table.fireId).where(sql`status = 'queued'`),
    // From an execution back to what caused it.
    index("trigger_fire_for_execution").on(table.executionId).where(sql`execution_id IS NOT NULL`),
    // From an execution to what its end has started.
    index("trigger_fire_for_cause").on(table.causeId, table.executionId).where(sql`cause_id IS NOT NULL`),
    check("trigger_fire_status", sql`status IN (${listed(FIRE_STATUSES)})`),
    check("trigger_fire_started", sql`(execution_id IS NOT NULL) = (status = 'started')`),
    check("trigger_fire_queued", sql`(wake_at IS NOT NULL) = (status = 'queued')`),
    check("trigger_fire_reason", sql`reason IS NOT NULL OR status IN ('started', 'queued')`),
  ],
);

/**
 * The last deliveries of webhooks, for people: who knows an address decides how many come, so of each trigger there are some that were
 * taken and some that were refused, and those of a busy minute share a row. Nothing depends on them.
 */
export const triggerDelivery = flow.table(
  "trigger_delivery",
  {
    deliveryId: id("delivery_id").primaryKey(),
    triggerId: id("trigger_id").notNull(),
    verdict: text("verdict").$type<DeliveryVerdict>().notNull(),
    isRefused: boolean("is_refused").notNull(),
    reason: text("reason"),
    /** Where it comes from; null: unknown, or not the same of all. */
    address: text("address"),
    /** Length of the body; null: it was not read. */
    bytes: integer("bytes"),
    executionId: id("execution_id"),
    /** Deliveries that this row is about. */
    count: integer("count").notNull().default(1),
    firstAt: instant("first_at").notNull(),
    lastAt: instant("last_at").notNull(),
  },
  (table) => [
    index("trigger_delivery_for_list").on(table.triggerId, table.isRefused, table.deliveryId),
    check("trigger_delivery_verdict", sql`verdict IN (${listed(DELIVERY_VERDICTS)})`),
    check("trigger_delivery_count", sql`count >= 1`),
  ],
);

/**
 * Ends of executions that some trigger may watch, written with the end itself, and deleted when the triggers have fired. Where no trigger watches
 * none is written.
 */
export const watchedEnd = flow.table(
  "watched_end",
  {
    executionId: id("execution_id").primaryKey(),
    /** When a server is to look at it; in the future while one does so. */
    wakeAt: instant("wake_at").notNull().defaultNow(),
  },
  (table) => [index("watched_end_for_work").on(table.wakeAt)],
);
