import { type Context, Hono } from "hono";
import {
  KeychainDeleteAnswer,
  KeychainGetAnswer,
  type KeychainItem,
  KeychainLeaseAnswer,
  KeychainLeaseBody,
  KeychainListAnswer,
  KeychainListQuery,
  KeychainName,
  KeychainQuery,
  type KeychainScope,
  KeychainSetAnswer,
  KeychainSetBody,
  keptSchema,
  keychainTime,
} from "../../schema/api/keychain.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { KeychainSetting } from "../../services/keychain/content.ts";
import type { Keychain } from "../../services/keychain/keychain.ts";
import type { KeychainAsked } from "../../services/keychain/placement.ts";
import type { KeychainEntry } from "../../services/keychain/read.ts";
import { callerOf } from "../http/audit-caller.ts";
import { listening } from "../http/client-signal.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { check, jsonBody, pathId, queryOf } from "../http/validate.ts";

/** In the audit log. */
const ENTRY = "keychain/:catalog_id/:keychain_name";

const LIST = contract({
  method: "get",
  path: "/api/keychain/catalog/:catalog_id",
  summary: "The keychain entries of a catalog entry, without their data",
  access: "worker",
  query: KeychainListQuery,
  answer: KeychainListAnswer,
  refusals: [404, 422],
});

const GET = contract({
  method: "get",
  path: "/api/keychain/:catalog_id/:keychain_name",
  summary: "A keychain entry, decrypted; one that has expired or is not there is 200 too, with that status",
  access: "worker",
  audit: { action: "keychain.read", resource: ENTRY },
  query: KeychainQuery,
  answer: KeychainGetAnswer,
  refusals: [404, 422],
});

const SET = contract({
  method: "post",
  path: "/api/keychain/:catalog_id/:keychain_name",
  summary: "Keeps a keychain entry, encrypted, or replaces it; ends the lease of its resolver",
  access: "worker",
  audit: { action: "keychain.write", resource: ENTRY },
  body: KeychainSetBody,
  answer: KeychainSetAnswer,
  refusals: [400, 404, 409, 413, 422],
});

const DELETE = contract({
  method: "delete",
  path: "/api/keychain/:catalog_id/:keychain_name",
  summary: "Deletes a keychain entry; one that is not there is no error",
  access: "worker",
  audit: { action: "keychain.delete", resource: ENTRY },
  query: KeychainQuery,
  answer: KeychainDeleteAnswer,
  refusals: [404, 422],
});

const LEASE = contract({
  method: "post",
  path: "/api/keychain/:catalog_id/:keychain_name/lease",
  summary:
    "Asks for the right to resolve or renew an entry, which one has at a time, or tells that it could not be done",
  access: "worker",
  body: KeychainLeaseBody,
  answer: KeychainLeaseAnswer,
  refusals: [404, 409, 413, 422],
});

/** Contracts of {@link keychainRoutes}. The list comes first: its address could be read as that of an entry. */
export const KEYCHAIN_CONTRACTS = [LIST, GET, SET, DELETE, LEASE];

/** The keychain (interface specification, Keychain). `stopping`: ends the waits for leases with an answer. */
export function keychainRoutes(keychain: Keychain, stopping: AbortSignal) {
  return new Hono<RouteEnvironment>()
    .get(LIST.path, queryOf(LIST.query), async (c) => {
      const catalogId = pathId(c.req.param("catalog_id"), "catalog entry");
      const { limit, cursor } = c.req.valid("query");
      const page = { limit: pageSize(limit), ...(cursor !== undefined && { cursor }) };
      const { items, nextCursor } = await keychain.list(catalogId, page);
      const entries = items.map(itemOf);
      const answer = { status: "success" as const, catalog_id: Number(catalogId), entries, count: entries.length };
      return c.json({ ...answer, next_cursor: nextCursor } satisfies KeychainListAnswer);
    })
    .get(GET.path, queryOf(GET.query), async (c) => {
      const asked = askedOf(c, c.req.valid("query"));
      const entry = await keychain.get(asked, callerOf(c, GET));
      // What a browser or a proxy keeps would outlive it.
      c.header("cache-control", "no-store");
      return c.json({
        ...namesOf(asked),
        cache_key: entry.cacheKey,
        ...foundOf(entry, asked),
      } satisfies KeychainGetAnswer);
    })
    .post(SET.path, jsonBody(SET.body), async (c) => {
      const body = c.req.valid("json");
      const asked = askedOf(c, body);
      const { cacheKey, expiresAt, ttlSeconds } = await keychain.set(asked, settingOf(body), callerOf(c, SET));
      return c.json({
        status: "success",
        message: `Keychain entry '${asked.name}' was kept`,
        ...namesOf(asked),
        cache_key: cacheKey,
        expires_at: expiresAt.toISOString(),
        ttl_seconds: ttlSeconds,
        auto_renew: body.auto_renew ?? false,
      } satisfies KeychainSetAnswer);
    })
    .delete(DELETE.path, queryOf(DELETE.query), async (c) => {
      const asked = askedOf(c, c.req.valid("query"));
      const wasThere = await keychain.remove(asked, callerOf(c, DELETE));
      const message = `Keychain entry '${asked.name}' ${wasThere ? "was deleted" : "was not there"}`;
      return c.json({ status: "success", message, ...namesOf(asked) } satisfies KeychainDeleteAnswer);
    })
    .post(LEASE.path, jsonBody(LEASE.body), async (c) => {
      const { holder, lease_ms, wait_ms = 0, failed, ...place } = c.req.valid("json");
      const asked = askedOf(c, place);
      if (lease_ms === undefined || failed !== undefined) {
        const told = await keychain.fail(asked, holder, failed ?? "");
        const answer = told ? { status: "failed" as const, message: failed ?? "" } : { status: "held" as const };
        return c.json(answer satisfies KeychainLeaseAnswer);
      }
      const listener = listening(c, stopping);
      try {
        const ask = { holder, leaseMs: lease_ms, waitMs: wait_ms };
        return c.json((await keychain.lease(asked, ask, listener.signal)) satisfies KeychainLeaseAnswer);
      } finally {
        listener.done();
      }
    });
}

/** Which entry a call is about: from its path, and its query or body. */
function askedOf(
  c: Context,
  { scope_type = "global", execution_id }: { scope_type?: KeychainScope; execution_id?: string | null },
): KeychainAsked {
  const executionId = execution_id ?? undefined;
  return {
    catalogId: pathId(c.req.param("catalog_id") ?? "", "catalog entry"),
    name: check(KeychainName, c.req.param("keychain_name"), "The name of the entry"),
    scope: scope_type,
    ...(executionId !== undefined && { executionId }),
  };
}

function namesOf({ name, catalogId }: KeychainAsked) {
  return { keychain_name: name, catalog_id: Number(catalogId) };
}

function settingOf(body: KeychainSetBody): KeychainSetting {
  const { parent_execution_id, ttl_seconds, expires_at, renew_config, schema, cache_type } = body;
  const expiresAt = typeof expires_at === "string" ? keychainTime(expires_at) : undefined;
  return {
    data: body.token_data,
    credentialType: body.credential_type,
    autoRenew: body.auto_renew ?? false,
    ...(cache_type !== undefined && { cacheType: cache_type }),
    ...(typeof parent_execution_id === "string" && { parentExecutionId: parent_execution_id }),
    ...(typeof ttl_seconds === "number" && { ttlSeconds: ttl_seconds }),
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt) }),
    ...(renew_config && { renewConfig: renew_config }),
    ...(schema && { schema }),
  };
}

function foundOf(entry: KeychainEntry, { scope }: KeychainAsked) {
  if (entry.status === "not_found") return { status: entry.status };
  const expires_at = entry.expiresAt.toISOString();
  if (entry.status === "expired") {
    const expired = { status: entry.status, auto_renew: entry.autoRenew, expired: true as const, expires_at };
    if (!entry.autoRenew) return expired;
    const { renewConfig, credentialType, cacheType } = entry;
    const schema = keptSchema(entry.schema);
    return {
      ...expired,
      ...(renewConfig !== undefined && { renew_config: renewConfig }),
      credential_type: credentialType,
      cache_type: cacheType,
      ...(schema !== undefined && { schema }),
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
