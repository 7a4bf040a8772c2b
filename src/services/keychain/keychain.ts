import { FAILURE_REMEMBERED_MS, type LeaseAnswer, type LeaseRequest } from "../../ports/keychain.ts";
import {
  deleteKeychainEntry,
  type KeychainListed,
  listKeychainEntries,
  saveKeychainEntry,
} from "../../repositories/keychain/keychain.ts";
import { askKeychainLease, failKeychainLease } from "../../repositories/keychain/leases.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { defined } from "../../schema/words/defined.ts";
import { audited, type Caller } from "../access/audit.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import { encodeCursor, textCursor } from "../pagination-cursor.ts";
import { type KeychainSetting, keychainRow } from "./content.ts";
import { createKeychainLeases } from "./leases.ts";
import { cacheKeyOf, checkCatalog, hasEnded, type KeychainRequest, placeFor } from "./placement.ts";
import { createKeychainReading, type KeychainEntry, type KeychainReadDeps } from "./read.ts";

/** What was kept. */
export interface KeychainSaved {
  cacheKey: string;
  expiresAt: Date;
  ttlSeconds: number;
}

/** Cached tokens and secrets of playbooks (interface specification, Keychain). */
export interface Keychain {
  /**
   * Reads an entry and counts the read. Entries of an execution that has ended or does not exist are not found. Throws
   * `FlowError` INVALID_INPUT for a local or shared entry without an execution.
   */
  get(request: KeychainRequest, caller: Caller): Promise<KeychainEntry>;
  /**
   * Stores or replaces an entry. Throws `FlowError` INVALID_INPUT as above, NOT_FOUND for an unknown playbook or execution,
   * CONFLICT if the execution has ended, INVALID_SECRET with every failure for data that violate `schema`, TOO_LARGE.
   */
  set(request: KeychainRequest, setting: KeychainSetting, caller: Caller): Promise<KeychainSaved>;
  /** Deletes an entry; false when there was none. */
  remove(request: KeychainRequest, caller: Caller): Promise<boolean>;
  /** Entries of a catalog entry, never their data. Throws `FlowError` NOT_FOUND for an unknown one. */
  list(catalogId: string, page: PageQuery): Promise<Listed<KeychainListed>>;
  /** See `KeychainStore.lease`; throws as {@link set} does. */
  lease(request: KeychainRequest, ask: LeaseRequest, signal: AbortSignal): Promise<LeaseAnswer>;
  /** See `KeychainStore.fail`; false when the lease is another holder's. */
  fail(request: KeychainRequest, holder: string, message: string): Promise<boolean>;
}

/** What the keychain is made of. */
export interface KeychainDeps extends KeychainReadDeps {
  /** Called when an execution gets its first keychain entry. */
  onOwned(executionId: string): void;
}

/** The keychain of a database. */
export function createKeychain(deps: KeychainDeps): Keychain {
  const { database } = deps;
  const read = createKeychainReading(deps);
  const leases = createKeychainLeases((cacheKey, request) => askKeychainLease(database, cacheKey, request));
  return {
    get: (request, caller) => read(request, auditOf(caller, "keychain.read", request)),
    async set(request, setting, caller) {
      const place = await placeFor(database, request);
      const row = keychainRow(deps.keys, request, setting, place);
      const saved = await saveKeychainEntry(database, row, auditOf(caller, "keychain.write", request));
      const { cacheKey, owner } = place;
      // Only an owner that has ended meanwhile keeps a row from being written.
      if (saved === undefined) throw hasEnded(owner ?? { executionId: "" });
      if (owner !== undefined) deps.onOwned(owner.executionId);
      leases.changed(cacheKey);
      return { cacheKey, ...saved };
    },
    remove: async (request, caller) =>
      await deleteKeychainEntry(
        database,
        await cacheKeyOf(database, request),
        auditOf(caller, "keychain.delete", request),
      ),
    async list(catalogId, { limit, cursor }) {
      await checkCatalog(database, catalogId);
      const after = cursor === undefined ? undefined : textCursor(cursor);
      const found = await listKeychainEntries(database, catalogId, limit + 1, after);
      const items = found.slice(0, limit);
      const last = items.at(-1);
      return { items, nextCursor: found.length > limit && last !== undefined ? encodeCursor(last.cacheKey) : null };
    },
    async lease(request, ask, signal) {
      const { cacheKey } = await placeFor(database, request);
      return await leases.ask(cacheKey, ask, signal);
    },
    async fail(request, holder, message) {
      const cacheKey = await cacheKeyOf(database, request);
      const failed = await failKeychainLease(database, cacheKey, { holder, message, keepMs: FAILURE_REMEMBERED_MS });
      leases.changed(cacheKey);
      return failed;
    },
  };
}

/** The audit log records only who had which entry. */
function auditOf(caller: Caller, action: string, { scope, catalogId, name, executionId }: KeychainRequest): AuditEntry {
  const detail = { scope_type: scope, ...defined({ execution_id: executionId }) };
  return audited(caller, action, `keychain/${catalogId}/${name}`, { detail });
}
