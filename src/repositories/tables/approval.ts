import { sql } from "drizzle-orm";
import { boolean, check, index, integer, primaryKey, text } from "drizzle-orm/pg-core";
import type { ApprovalDecision, ApprovalStatus } from "../../schema/words/approval.ts";
import { createdAt, document, flow, id, instant, name } from "./columns.ts";

/*
 * Approvals for people: lists, forms, and messages that are to be sent. A projection: the log has the truth, and by it alone an execution
 * goes on.
 */

/** One row per approval, until its execution is deleted. */
export const approval = flow.table(
  "approval",
  {
    approvalId: id("approval_id").primaryKey(),
    executionId: id("execution_id").notNull(),
    commandId: id("command_id").notNull(),
    step: text("step").notNull(),
    /** Null outside loops. */
    iteration: integer("iteration"),
    path: name("path").notNull(),
    title: text("title").notNull(),
    description: text("description"),
    /** JSON Schema; null: nothing is asked for besides the decision. */
    form: document("form"),
    /** Who may decide, as `role:NAME` and `user:EMAIL`. */
    approvers: text("approvers").array().notNull(),
    /** So may users who may execute the playbook. */
    byPath: boolean("by_path").notNull(),
    notStarter: boolean("not_starter").notNull(),
    required: integer("required").notNull(),
    rejections: integer("rejections").notNull(),
    linkLogin: boolean("link_login").notNull(),
    status: text("status").$type<ApprovalStatus>().notNull(),
    openedAt: instant("opened_at").notNull().defaultNow(),
    /** When it expires; null: never. */
    dueAt: instant("due_at"),
    closedAt: instant("closed_at"),
  },
  (table) => [
    // Lists of those that are open, the newest first, and of all.
    index("approval_for_open").on(table.approvalId).where(sql`status = 'open'`),
    index("approval_for_execution").on(table.executionId),
    check("approval_status", sql`status IN ('open', 'approved', 'rejected', 'expired', 'cancelled')`),
    check("approval_end", sql`(closed_at IS NULL) = (status = 'open')`),
  ],
);

/** What people have said, one row each. */
export const approvalDecision = flow.table(
  "approval_decision",
  {
    approvalId: id("approval_id").notNull(),
    /** The person, as the audit log names them; `link`: a caller with a link; `link:` and an address: with the link of that addressee. */
    decidedBy: text("decided_by").notNull(),
    decision: text("decision").$type<ApprovalDecision["decision"]>().notNull(),
    decidedAt: instant("decided_at").notNull(),
    data: document("data"),
    comment: text("comment"),
    /** The message whose link was used. */
    link: integer("link"),
  },
  (table) => [
    primaryKey({ name: "approval_decision_pkey", columns: [table.approvalId, table.decidedBy] }),
    check("approval_decision_word", sql`decision IN ('approve', 'reject')`),
  ],
);

/** Playbooks that tell people of an approval: run once each. */
export const approvalMessage = flow.table(
  "approval_message",
  {
    approvalId: id("approval_id").notNull(),
    /** Of the approval, from 1. */
    number: integer("number").notNull(),
    /** Who alone has its link; null: everybody who gets it. */
    addressee: text("addressee"),
    playbook: text("playbook").notNull(),
    input: document("input").notNull(),
    createdAt: createdAt(),
    /** A server sends it, until then; then another server may. */
    takenUntil: instant("taken_until"),
    sentAt: instant("sent_at"),
    /** The execution that tells people. */
    sentExecutionId: id("sent_execution_id"),
    /** Why it is missing. */
    error: text("error"),
  },
  (table) => [
    primaryKey({ name: "approval_message_pkey", columns: [table.approvalId, table.number] }),
    index("approval_message_for_work").on(table.createdAt).where(sql`sent_at IS NULL`),
  ],
);
