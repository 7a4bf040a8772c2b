import { sql } from "drizzle-orm";
import { check, index, text, uniqueIndex } from "drizzle-orm/pg-core";
import { count, createdAt, flow, id, instant, updatedAt } from "./columns.ts";

/** States of an accepted request. The last two are final. */
export const BATCH_STATES = ["accepted", "processing", "completed", "failed"] as const;

/**
 * Requests of workers that were accepted: their events are in the log, what follows from them is worked out afterwards.
 * Rows are kept a day at least, for replays of their keys, and deleted by age: a range of the primary key.
 */
export const batch = flow.table(
  "batch",
  {
    requestId: id("request_id").primaryKey(),
    /** The sender: idempotency keys are unique per caller. */
    caller: text("caller").notNull(),
    idempotencyKey: text("idempotency_key"),
    /** SHA-256 of the body, in hex: the same key with another body is refused. */
    bodySha256: text("body_sha256").notNull(),
    state: text("state").$type<(typeof BATCH_STATES)[number]>().notNull().default("accepted"),
    /** Why it failed, for programs: `processing_timeout` and the like. */
    code: text("code"),
    message: text("message"),
    /** The executions that its events belong to, and the events: together the keys into the log. */
    executionIds: id("execution_ids").array().notNull(),
    eventIds: id("event_ids").array().notNull(),
    commandsGenerated: count("commands_generated"),
    /** The server that works on it, until its lease ends; then another server may. */
    processor: text("processor"),
    leaseExpiresAt: instant("lease_expires_at"),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (table) => [
    uniqueIndex("batch_for_idempotency").on(table.caller, table.idempotencyKey).where(sql`idempotency_key IS NOT NULL`),
    // Batches that a dead server left, and the depth of the queue.
    index("batch_for_recovery").on(table.requestId).where(sql`state IN ('accepted', 'processing')`),
    check("batch_state", sql`state IN ('accepted', 'processing', 'completed', 'failed')`),
    check("batch_code", sql`(code IS NOT NULL) = (state = 'failed')`),
    check(
      "batch_lease",
      sql`num_nulls(processor, lease_expires_at) = CASE WHEN state = 'processing' THEN 0 ELSE 2 END`,
    ),
    check("batch_commands", sql`commands_generated >= 0`),
  ],
);
