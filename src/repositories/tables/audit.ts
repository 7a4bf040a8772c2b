import { sql } from "drizzle-orm";
import { bigint, check, index, text } from "drizzle-orm/pg-core";
import { auth, id, instant, object } from "./columns.ts";

/**
 * Actions of callers: actor, action, resource, the rule that decided, and the result. Rows are only added: a trigger refuses every change, and
 * every removal but that of retention (`repositories/access/audit`). No row holds a secret.
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
    detail: object("detail"),
  },
  (table) => [
    index("audit_log_for_retention").on(table.at),
    // Actions on one credential.
    index("audit_log_for_resource").on(table.resource, table.auditId),
    check("audit_log_actor_kind", sql`actor_kind IN ('operator', 'worker', 'user', 'anonymous', 'system')`),
    check("audit_log_result", sql`result IN ('allow', 'deny', 'error')`),
    check("audit_log_user", sql`user_id IS NULL OR actor_kind = 'user'`),
  ],
);
