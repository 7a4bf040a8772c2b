import type { Context } from "hono";
import {
  type KeychainItem,
  KeychainName,
  type KeychainScope,
  type KeychainSetBody,
  keptSchema,
  keychainTime,
} from "../../schema/api/keychain.ts";
import { KEYCHAIN_ROUTES } from "../../schema/routes/keychain.ts";
import { notOfClaim } from "../../schema/rules/claim-refusals.ts";
import { defined } from "../../schema/words/defined.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { KeychainSetting } from "../../services/keychain/content.ts";
import type { Keychain } from "../../services/keychain/keychain.ts";
import type { KeychainRequest } from "../../services/keychain/placement.ts";
import type { KeychainEntry } from "../../services/keychain/read.ts";
import { callerOf } from "../http/audit-caller.ts";
import { claimedExecution } from "../http/claimed-execution.ts";
import { listening } from "../http/client-signal.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { serve } from "../http/serve.ts";
import { check, pathId } from "../http/validate.ts";

/** The keychain (interface specification, Keychain). `stopping`: ends the waits for leases with an answer. */
export function keychainRoutes(keychain: Keychain, stopping: AbortSignal) {
  return serve(KEYCHAIN_ROUTES, {
    list: async ({ query: { limit, cursor }, params, json }, c) => {
      const catalogId = pathId(params.catalog_id, "catalog entry");
      checkEntryOf(c, catalogId, "global");
      const page = { limit: pageSize(limit), ...defined({ cursor }) };
      const { items, nextCursor } = await keychain.list(catalogId, page);
      const entries = items.map(itemOf);
      const answer = { status: "success" as const, catalog_id: Number(catalogId), entries, count: entries.length };
      return json({ ...answer, next_cursor: nextCursor });
    },
    get: async ({ query, json }, c) => {
      const request = requestOf(c, query);
      const entry = await keychain.get(request, callerOf(c, KEYCHAIN_ROUTES.get));
      // What a browser or a proxy keeps would outlive it.
      c.header("cache-control", "no-store");
      return json({
        ...namesOf(request),
        cache_key: entry.cacheKey,
        ...foundOf(entry, request),
      });
    },
    set: async ({ body, json }, c) => {
      const request = requestOf(c, body);
      const { cacheKey, expiresAt, ttlSeconds } = await keychain.set(
        request,
        settingOf(body),
        callerOf(c, KEYCHAIN_ROUTES.set),
      );
      return json({
        status: "success",
        message: `Keychain entry '${request.name}' was stored`,
        ...namesOf(request),
        cache_key: cacheKey,
        expires_at: expiresAt.toISOString(),
        ttl_seconds: ttlSeconds,
        auto_renew: body.auto_renew ?? false,
      });
    },
    delete: async ({ query, json }, c) => {
      const request = requestOf(c, query);
      const wasThere = await keychain.remove(request, callerOf(c, KEYCHAIN_ROUTES.delete));
      const message = `Keychain entry '${request.name}' ${wasThere ? "was deleted" : "was not there"}`;
      return json({ status: "success", message, ...namesOf(request) });
    },
    lease: async ({ body: { holder, lease_ms, wait_ms = 0, failed, ...place }, json }, c) => {
      const request = requestOf(c, place);
      if (lease_ms === undefined || failed !== undefined) {
        const isNoted = await keychain.fail(request, holder, failed ?? "");
        const answer = isNoted ? { status: "failed" as const, message: failed ?? "" } : { status: "held" as const };
        return json(answer);
      }
      const listener = listening(c, stopping);
      try {
        const ask = { holder, leaseMs: lease_ms, waitMs: wait_ms };
        return json(await keychain.lease(request, ask, listener.signal));
      } finally {
        listener.done();
      }
    },
  });
}

/** A worker's entries are those of its command's playbook, and what the tree shares: that of the root's. */
function checkEntryOf(c: Context<RouteEnvironment>, catalogId: string, scope: KeychainScope): void {
  const { claim } = c.var;
  if (claim === undefined || catalogId === claim.catalogId) return;
  if (scope === "shared" && catalogId === claim.rootCatalogId) return;
  throw notOfClaim(claim, `the keychain of catalog entry ${catalogId}`);
}

/** Which entry a call is about: from its path, and its query or body. */
function requestOf(
  c: Context<RouteEnvironment>,
  { scope_type = "global", execution_id }: { scope_type?: KeychainScope; execution_id?: string | null },
): KeychainRequest {
  const executionId = claimedExecution(c, execution_id ?? undefined);
  const catalogId = pathId(c.req.param("catalog_id") ?? "", "catalog entry");
  checkEntryOf(c, catalogId, scope_type);
  return {
    catalogId,
    name: check(KeychainName, c.req.param("keychain_name"), "The name of the entry"),
    scope: scope_type,
    ...defined({ executionId }),
  };
}

function namesOf({ name, catalogId }: KeychainRequest) {
  return { keychain_name: name, catalog_id: Number(catalogId) };
}

function settingOf(body: KeychainSetBody): KeychainSetting {
  const { parent_execution_id, ttl_seconds, expires_at, renew_config, schema, cache_type } = body;
  const expiresAt = typeof expires_at === "string" ? keychainTime(expires_at) : undefined;
  return {
    data: body.token_data,
    credentialType: body.credential_type,
    autoRenew: body.auto_renew ?? false,
    ...defined({ cacheType: cache_type }),
    ...(typeof parent_execution_id === "string" && { parentExecutionId: parent_execution_id }),
    ...(typeof ttl_seconds === "number" && { ttlSeconds: ttl_seconds }),
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt) }),
    ...(renew_config && { renewConfig: renew_config }),
    ...(schema && { schema }),
  };
}

function foundOf(entry: KeychainEntry, { scope }: KeychainRequest) {
  if (entry.status === "not_found") return { status: entry.status };
  const expires_at = entry.expiresAt.toISOString();
  if (entry.status === "expired") {
    const expired = { status: entry.status, auto_renew: entry.autoRenew, expired: true as const, expires_at };
    if (!entry.autoRenew) return expired;
    const { renewConfig, credentialType, cacheType } = entry;
    const schema = keptSchema(entry.schema);
    return {
      ...expired,
      ...defined({ renew_config: renewConfig }),
      credential_type: credentialType,
      cache_type: cacheType,
      ...defined({ schema }),
    };
  }
  return {
    status: entry.status,
    token_data: entry.data,
    credential_type: entry.credentialType,
    cache_type: entry.cacheType,
    scope_type: scope,
    expires_at,
    ttl_seconds: entry.ttlSeconds,
    accessed_at: entry.accessedAt.toISOString(),
    access_count: entry.accessCount,
    auto_renew: entry.autoRenew,
    expired: false as const,
  };
}

function itemOf(entry: Awaited<ReturnType<Keychain["list"]>>["items"][number]): KeychainItem {
  return {
    keychain_name: entry.name,
    cache_key: entry.cacheKey,
    scope_type: entry.scope,
    credential_type: entry.credentialType,
    expires_at: entry.expiresAt.toISOString(),
    auto_renew: entry.autoRenew,
    access_count: entry.accessCount,
  };
}
