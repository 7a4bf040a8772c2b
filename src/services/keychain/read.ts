import { coalesce } from "../../platform/concurrency/coalesce.ts";
import type { KeyRing } from "../../platform/crypto/key-ring.ts";
import type { Database } from "../../repositories/database/database.ts";
import { type KeychainRow, readGlobalEntry, readOwnedEntry } from "../../repositories/keychain/keychain.ts";
import { type KeychainScope, keptSchema } from "../../schema/api/keychain.ts";
import { secretProblems } from "../../schema/rules/secret-schema.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { defined } from "../../schema/words/defined.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { openContent } from "./content.ts";
import { cacheKeyPrefix, type KeychainRequest, requiredExecution } from "./placement.ts";

/** How an entry was found. */
export type KeychainEntry = { cacheKey: string } & (
  | ({ status: "success"; data: JsonObject } & KeychainRow)
  | { status: "expired"; autoRenew: false; expiresAt: Date }
  | ({ status: "expired"; autoRenew: true; expiresAt: Date; renewConfig?: JsonObject } & KeptByRenewal)
  | { status: "not_found" }
);

/** The fields of an entry that a renewal keeps. */
export type KeptByRenewal = Pick<KeychainRow, "credentialType" | "cacheType" | "schema">;

/** A pending read. */
interface Reader {
  prefix: string;
  scope: KeychainScope;
  executionId: string | undefined;
  audit: AuditEntry;
}

/** What reading needs. */
export interface KeychainReadDeps {
  database: Database;
  keys: KeyRing;
  /** The stored data no longer match the entry's schema; gives names of fields, never values. */
  onViolation(cacheKey: string, problems: readonly string[]): void;
}

/** Reading, one statement at a time for each entry: those that come meanwhile are the next one together. */
export function createKeychainReading(
  deps: KeychainReadDeps,
): (request: KeychainRequest, audit: AuditEntry) => Promise<KeychainEntry> {
  const { database } = deps;
  const find = coalesce((_, readers: readonly [Reader, ...Reader[]]) => {
    const [{ prefix, scope, executionId }] = readers;
    const reads = readers.map(({ audit }) => audit);
    return executionId === undefined
      ? readGlobalEntry(database, prefix, reads)
      : readOwnedEntry(database, { prefix, scope, executionId }, reads);
  });
  return async (request, audit) => {
    const { scope, catalogId, name } = request;
    const prefix = cacheKeyPrefix(scope, catalogId, name);
    const executionId = requiredExecution(request);
    const { ownerId, row } = await find(prefix + (executionId ?? ""), { prefix, scope, executionId, audit });
    return entryOf(deps, prefix + (ownerId ?? executionId ?? ""), row);
  };
}

function entryOf(deps: KeychainReadDeps, cacheKey: string, row: KeychainRow | undefined): KeychainEntry {
  if (row === undefined) return { cacheKey, status: "not_found" };
  const { autoRenew, expiresAt } = row;
  if (row.isExpired && !autoRenew) return { cacheKey, status: "expired", autoRenew, expiresAt };
  const { token_data: data, renew_config: renewConfig } = openContent(deps.keys, cacheKey, row);
  if (row.isExpired) {
    const { credentialType, cacheType, schema } = row;
    return {
      ...{ cacheKey, status: "expired", autoRenew: true, expiresAt, credentialType, cacheType, schema },
      ...defined({ renewConfig }),
    };
  }
  const schema = keptSchema(row.schema);
  const problems = schema === undefined ? [] : secretProblems(schema, data);
  if (problems.length > 0) deps.onViolation(cacheKey, problems);
  return { cacheKey, status: "success", data, ...row };
}
