import * as v from "valibot";
import { IdInput, IdText, NextCursor, PageQuery, storableText, Timestamp } from "../words/wire.ts";
import { UserId } from "./auth.ts";
import { TimeInput } from "./executions.ts";

/** The audit log, for users with the permission. */

/** Outcome of an audited action. */
export const AUDIT_RESULTS = ["allow", "deny", "error"] as const;

/** Query of `GET /api/auth/audit`. */
export const AuditQuery = v.object({
  ...PageQuery.entries,
  actor: v.exactOptional(v.pipe(storableText(320), v.description("Address of a user, or name of a worker."))),
  user_id: v.exactOptional(IdInput),
  action: v.exactOptional(v.pipe(storableText(100), v.description("As `playbook.execute`."))),
  resource: v.exactOptional(v.pipe(storableText(600), v.description("As `playbook/team/report`."))),
  result: v.exactOptional(v.picklist(AUDIT_RESULTS)),
  since: v.exactOptional(TimeInput),
  until: v.exactOptional(TimeInput),
});

/** One row of the log. */
export const AuditItem = v.object({
  audit_id: IdText,
  at: Timestamp,
  actor_kind: v.picklist(["operator", "worker", "user", "anonymous", "system"]),
  actor: v.nullable(v.string()),
  user_id: v.nullable(UserId),
  action: v.string(),
  resource: v.string(),
  rule: v.pipe(v.string(), v.description("What decided.")),
  result: v.picklist(AUDIT_RESULTS),
  address: v.nullable(v.string()),
  request_id: v.nullable(IdText),
  detail: v.nullable(v.record(v.string(), v.unknown())),
});
export type AuditItem = v.InferOutput<typeof AuditItem>;

/** Answer of `GET /api/auth/audit`, newest first. */
export const AuditAnswer = v.object({ entries: v.array(AuditItem), next_cursor: NextCursor });
export type AuditAnswer = v.InferOutput<typeof AuditAnswer>;
