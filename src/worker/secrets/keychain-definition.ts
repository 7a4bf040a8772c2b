import type { CredentialSource, StoredCredential } from "../../ports/credentials.ts";
import type { KeychainWrite } from "../../ports/keychain.ts";
import { type ObtainedSecret, REQUESTED_KINDS, type RequestedKind } from "../../ports/secret-source.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { findCredential } from "./credentials.ts";

/** True for kinds whose fields come by a request, as opposed to those that are at hand. */
export function isRequested(kind: string): kind is RequestedKind {
  return (REQUESTED_KINDS as readonly string[]).includes(kind);
}

/**
 * True when an entry is looked for in the keychain's store before it is resolved: what comes by a request, what says how long
 * it is kept, and `bearer`, whose token may have been put there by others.
 */
export function isCached(definition: JsonObject): boolean {
  const kind = String(own(definition, "kind") ?? "");
  return isRequested(kind) || kind === "bearer" || own(definition, "ttl_seconds") !== undefined;
}

/** True if the resolved value is kept in the store: a changed credential takes effect at once unless a ttl says otherwise. */
export function isKept(definition: JsonObject): boolean {
  return isRequested(String(own(definition, "kind") ?? "")) || own(definition, "ttl_seconds") !== undefined;
}

/**
 * Fields of an entry that need no request: from the playbook itself (`static`, a `bearer` with a token), or from a credential:
 * the one it names, else the one with the entry's name. Throws `FlowError` that says what is missing.
 */
export async function fieldsAtHand(
  name: string,
  definition: JsonObject,
  credentials: CredentialSource,
): Promise<JsonObject> {
  const kind = String(own(definition, "kind") ?? "");
  if (kind === "static") {
    const data = own(definition, "data") ?? own(definition, "map");
    if (isJsonObject(data)) return data;
    throw new FlowError("INVALID_INPUT", "a static entry needs 'data', a map of its fields");
  }
  const token = own(definition, "token");
  if (kind === "bearer" && typeof token === "string" && token !== "") return { token, access_token: token };
  const named = credentialName(definition, isCredentialKind(kind)) ?? name;
  const found = await credentials.find(named);
  if (found !== undefined) return found.data;
  throw new FlowError(
    "NOT_FOUND",
    `there is no credential '${named}'${isCredentialKind(kind) ? "" : `, and nothing resolves kind '${kind}'`}`,
  );
}

/** The credential that an entry names in `auth` or `credential`; undefined when it names none. Throws when it is missing. */
export async function entryCredential(
  definition: JsonObject,
  credentials: CredentialSource,
): Promise<StoredCredential | undefined> {
  const named = own(definition, "auth") ?? own(definition, "credential");
  if (named === undefined || named === null || named === "") return undefined;
  const isReference = typeof named === "string" || isJsonObject(named);
  const found = isReference ? await findCredential(credentials, named) : undefined;
  if (found !== undefined) return found;
  throw new FlowError("INVALID_INPUT", "its 'auth' must name a credential");
}

function isCredentialKind(kind: string): boolean {
  return kind === "credential" || kind === "bearer" || kind.endsWith("_credential");
}

function credentialName(definition: JsonObject, withAuth: boolean): string | undefined {
  const named = own(definition, "credential") ?? (withAuth ? own(definition, "auth") : undefined);
  const name = isJsonObject(named) ? (own(named, "credential") ?? own(named, "name")) : named;
  return typeof name === "string" && name !== "" ? name : undefined;
}

/** What is written for an entry: how it was come by, how long it lives, how it is renewed. */
export function entryWrite(definition: JsonObject, { fields, ttlSeconds }: ObtainedSecret): KeychainWrite {
  const kind = String(own(definition, "kind") ?? "oauth2");
  const isToken = kind === "oauth2" || kind === "http" || kind === "google_id_token";
  const autoRenew = isTrue(own(definition, "auto_renew"));
  const renewConfig = autoRenew ? renewalOf(definition) : undefined;
  const schema = own(definition, "schema");
  const ttl = ttlSeconds === undefined ? undefined : Math.max(1, Math.min(TTL_SECONDS_MAX, Math.floor(ttlSeconds)));
  return {
    data: fields,
    credentialType: kind === "oauth2" && own(definition, "endpoint") === undefined ? "oauth2_client_credentials" : kind,
    cacheType: isToken ? "token" : "secret",
    ...(ttl !== undefined && { ttlSeconds: ttl }),
    autoRenew,
    ...(renewConfig !== undefined && { renewConfig }),
    ...(isJsonObject(schema) && { schema }),
  };
}

/** The longest life that a store takes: ten years. */
const TTL_SECONDS_MAX = 315_360_000;

/** The entry's own `ttl_seconds`, a number or the text of one. */
export function definedTtl(definition: JsonObject): number | undefined {
  const value = own(definition, "ttl_seconds");
  const seconds = typeof value === "number" || (typeof value === "string" && value !== "") ? Number(value) : Number.NaN;
  return Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;
}

/**
 * How an entry is renewed: its `renew_config`, else, where it describes one token request without a credential, that request.
 * Undefined: by resolving it afresh.
 */
export function renewalOf(definition: JsonObject): JsonObject | undefined {
  const written = own(definition, "renew_config");
  if (isJsonObject(written)) return written;
  const kind = own(definition, "kind");
  const hasToken = kind === "oauth2" || (kind === "http" && own(definition, "token_field") !== undefined);
  const needsCredential = own(definition, "auth") !== undefined || own(definition, "credential") !== undefined;
  if (!hasToken || needsCredential || typeof own(definition, "endpoint") !== "string") return undefined;
  const config: JsonObject = {};
  for (const key of ["endpoint", "method", "headers", "data", "token_field", "ttl_field"]) {
    const value = own(definition, key) as Json | undefined;
    if (value !== undefined && value !== null) setOwn(config, key, value);
  }
  if (kind === "oauth2") return config;
  // A renewal is a POST of form fields unless it says otherwise.
  const method = own(config, "data") === undefined ? "GET" : "POST";
  return { method, ...config, headers: { "content-type": "application/json", ...lowerCased(config) } };
}

function lowerCased(config: JsonObject): JsonObject {
  const headers = own(config, "headers");
  return isJsonObject(headers)
    ? Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
    : {};
}

/** Templates give text where text stands around them. */
function isTrue(value: unknown): boolean {
  return value === true || (typeof value === "string" && /^(true|yes|1|on)$/i.test(value));
}
