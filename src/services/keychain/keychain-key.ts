import type { KeychainScope } from "../../schema/api/keychain.ts";
import { FlowError } from "../../schema/words/errors.ts";

/** Which entry. */
export interface KeychainAsked {
  catalogId: string;
  name: string;
  scope: KeychainScope;
  /** Needed for local and shared entries. Of a shared one any execution of the tree: the server finds its root. */
  executionId?: string;
}

/**
 * A cache key without the id at its end (interface specification, Scopes and cache keys): of a local entry its execution's, of
 * a shared one that of the root of the tree. A global entry's key is whole.
 *
 * No two entries have one key, whatever stands in their names: from the end on each part is told by its form.
 */
export function cacheKeyPrefix(scope: KeychainScope, catalogId: string, name: string): string {
  if (scope === "global") return `${name}:${catalogId}:global`;
  return scope === "local" ? `${name}:${catalogId}:` : `${name}:${catalogId}:shared:`;
}

/** What the data of an entry is bound to when it is encrypted: no row can be given the data of another one. */
export function keychainBound(cacheKey: string): string {
  return `keychain:${cacheKey}`;
}

/** The execution that names an entry; undefined for a global one. Throws `FlowError` INVALID_INPUT when it is missing. */
export function neededExecution({ scope, executionId }: KeychainAsked): string | undefined {
  if (scope === "global") return undefined;
  if (executionId !== undefined) return executionId;
  const why = `execution_id: is required with scope_type ${scope}, whose entries belong to an execution`;
  throw new FlowError("INVALID_INPUT", `The entry is not told: ${why}`, {
    detail: { errors: [{ path: "execution_id", message: `is required with scope_type ${scope}` }] },
  });
}
