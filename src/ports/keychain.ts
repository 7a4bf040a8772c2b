import type { KeychainCacheType, KeychainScope } from "../schema/api/keychain.ts";
import type { JsonObject } from "../schema/words/json.ts";

/** Which entry is meant (interface specification, Scopes and cache keys). */
export interface KeychainKey {
  catalogId: string;
  name: string;
  scope: KeychainScope;
  /** The execution that asks; a local entry is its own. */
  executionId: string;
  /** The top of its tree: a shared entry is that one's. */
  rootExecutionId: string;
}

/** How an entry was found. Only a live one has data. */
export type KeychainLookup =
  /** `expiresAt`: milliseconds since 1970. */
  | { status: "success"; data: JsonObject; expiresAt: number }
  /** `renewConfig` and `form` only with `autoRenew`; a server of an older version sends no form. */
  | { status: "expired"; autoRenew: boolean; renewConfig?: JsonObject; form?: KeychainForm; expiredAt: number }
  | { status: "not_found" };

/** What is written; it replaces what was there. */
export interface KeychainWrite {
  data: JsonObject;
  /** `oauth2`, `secret_manager`, `bearer`, …: how it was come by. */
  credentialType: string;
  /** `secret` does not change by itself, `token` is renewed. */
  cacheType: KeychainCacheType;
  /** Default: 3600 for local entries, 86400 for the others. */
  ttlSeconds?: number;
  autoRenew: boolean;
  /** Interface specification, Renewal configuration. */
  renewConfig?: JsonObject;
  /** Interface specification, Credential schema object: data that violates it is refused. */
  schema?: JsonObject;
}

/** What of an entry stays as it is when it is renewed. */
export type KeychainForm = Pick<KeychainWrite, "credentialType" | "cacheType" | "schema">;

/** A holder's wish for the right to resolve or renew an entry. */
export interface LeaseRequest {
  /** The requester: unique among all that may ask at once. A holder that asks again is granted the lease again. */
  holder: string;
  /** After this time the lease ends by itself: longer than the work takes. */
  leaseMs: number;
  /** Longest wait for another holder's end; 0: none. */
  waitMs: number;
}

/** How an ask ended. */
export type LeaseAnswer =
  /** The asker is to do the work, and to end it with `set` or `fail`. */
  | { status: "granted" }
  /** Another holder has set the entry: read again. */
  | { status: "set" }
  /** Another holder could not: `message` is its error. */
  | { status: "failed"; message: string }
  /** Another holder still has it: ask again. */
  | { status: "held" };

/** How long a failure is reported to later requesters of the lease: 200 workers must not make 200 requests that fail. */
export const FAILURE_REMEMBERED_MS = 5_000;

/**
 * Cached tokens and secrets of playbooks (interface specification, Keychain). Every call throws `FlowError` INVALID_INPUT for
 * an invalid entry (a violated `schema` lists every failure), TOO_LARGE, and NOT_FOUND for an unknown playbook or execution.
 */
export interface KeychainStore {
  get(key: KeychainKey): Promise<KeychainLookup>;
  /** Ends the entry's lease too, whichever holder has it; `expiresAt` in milliseconds since 1970. */
  set(key: KeychainKey, entry: KeychainWrite): Promise<{ expiresAt: number }>;
  /**
   * Single flight per entry across all workers: granted to one at a time; the others wait up to `waitMs` and get the outcome.
   */
  lease(key: KeychainKey, ask: LeaseRequest): Promise<LeaseAnswer>;
  /**
   * The holder failed: reports it to the waiters, and to requesters within {@link FAILURE_REMEMBERED_MS}. Does nothing if
   * another holder has the lease by now.
   */
  fail(key: KeychainKey, holder: string, message: string): Promise<void>;
}
