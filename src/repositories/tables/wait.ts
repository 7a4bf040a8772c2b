import { sql } from "drizzle-orm";
import { boolean, check, index, text, uniqueIndex } from "drizzle-orm/pg-core";
import type { Wait } from "../../schema/words/command.ts";
import type { Json } from "../../schema/words/json.ts";
import { count, createdAt, document, flow, id, instant, name } from "./columns.ts";

/**
 * What parked commands wait for, one row each while their execution runs: of one that is paused only those for signals, without a time; the
 * others come back with the resumption. A projection: the log has the truth.
 */
export const wait = flow.table(
  "wait",
  {
    commandId: id("command_id").primaryKey(),
    executionId: id("execution_id").notNull(),
    kind: text("kind").$type<Wait["kind"]>().notNull(),
    /** When the command goes on by itself; null: never. */
    dueAt: instant("due_at"),
    /** A server wakes it, until then; then another server may. In no index: to take it touches none. */
    takenUntil: instant("taken_until"),
    /** Of a wait for a signal: its name, and its key, which is empty where it takes those without. */
    name: name("name"),
    key: name("key"),
    /** It was looked for signals that were kept for it. */
    isLooked: boolean("is_looked").notNull().default(true),
  },
  (table) => [
    // Those whose time has come, the most overdue first.
    index("wait_for_due").on(table.dueAt).where(sql`due_at IS NOT NULL`),
    // Those whom a signal to everyone reaches.
    index("wait_for_signal").on(table.name, table.key, table.executionId).where(sql`name IS NOT NULL`),
    index("wait_for_look").on(table.commandId).where(sql`NOT is_looked`),
    check("wait_kind", sql`kind IN ('timer', 'signal', 'approval', 'retry')`),
    check("wait_signal", sql`num_nulls(name, key) IN (0, 2)`),
  ],
);

/** What has become of a signal to everyone. `sending`: a server walks over those who wait for it. `kept`: none did, and one may come. */
export const SIGNAL_STATES = ["sending", "kept", "done"] as const;

/** Signals that were sent to all executions that wait for them, until they have reached them, or for as long as they are kept. */
export const signal = flow.table(
  "signal",
  {
    signalId: id("signal_id").primaryKey(),
    name: name("name").notNull(),
    /** Empty: without a key. */
    key: name("key").notNull(),
    /** The sender's name for it: sent again under it, the signal changes nothing. */
    senderId: name("sender_id"),
    /** Null once it has reached a wait. */
    data: document<Json>("data"),
    /** Who sent it, as the audit log names them. */
    sentBy: text("sent_by").notNull(),
    /** By whose rights it reaches executions, a row of `auth.users`; null: an operator's. */
    userId: id("user_id"),
    state: text("state").$type<(typeof SIGNAL_STATES)[number]>().notNull().default("sending"),
    /** Waits that it has ended. */
    reached: count("reached"),
    /** The execution that was told last; the walk goes on behind it. */
    walkedTo: id("walked_to"),
    /** The execution that takes a kept one, at this moment. */
    takenBy: id("taken_by"),
    /** A server works on it, until then; then another one may. */
    leaseExpiresAt: instant("lease_expires_at"),
    /** Until when it is kept if it reaches none. */
    keptUntil: instant("kept_until").notNull(),
    createdAt: createdAt(),
    /** When the row may go: its sender's name for it is known until then. */
    expiresAt: instant("expires_at").notNull(),
  },
  (table) => [
    uniqueIndex("signal_for_sender").on(table.name, table.key, table.senderId).where(sql`sender_id IS NOT NULL`),
    index("signal_for_work").on(table.signalId).where(sql`state = 'sending'`),
    index("signal_for_wait").on(table.name, table.key, table.signalId).where(sql`state <> 'done'`),
    index("signal_for_retention").on(table.expiresAt),
    check("signal_state", sql`state IN ('sending', 'kept', 'done')`),
    check("signal_reached", sql`reached >= 0`),
  ],
);
