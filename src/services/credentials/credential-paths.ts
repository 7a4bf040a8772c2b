import { findPath } from "../../repositories/access/access.ts";
import { readCredentialDefault } from "../../repositories/credentials/credential-policy.ts";
import type { CredentialRow } from "../../repositories/credentials/credentials.ts";
import type { Database } from "../../repositories/database/database.ts";
import { matchesPattern } from "../../schema/rules/access-rules.ts";
import { type CredentialDefault, credentialPlaybooks } from "../../schema/rules/credential-playbooks.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";

/** A credential without its data. */
export interface KnownCredential extends CredentialRow {
  /** Paths and patterns of the playbooks that may use it, by its `meta` or by the default. */
  playbooks: string[];
}

/** The record with the playbooks that may use it. */
export function withPlaybooks<T extends CredentialRow>(row: T, byDefault: CredentialDefault): T & KnownCredential {
  return { ...row, playbooks: credentialPlaybooks(row.meta, byDefault).patterns };
}

/** The default that was given, else that of the database, which is read once: nothing changes it while servers run. */
export function defaultOf(database: Database, given: CredentialDefault | undefined): () => Promise<CredentialDefault> {
  let known = given;
  return async () => {
    known ??= await readCredentialDefault(database.sql);
    return known;
  };
}

/** What a credential is asked for. */
export interface CredentialUse {
  /** The execution whose task needs it. */
  executionId?: string;
  /** The playbook whose trigger needs it, where there is no execution yet. */
  path?: string;
}

/**
 * Throws `FlowError` FORBIDDEN if a credential is not for the playbook that the execution runs, or that the trigger starts, so that the accounts of the service
 * and of a team are not available to every author of a playbook. A worker names the execution it asks for; an operator need not.
 */
export async function checkCredentialUse(
  database: Database,
  { name, meta }: { name: string; meta: JsonObject | null },
  { executionId, path: ofTrigger }: CredentialUse,
  { isWorker, byDefault }: { isWorker: boolean; byDefault: CredentialDefault },
): Promise<void> {
  if (executionId === undefined && ofTrigger === undefined && !isWorker) return;
  const { listed, patterns } = credentialPlaybooks(meta, byDefault);
  if (!listed && byDefault === "open") return;
  const path = executionId === undefined ? ofTrigger : await findPath(database, { executionId });
  if (path !== undefined && patterns.some((pattern) => matchesPattern(pattern, path))) return;
  const who = path === undefined ? "a request without one of their executions" : `playbook '${path}'`;
  const whom = patterns.length > 0 ? `for the playbooks ${patterns.join(", ")} and` : "for no playbook yet, and so";
  const remedy =
    path === undefined
      ? ""
      : `. An operator says for which: flow credentials paths ${name} ${[...patterns, path].join(" ")}`;
  throw new FlowError("FORBIDDEN", `The credential '${name}' is ${whom} not for ${who}${remedy}`, {
    detail: { path: path ?? null },
  });
}
