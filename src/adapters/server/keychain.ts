import type { KeychainKey, KeychainLookup, KeychainStore } from "../../ports/keychain.ts";
import {
  type KeychainGetAnswer,
  LEASE_MESSAGE_MAX,
  LEASE_MS_MAX,
  LEASE_WAIT_MS_MAX,
} from "../../schema/api/keychain.ts";
import { KEYCHAIN_ROUTES } from "../../schema/routes/keychain.ts";
import type { RouteInput } from "../../schema/routes/request.ts";
import { defined } from "../../schema/words/defined.ts";
import type { ServerConnection } from "./connection.ts";
import { callUntilAnswered, type RetryParts } from "./retry.ts";

/** Longest silence of a call that the server answers as soon as it can. */
const CALL_MS = 30_000;

/** What asking the server for its keychain needs. */
export interface ServerKeychainParts extends RetryParts {
  /** Connections on which is waited, so that nothing else waits behind: of others' renewals. */
  waits: ServerConnection;
}

/**
 * The server's keychain. Every call is repeated while the server cannot answer, until the signal aborts; all of them may come
 * twice. The server finds the root of a tree itself: `rootExecutionId` is not sent.
 */
export function createServerKeychain(parts: ServerKeychainParts, signal: AbortSignal): KeychainStore {
  const waiting = { ...parts, connection: parts.waits };
  const limits = { timeoutMs: CALL_MS, signal };
  return {
    async get(key) {
      return foundIn(await callUntilAnswered(parts, KEYCHAIN_ROUTES.get, { ...of(key), query: owner(key), ...limits }));
    },
    async set(key, { data, credentialType, cacheType, ttlSeconds, autoRenew, renewConfig, schema }) {
      const entry = {
        token_data: data,
        credential_type: credentialType,
        cache_type: cacheType,
        auto_renew: autoRenew,
        ttl_seconds: ttlSeconds,
        renew_config: renewConfig,
        schema,
      };
      // Renewal and schema are as the playbook's author wrote them: the server says what is wrong with them.
      const body = { ...entry, ...owner(key) } as RouteInput<typeof KEYCHAIN_ROUTES.set>["body"] & object;
      const saved = await callUntilAnswered(parts, KEYCHAIN_ROUTES.set, { ...of(key), body, ...limits });
      return { expiresAt: Date.parse(saved.expires_at) };
    },
    async lease(key, { holder, leaseMs, waitMs }) {
      const wait_ms = Math.min(Math.max(0, Math.round(waitMs)), LEASE_WAIT_MS_MAX);
      const lease_ms = Math.min(Math.max(100, Math.round(leaseMs)), LEASE_MS_MAX);
      const body = { ...owner(key), holder, lease_ms, wait_ms };
      const { status, message = "" } = await callUntilAnswered(wait_ms > 0 ? waiting : parts, KEYCHAIN_ROUTES.lease, {
        ...{ ...of(key), body, timeoutMs: CALL_MS + wait_ms, signal },
      });
      return status === "failed" ? { status, message } : { status };
    },
    async fail(key, holder, message) {
      const failed = message.slice(0, LEASE_MESSAGE_MAX).replace(/\u0000|\p{Surrogate}/gu, "\ufffd");
      const body = { ...owner(key), holder, failed };
      await callUntilAnswered(parts, KEYCHAIN_ROUTES.lease, { ...of(key), body, ...limits });
    },
  };
}

function of({ catalogId, name }: KeychainKey) {
  return { params: { catalog_id: catalogId, keychain_name: name } };
}

function owner({ scope, executionId }: KeychainKey) {
  return { scope_type: scope, execution_id: scope === "global" ? undefined : executionId };
}

function foundIn(answer: KeychainGetAnswer): KeychainLookup {
  const { status } = answer;
  if (status === "not_found") return { status };
  const at = Date.parse(answer.expires_at);
  if (status === "success") return { status, data: answer.token_data, expiresAt: at };
  const { auto_renew: autoRenew, renew_config: renewConfig, credential_type: credentialType } = answer;
  const { cache_type: cacheType, schema } = answer;
  return {
    ...{ status, autoRenew, expiredAt: at },
    ...defined({ renewConfig }),
    ...(credentialType !== undefined &&
      cacheType !== undefined && { form: { credentialType, cacheType, ...defined({ schema }) } }),
  };
}
