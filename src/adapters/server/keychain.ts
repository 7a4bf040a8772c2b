import type {
  KeychainForm,
  KeychainKey,
  KeychainLookup,
  KeychainStore,
  KeychainWrite,
  LeaseAnswer,
} from "../../ports/keychain.ts";
import { LEASE_MESSAGE_MAX, LEASE_MS_MAX, LEASE_WAIT_MS_MAX } from "../../schema/api/keychain.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type JsonObject, own } from "../../schema/words/json.ts";
import { refusal, type ServerConnection } from "./connection.ts";
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
  const ask = async (call: { method: "GET" | "POST"; path: string; body?: JsonObject }, waitMs = 0) => {
    const { method, path, body } = call;
    const reply = await callUntilAnswered(waitMs > 0 ? waiting : parts, {
      ...{ method, path, signal, timeoutMs: CALL_MS + waitMs },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (reply.status !== 200 || !isJsonObject(reply.body)) throw refusal(reply);
    return reply.body;
  };
  return {
    async get(key) {
      const query = new URLSearchParams({ scope_type: key.scope, ...executionOf(key) });
      return foundIn(await ask({ method: "GET", path: `${pathOf(key)}?${query}` }));
    },
    async set(key, entry) {
      const body = { ...bodyOf(entry), scope_type: key.scope, ...executionOf(key) };
      return { expiresAt: timeIn(await ask({ method: "POST", path: pathOf(key), body })) };
    },
    async lease(key, { holder, leaseMs, waitMs }) {
      const wait_ms = Math.min(Math.max(0, Math.round(waitMs)), LEASE_WAIT_MS_MAX);
      const lease_ms = Math.min(Math.max(100, Math.round(leaseMs)), LEASE_MS_MAX);
      const body = { scope_type: key.scope, ...executionOf(key), holder, lease_ms, wait_ms };
      return leaseIn(await ask({ method: "POST", path: `${pathOf(key)}/lease`, body }, wait_ms));
    },
    async fail(key, holder, message) {
      const failed = message.slice(0, LEASE_MESSAGE_MAX).replace(/\u0000|\p{Surrogate}/gu, "\ufffd");
      const body = { scope_type: key.scope, ...executionOf(key), holder, failed };
      await ask({ method: "POST", path: `${pathOf(key)}/lease`, body });
    },
  };
}

function pathOf({ catalogId, name }: KeychainKey): string {
  return `/api/keychain/${catalogId}/${encodeURIComponent(name)}`;
}

function executionOf({ scope, executionId }: KeychainKey): { execution_id?: string } {
  return scope === "global" ? {} : { execution_id: executionId };
}

function bodyOf({
  data,
  credentialType,
  cacheType,
  ttlSeconds,
  autoRenew,
  renewConfig,
  schema,
}: KeychainWrite): JsonObject {
  return {
    token_data: data,
    credential_type: credentialType,
    cache_type: cacheType,
    auto_renew: autoRenew,
    ...(ttlSeconds !== undefined && { ttl_seconds: ttlSeconds }),
    ...(renewConfig !== undefined && { renew_config: renewConfig }),
    ...(schema !== undefined && { schema }),
  };
}

function foundIn(body: JsonObject): KeychainLookup {
  const status = own(body, "status");
  const data = own(body, "token_data");
  const renewConfig = own(body, "renew_config");
  if (status === "not_found") return { status };
  if (status === "success" && isJsonObject(data)) return { status, data, expiresAt: timeIn(body) };
  if (status === "expired") {
    const autoRenew = own(body, "auto_renew") === true;
    const form = formIn(body);
    return {
      ...{ status, autoRenew, expiredAt: timeIn(body) },
      ...(isJsonObject(renewConfig) && { renewConfig }),
      ...(form !== undefined && { form }),
    };
  }
  throw notUnderstood();
}

function formIn(body: JsonObject): KeychainForm | undefined {
  const credentialType = own(body, "credential_type");
  const cacheType = own(body, "cache_type");
  const schema = own(body, "schema");
  if (typeof credentialType !== "string" || (cacheType !== "secret" && cacheType !== "token")) return undefined;
  return { credentialType, cacheType, ...(isJsonObject(schema) && { schema }) };
}

function leaseIn(body: JsonObject): LeaseAnswer {
  const status = own(body, "status");
  if (status === "granted" || status === "set" || status === "held") return { status };
  if (status === "failed") return { status, message: String(own(body, "message") ?? "") };
  throw notUnderstood();
}

/** `expires_at` in milliseconds since 1970. */
function timeIn(body: JsonObject): number {
  const time = Date.parse(String(own(body, "expires_at")));
  if (Number.isNaN(time)) throw notUnderstood();
  return time;
}

function notUnderstood(): FlowError {
  const why = "This worker does not understand the server's answer about its keychain";
  return new FlowError("SERVER_UNREACHABLE", `${why}; are both of one version?`);
}
