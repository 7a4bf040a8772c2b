import { sql } from "drizzle-orm";
import { check, index, text } from "drizzle-orm/pg-core";
import type { Wait } from "../../schema/words/command.ts";
import { flow, id, instant } from "./columns.ts";

/**
 * What parked commands wait for, one row each while their execution runs: of one that is paused they come back with the resumption. A
 * projection: the log has the truth.
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
  },
  (table) => [
    // Those whose time has come, the most overdue first.
    index("wait_for_due").on(table.dueAt).where(sql`due_at IS NOT NULL`),
    check("wait_kind", sql`kind IN ('timer', 'signal')`),
  ],
);
