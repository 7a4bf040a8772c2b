import { sql } from "drizzle-orm";
import { bigint, check, index, integer, text, uniqueIndex } from "drizzle-orm/pg-core";
import { auth, id, instant, object } from "./columns.ts";

/**
 * Actions of callers: actor, action, resource, the rule that decided, and the result. Rows are only added: a trigger refuses every change, and
 * every removal but that of retention (`repositories/access/audit`). No row holds a secret.
 *
 * Triggers link each row to the one before it in its chain (`services/access/audit-chain` verifies). Rows of older versions of
 * flow are in no chain.
 */
export const auditLog = auth.table(
  "audit_log",
  {
    auditId: bigint("audit_id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    at: instant("at").notNull().defaultNow(),
    actorKind: text("actor_kind").$type<"operator" | "worker" | "user" | "anonymous" | "system">().notNull(),
    /** The actor's name, if known: a worker's, a user's address. */
    actor: text("actor"),
    /** A row of `auth.users`, for kind `user`. */
    userId: id("user_id"),
    /** Whom the identity provider vouched for, for kind `user`: an address may change hands, these two do not. */
    issuer: text("issuer"),
    subject: text("subject"),
    /** `credential.read`, `credential.write`, `secrets.rotate`, …. */
    action: text("action").notNull(),
    /** On what: `credential/pg_demo`. */
    resource: text("resource").notNull(),
    /** The rule that decided: `access:worker` for a route that takes a worker's token at least. */
    rule: text("rule").notNull(),
    result: text("result").$type<"allow" | "deny" | "error">().notNull(),
    address: text("address"),
    /** `x-request-id` of the call. */
    requestId: id("request_id"),
    /** The execution that it was about, or that asked. */
    executionId: id("execution_id"),
    /** The command with which a worker asked, and the number of its claim. */
    commandId: id("command_id"),
    attempt: integer("attempt"),
    detail: object("detail"),
    /** The chain of this row: a row of `auth.audit_chain`. */
    chain: integer("chain"),
    /** Its place there, from 1 on, without gaps. */
    chainSeq: bigint("chain_seq", { mode: "number" }),
    /** `hash` of the row before it; 64 zeros for the first. */
    previousHash: text("previous_hash"),
    /** SHA-256 of all other columns, in hex. */
    hash: text("hash"),
  },
  (table) => [
    index("audit_log_for_retention").on(table.at),
    // Actions on one credential.
    index("audit_log_for_resource").on(table.resource, table.auditId),
    // What was decided about one execution.
    index("audit_log_for_execution").on(table.executionId, table.auditId).where(sql`execution_id IS NOT NULL`),
    uniqueIndex("audit_log_chain").on(table.chain, table.chainSeq).where(sql`chain IS NOT NULL`),
    check("audit_log_actor_kind", sql`actor_kind IN ('operator', 'worker', 'user', 'anonymous', 'system')`),
    check("audit_log_result", sql`result IN ('allow', 'deny', 'error')`),
    check("audit_log_user", sql`user_id IS NULL OR actor_kind = 'user'`),
  ],
);

/**
 * Where each chain of {@link auditLog} begins and ends. There are 64: a transaction that adds a row takes one that no other
 * transaction holds, so that none waits for the commit of another. Only triggers change these rows.
 */
export const auditChain = auth.table(
  "audit_chain",
  {
    chain: integer("chain").primaryKey(),
    /** The oldest row that retention has left. */
    firstSeq: bigint("first_seq", { mode: "number" }).notNull().default(1),
    lastSeq: bigint("last_seq", { mode: "number" }).notNull().default(0),
    /** `hash` of the newest row. */
    lastHash: text("last_hash").notNull().default(sql`repeat('0', 64)`),
    /** The newest row of the log before there were chains: all after it are in one. */
    afterAuditId: bigint("after_audit_id", { mode: "number" }).notNull(),
  },
  () => [check("audit_chain_range", sql`first_seq >= 1 AND last_seq >= first_seq - 1`)],
);
