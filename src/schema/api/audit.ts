import * as v from "valibot";
import { IdInput, IdText, NextCursor, PageQuery, storableText, TimeInput, Timestamp } from "../words/wire.ts";
import { UserId } from "./auth.ts";

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
  execution_id: v.exactOptional(v.pipe(IdInput, v.description("About this execution, or asked by it."))),
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
  issuer: v.nullable(v.pipe(v.string(), v.description("Identity provider of the user."))),
  subject: v.nullable(v.pipe(v.string(), v.description("The user's name there."))),
  action: v.string(),
  resource: v.string(),
  rule: v.pipe(v.string(), v.description("What decided.")),
  result: v.picklist(AUDIT_RESULTS),
  address: v.nullable(v.string()),
  request_id: v.nullable(IdText),
  execution_id: v.nullable(v.pipe(IdText, v.description("The execution that it was about, or that asked."))),
  command_id: v.nullable(v.pipe(IdText, v.description("The command in whose name a worker asked."))),
  attempt: v.nullable(v.pipe(v.number(), v.description("Which claim of the command."))),
  detail: v.nullable(v.record(v.string(), v.unknown())),
});
export type AuditItem = v.InferOutput<typeof AuditItem>;

/** Answer of `GET /api/auth/audit`, newest first. */
export const AuditAnswer = v.object({ entries: v.array(AuditItem), next_cursor: NextCursor });
export type AuditAnswer = v.InferOutput<typeof AuditAnswer>;

/** A place in a chain of the audit log, and the hash of the row there. */
const ChainPlace = v.object({
  chain: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000)),
  seq: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
  hash: v.pipe(v.string(), v.regex(/^([0-9a-f]{64})?$/, "must be a SHA-256 in hex")),
});
export type ChainPlace = v.InferOutput<typeof ChainPlace>;

/** Ends of chains, as an earlier verification gave them. */
export const ChainHeads = v.pipe(v.array(ChainPlace), v.maxLength(1_000));

/** Body of `POST /api/auth/audit/verify`. */
export const AuditVerifyBody = v.object({
  after: v.exactOptional(v.pipe(ChainPlace, v.description("Where to go on: `next` of the answer before."))),
  heads: v.exactOptional(
    v.pipe(
      ChainHeads,
      v.description("`heads` of an earlier verification, which must still be there. For the first call."),
    ),
  ),
});

/** What is wrong at one place of the log. */
export const AuditProblem = v.object({
  kind: v.picklist(["changed", "missing", "reordered", "unchained"]),
  chain: v.nullable(v.number()),
  seq: v.nullable(v.pipe(v.number(), v.description("The place in the chain; of missing rows the first."))),
  audit_id: v.nullable(IdText),
  message: v.string(),
});
export type AuditProblem = v.InferOutput<typeof AuditProblem>;

/** Answer of `POST /api/auth/audit/verify`. */
export const AuditVerifyAnswer = v.object({
  rows: v.pipe(v.number(), v.description("Rows that this call has checked.")),
  before: v.pipe(v.number(), v.description("Rows of older versions, in no chain; counted by the first call.")),
  problems: v.array(AuditProblem),
  heads: v.pipe(
    v.array(ChainPlace),
    v.description("The end of each chain. Keep them elsewhere, and send them next time."),
  ),
  next: v.nullable(v.pipe(ChainPlace, v.description("Where the next call goes on; null at the end."))),
});
