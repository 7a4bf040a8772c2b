import { findPath } from "../../repositories/access/access.ts";
import type { Database } from "../../repositories/database/database.ts";
import { matchesPattern } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type JsonObject, own } from "../../schema/words/json.ts";

/** What a credential is asked for. */
export interface CredentialUse {
  /** The execution whose task needs it. */
  executionId?: string;
}

/**
 * Throws `FlowError` FORBIDDEN when a credential is for some playbooks alone and the execution is none of theirs. `playbooks` of
 * its `meta` are their paths, as patterns: so the accounts of the service itself are not given to whoever may write a playbook.
 * A worker says for whom it asks; an operator who reads it for nobody may.
 */
export async function checkCredentialUse(
  database: Database,
  { name, meta }: { name: string; meta: JsonObject | null },
  { executionId }: CredentialUse,
  isWorker: boolean,
): Promise<void> {
  const patterns = meta === null ? undefined : own(meta, "playbooks");
  if (patterns === undefined || patterns === null || (executionId === undefined && !isWorker)) return;
  const path = executionId === undefined ? undefined : await findPath(database, { executionId });
  // What is written otherwise than as a list is for nobody, rather than for everybody.
  const allowed = Array.isArray(patterns) ? patterns.filter((pattern) => typeof pattern === "string") : [];
  if (path !== undefined && allowed.some((pattern) => matchesPattern(pattern, path))) return;
  const who = path === undefined ? "whoever asks without one of their executions" : `playbook '${path}'`;
  throw new FlowError(
    "FORBIDDEN",
    `The credential '${name}' is for the playbooks ${allowed.join(", ")} and not for ${who}`,
    { detail: { path: path ?? null } },
  );
}
