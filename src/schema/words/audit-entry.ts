import type { JsonObject } from "./json.ts";

/** One row of the audit log. Nothing in it may be a secret: it is kept for long, and nothing of it can be taken back. */
export interface AuditEntry {
  actorKind: "operator" | "worker" | "user" | "anonymous" | "system";
  /** Name of the actor, if known. */
  actor?: string;
  /** For a user. */
  userId?: string;
  /** For a user: whom the identity provider vouched for. */
  issuer?: string;
  subject?: string;
  /** `credential.read`, `keychain.read`, `secrets.rotate`, …: a noun and a verb. */
  action: string;
  /** On what: `credential/pg_demo`. */
  resource: string;
  /** The rule that decided: `access:worker`. */
  rule: string;
  /** `error`: allowed, and it did not come about. */
  result: "allow" | "deny" | "error";
  address?: string;
  requestId?: string;
  /** The execution that it is about, or that asks. */
  executionId?: string;
  /** The command with which a worker asks, and the number of its claim. */
  commandId?: string;
  attempt?: number;
  detail?: JsonObject;
}
