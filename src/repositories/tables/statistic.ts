import { sql } from "drizzle-orm";
import { check, index, integer, primaryKey, smallint, text } from "drizzle-orm/pg-core";
import type { EndTally } from "../../ports/execution-store.ts";
import { count, document, flow, id, instant, name } from "./columns.ts";
import type { execution } from "./execution.ts";

/*
 * Statistics of executions that have ended: a rollup by playbook and time, so that nothing reads the log for them, and so that deleted
 * executions still count. An execution is in `uncounted_execution` from the flush that ends it until it is counted, in one transaction.
 */

/** Executions that have ended and are not counted yet. */
export const uncountedExecution = flow.table("uncounted_execution", {
  executionId: id("execution_id").primaryKey(),
  path: name("path").notNull(),
  status: text("status").$type<(typeof execution.$inferSelect)["status"]>().notNull(),
  endedAt: instant("ended_at").notNull(),
  tally: document<EndTally>("tally").notNull(),
});

/** Counts of a histogram (`platform/telemetry/histogram`): its buckets, and how many are in each. */
const histogram = (column: string) => ({
  buckets: smallint(`${column}_buckets`).array().notNull().default(sql`'{}'`),
  counts: integer(`${column}_counts`).array().notNull().default(sql`'{}'`),
});
const took = histogram("took");
const waited = histogram("waited");

/** Executions of a playbook that ended within a minute, an hour or a day (UTC). */
export const statistic = flow.table(
  "statistic",
  {
    /** Its length in seconds: 60, 3600 or 86400. */
    seconds: integer("seconds").notNull(),
    path: name("path").notNull(),
    /** When it begins. */
    at: instant("at").notNull(),
    completed: count("completed"),
    failed: count("failed"),
    cancelled: count("cancelled"),
    /** How long those took that completed or failed. */
    tookBuckets: took.buckets,
    tookCounts: took.counts,
    /** How long commands waited for a worker. */
    waitedBuckets: waited.buckets,
    waitedCounts: waited.counts,
  },
  (table) => [
    primaryKey({ name: "statistic_pkey", columns: [table.seconds, table.path, table.at] }),
    // All playbooks within a time, and what was kept for long enough.
    index("statistic_for_time").on(table.seconds, table.at),
    check("statistic_seconds", sql`seconds IN (60, 3600, 86400)`),
  ],
);

/** Runs of a playbook's steps, counted with their execution: by hours and days. */
export const stepStatistic = flow.table(
  "step_statistic",
  {
    seconds: integer("seconds").notNull(),
    path: name("path").notNull(),
    at: instant("at").notNull(),
    step: name("step").notNull(),
    runs: count("runs"),
    failed: count("failed"),
    tookBuckets: took.buckets,
    tookCounts: took.counts,
  },
  (table) => [
    primaryKey({ name: "step_statistic_pkey", columns: [table.seconds, table.path, table.at, table.step] }),
    index("step_statistic_for_time").on(table.seconds, table.at),
    check("step_statistic_seconds", sql`seconds IN (3600, 86400)`),
  ],
);

/**
 * What had ended before there were statistics: counted once, in the order of ids, from the rows that are left. No row: all of it is
 * counted.
 */
export const statisticBacklog = flow.table("statistic_backlog", {
  /** The last execution that was looked at. */
  executionId: id("execution_id").primaryKey(),
  /** Those that ended later are in `uncounted_execution`. */
  endedBefore: instant("ended_before").notNull(),
});
