import { sql } from "drizzle-orm";
import { check, index, primaryKey, text, uniqueIndex } from "drizzle-orm/pg-core";
import { BULK_ACTIONS, BULK_STATUSES, type BulkAction, type BulkStatus } from "../../schema/api/steering.ts";
import { count, createdAt, flow, id, instant, object, updatedAt } from "./columns.ts";

const listed = (words: readonly string[]) => sql.raw(words.map((word) => `'${word}'`).join(", "));

/** One row per operation on many executions. What it is about was fixed when it was asked for: `bulk_item`. */
export const bulk = flow.table(
  "bulk",
  {
    bulkId: id("bulk_id").primaryKey(),
    action: text("action").$type<BulkAction>().notNull(),
    status: text("status").$type<BulkStatus>().notNull(),
    /** As it was asked for, for people: what it meant is in the items. */
    filter: object("filter").notNull(),
    options: object("options").notNull(),
    /** Who asked for it, as the audit log names them. */
    askedBy: text("asked_by").notNull(),
    /** By whose rights each item is decided, a row of `auth.users`; null: an operator's. */
    userId: id("user_id"),
    /** The rest of what the audit log says of them, for the rows of its items. */
    asker: object("asker").notNull().default({}),
    /** Whose idempotency key the call had, where it had one: keys are unique per caller. */
    caller: text("caller"),
    idempotencyKey: text("idempotency_key"),
    /** SHA-256 of the call's body, in hex: the same key with another body is refused. */
    bodySha256: text("body_sha256"),
    matched: count("matched"),
    done: count("done"),
    failed: count("failed"),
    skipped: count("skipped"),
    /** The server that works on it, until its lease ends; then another server may. */
    worker: text("worker"),
    leaseExpiresAt: instant("lease_expires_at"),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
    endedAt: instant("ended_at"),
  },
  (table) => [
    // The next one to work on: that on which no server worked for longest. One that was cancelled has a worker until what that had begun ends.
    index("bulk_for_work").on(table.updatedAt).where(sql`status = 'running' OR worker IS NOT NULL`),
    uniqueIndex("bulk_for_idempotency").on(table.caller, table.idempotencyKey).where(sql`idempotency_key IS NOT NULL`),
    index("bulk_for_retention").on(table.endedAt).where(sql`ended_at IS NOT NULL`),
    check("bulk_action", sql`action IN (${listed(BULK_ACTIONS)})`),
    check("bulk_status", sql`status IN (${listed(BULK_STATUSES)})`),
    check("bulk_counts", sql`least(done, failed, skipped) >= 0 AND done + failed + skipped <= matched`),
    check("bulk_lease", sql`num_nulls(worker, lease_expires_at) IN (0, 2)`),
    check("bulk_idempotency", sql`num_nulls(caller, idempotency_key, body_sha256) IN (0, 3)`),
    check("bulk_end", sql`(ended_at IS NOT NULL) = (status IN ('completed', 'cancelled'))`),
  ],
);

/** What an item has come to. `begun`: a server was at it; if that died, it is decided again, and nothing is done twice. */
export const BULK_ITEM_STATES = ["pending", "begun", "done", "failed", "skipped"] as const;

/** The executions of an operation. */
export const bulkItem = flow.table(
  "bulk_item",
  {
    bulkId: id("bulk_id").notNull(),
    /** It may have been deleted since. Of a backfill: the number of the item, in its order. */
    executionId: id("execution_id").notNull(),
    /** Of a backfill: the time of the schedule. */
    dueAt: instant("due_at"),
    state: text("state").$type<(typeof BULK_ITEM_STATES)[number]>().notNull().default("pending"),
    /** Why it failed or was skipped: for programs, and for people. */
    code: text("code"),
    message: text("message"),
    /** The execution that a rerun or a backfill has started. */
    newExecutionId: id("new_execution_id"),
  },
  (table) => [
    primaryKey({ name: "bulk_item_pkey", columns: [table.bulkId, table.executionId] }),
    index("bulk_item_for_work").on(table.bulkId, table.executionId).where(sql`state IN ('pending', 'begun')`),
    index("bulk_item_for_failures").on(table.bulkId, table.executionId).where(sql`state = 'failed'`),
    index("bulk_item_for_started").on(table.bulkId, table.executionId).where(sql`new_execution_id IS NOT NULL`),
    check("bulk_item_state", sql`state IN (${listed(BULK_ITEM_STATES)})`),
    check("bulk_item_why", sql`(code IS NULL) = (message IS NULL) AND (code IS NOT NULL OR state <> 'failed')`),
  ],
);
