import type { Database } from "../../repositories/database/database.ts";
import { findKeychainOwner, type KeychainOwner } from "../../repositories/keychain/keychain.ts";
import { findExecutableById } from "../../repositories/orchestration/find-startable.ts";
import type { KeychainScope } from "../../schema/api/keychain.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { unknownExecution } from "../errors.ts";

/** Where an entry is to be kept. */
export interface KeychainPlace {
  cacheKey: string;
  /** Undefined for a global entry. */
  owner: KeychainOwner | undefined;
}

/** The key of an entry that may be kept. Throws `FlowError` INVALID_INPUT, NOT_FOUND, CONFLICT. */
export async function placeFor(database: Database, request: KeychainRequest): Promise<KeychainPlace> {
  const { scope, catalogId, name } = request;
  const [owner] = await Promise.all([ownerOf(database, request), checkCatalog(database, catalogId)]);
  const executionId = requiredExecution(request);
  if (executionId !== undefined && owner === undefined) throw unknownExecution(executionId);
  if (owner?.isOpen === false) throw hasEnded(owner);
  return { cacheKey: cacheKeyPrefix(scope, catalogId, name) + (owner?.executionId ?? ""), owner };
}

/** The key of an entry, which need not exist. An unknown execution is never a root. */
export async function cacheKeyOf(database: Database, request: KeychainRequest): Promise<string> {
  const { scope, catalogId, name } = request;
  const owner = await ownerOf(database, request);
  return cacheKeyPrefix(scope, catalogId, name) + (owner?.executionId ?? requiredExecution(request) ?? "");
}

async function ownerOf(database: Database, request: KeychainRequest): Promise<KeychainOwner | undefined> {
  const executionId = requiredExecution(request);
  return executionId === undefined ? undefined : await findKeychainOwner(database, request.scope, executionId);
}

/** Throws `FlowError` NOT_FOUND. */
export async function checkCatalog(database: Database, catalogId: string): Promise<void> {
  if ((await findExecutableById(database, catalogId)) !== undefined) return;
  throw new FlowError("NOT_FOUND", `There is no catalog entry ${catalogId}`);
}

/** The refusal of an entry of an execution that is over. */
export function hasEnded({ executionId }: Pick<KeychainOwner, "executionId">): FlowError {
  const why = `Execution ${executionId} has ended: the entries of its keychain went with it`;
  return new FlowError("CONFLICT", `${why}, and no new ones are kept`);
}

/** Which entry. */
export interface KeychainRequest {
  catalogId: string;
  name: string;
  scope: KeychainScope;
  /** Needed for local and shared entries. Of a shared one any execution of the tree: the server finds its root. */
  executionId?: string;
}

/**
 * A cache key without the id at its end (interface specification, Scopes and cache keys): for a local entry the id of its
 * execution, for a shared entry that of the tree's root. A global entry's key is complete. Two entries never share a key,
 * whatever their names contain: read from the end, each part is recognised by its form.
 */
export function cacheKeyPrefix(scope: KeychainScope, catalogId: string, name: string): string {
  if (scope === "global") return `${name}:${catalogId}:global`;
  return scope === "local" ? `${name}:${catalogId}:` : `${name}:${catalogId}:shared:`;
}

/** Associated data of the encryption: it keeps an entry's data from being moved to another entry. */
export function keychainBound(cacheKey: string): string {
  return `keychain:${cacheKey}`;
}

/** The execution that names an entry; undefined for a global one. Throws `FlowError` INVALID_INPUT when it is missing. */
export function requiredExecution({ scope, executionId }: KeychainRequest): string | undefined {
  if (scope === "global") return undefined;
  if (executionId !== undefined) return executionId;
  const why = `execution_id: is required with scope_type ${scope}, whose entries belong to an execution`;
  throw new FlowError("INVALID_INPUT", `The entry is not shown: ${why}`, {
    detail: { errors: [{ path: "execution_id", message: `is required with scope_type ${scope}` }] },
  });
}
