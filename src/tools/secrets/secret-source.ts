import { createHash } from "node:crypto";
import { untilAborted } from "../../platform/concurrency/until-aborted.ts";
import { createTokenCache } from "../../platform/crypto/token-cache.ts";
import { createEgressGuard } from "../../platform/http/egress.ts";
import type { ProxyOf } from "../../platform/http/proxy.ts";
import type { StoredCredential } from "../../ports/credentials.ts";
import type { AccessToken, ObtainedSecret, SecretSource, TokenOptions } from "../../ports/secret-source.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { secondsOf, textField, wordsField } from "./fields.ts";
import type { ManagerParts, SecretAddresses } from "./manager.ts";
import type { MachineIdentity } from "./metadata-service.ts";
import { createSecretRequests } from "./request.ts";
import { requestEntry, requestRenewal, tokenFields } from "./token-request.ts";

/** What {@link createRequestedSecrets} takes. */
export interface SecretSourceOptions {
  /** Private address ranges that requests may reach (`FLOW_HTTP_ALLOW_PRIVATE`). */
  allowPrivate: "all" | readonly string[];
  /** Which requests go through a proxy; default none. */
  proxyOf?: ProxyOf | undefined;
  /** Addresses that the operator has set. They may be private. */
  addresses?: SecretAddresses & { metadataUrl?: string };
  /** Stands in for the machine's own identity (`FLOW_ADC_ACCESS_TOKEN`). */
  adcAccessToken?: string;
  /** Longest time of one request, milliseconds. Default 30,000. */
  requestMs?: number;
  /** Milliseconds since 1970. */
  now(): number;
}

const REQUEST_MS = 30_000;
/** What a service account's token is for where nothing says it. */
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
/** Lifetime of a token whose answer states none. */
const UNKNOWN_LIFE_MS = 300_000;

/** Tokens and secrets by requests. What a kind needs beyond plain requests is loaded when it is first used. */
export function createRequestedSecrets(options: SecretSourceOptions): SecretSource {
  const { now, addresses = {} } = options;
  const requests = createSecretRequests({
    egress: createEgressGuard({ allowPrivate: options.allowPrivate, proxyOf: options.proxyOf }),
    timeoutMs: options.requestMs ?? REQUEST_MS,
  });
  const tokens = createTokenCache(now);
  const parts: TokenParts = {
    send: requests.send,
    addresses,
    tokens,
    now,
    machine: { metadataUrl: addresses.metadataUrl, accessToken: options.adcAccessToken },
    token: (credential, options, signal) => token(parts, credential, options, signal),
  };
  return {
    async obtain(kind, definition, credential, signal) {
      switch (kind) {
        case "secret_manager": {
          const { readSecrets } = await import("./read-secrets.ts");
          return await readSecrets(parts, definition, credential, signal);
        }
        case "google_id_token":
          return await identityFields(parts, definition, credential, signal);
        case "oauth2":
        case "http":
          return await entryFields(parts, kind, definition, credential, signal);
      }
    },
    renew: (config, signal) => requestRenewal(requests.send, config, signal),
    token: parts.token,
    forget: (text) => tokens.forget(text),
    close: requests.close,
  };
}

interface TokenParts extends ManagerParts {
  machine: MachineIdentity;
}

/** Fields of an entry that makes its own request, or that of the credential which it names. */
async function entryFields(
  parts: TokenParts,
  kind: "oauth2" | "http",
  definition: JsonObject,
  credential: StoredCredential | undefined,
  signal: AbortSignal,
): Promise<ObtainedSecret> {
  if (kind === "oauth2" && own(definition, "endpoint") === undefined && credential !== undefined) {
    return await fetchFields(parts, credential, tokenOptionsOf(definition), signal);
  }
  let headers: Readonly<Record<string, string>> = {};
  if (credential !== undefined) {
    const { resolveHttpAuth } = await import("../http/auth.ts");
    const tokenOf = async (wanted: StoredCredential) =>
      (await parts.token(wanted, tokenOptionsOf(definition), signal)).token;
    const auth = await resolveHttpAuth(undefined, { default: credential }, tokenOf);
    if (Object.keys(auth.query).length > 0) {
      throw new FlowError("INVALID_INPUT", `Credential '${credential.name}' goes into the query: put it into 'data'.`);
    }
    headers = auth.headers;
  }
  return await requestEntry(parts.send, kind, definition, headers, signal);
}

async function identityFields(
  parts: TokenParts,
  definition: JsonObject,
  credential: StoredCredential | undefined,
  signal: AbortSignal,
): Promise<ObtainedSecret> {
  const audience = textField(definition, "target_audience");
  if (audience === undefined) {
    throw new FlowError("INVALID_INPUT", "The entry has no 'target_audience': whom the identity token is for.");
  }
  if (credential === undefined) {
    throw new FlowError("INVALID_INPUT", "The entry has no 'auth': a service account, or {source: adc}.");
  }
  const secret = textField(definition, "service_account_secret");
  const account =
    secret === undefined ? credential : await storedAccount(parts, definition, secret, credential, signal);
  const { token: text, expiresAt } = await parts.token(account, { audience }, signal);
  const ttlSeconds = Math.max(1, Math.floor((expiresAt - parts.now()) / 1_000));
  return { fields: { id_token: text, token: text }, ttlSeconds };
}

/** The service account whose key lies in a secret manager (cloud_a, unless the entry says otherwise). */
async function storedAccount(
  parts: TokenParts,
  definition: JsonObject,
  path: string,
  credential: StoredCredential,
  signal: AbortSignal,
): Promise<StoredCredential> {
  const { readSecrets } = await import("./read-secrets.ts");
  const wanted = { provider: "cloud_a", ...definition, map: { key: path } };
  const { fields } = await readSecrets(parts, wanted, credential, signal);
  const key = accountKey(fields["key"]);
  if (key !== undefined) return { name: `${credential.name}:${path}`, type: "service_account", data: key };
  throw new FlowError("INVALID_INPUT", "What 'service_account_secret' names is no key of a service account (JSON).");
}

function accountKey(value: Json | undefined): JsonObject | undefined {
  try {
    const key: Json = typeof value === "string" ? JSON.parse(value) : (value ?? null);
    return isJsonObject(key) && textField(key, "private_key") !== undefined ? key : undefined;
  } catch {
    // Reported by the caller: the text is a secret.
    return undefined;
  }
}

function tokenOptionsOf(definition: JsonObject): TokenOptions {
  const scopes = wordsField(definition, "scopes");
  const audience = textField(definition, "target_audience");
  return { ...defined({ scopes, audience }) };
}

/** A credential's token: its own, or one that is requested and cached. */
async function token(
  parts: TokenParts,
  credential: StoredCredential,
  options: TokenOptions,
  signal: AbortSignal,
): Promise<AccessToken> {
  const given = givenToken(credential);
  if (given !== undefined) return { token: given, expiresAt: parts.now() + UNKNOWN_LIFE_MS };
  const fetch = async (): Promise<AccessToken> => {
    // Not the caller's signal: others wait for the same token, and each request has its own time.
    const untied = new AbortController().signal;
    if (isMachine(credential)) {
      const { machineToken } = await import("./metadata-service.ts");
      return await machineToken(parts.send, parts.machine, scoped(credential, options), parts.now(), untied);
    }
    const { fields, ttlSeconds } = await fetchFields(parts, credential, options, untied);
    const lifeMs = ttlSeconds === undefined ? UNKNOWN_LIFE_MS : ttlSeconds * 1_000;
    const field = options.audience === undefined ? "access_token" : "id_token";
    return { token: String(fields[field]), expiresAt: parts.now() + lifeMs };
  };
  return await untilAborted(parts.tokens.get(cacheKey(credential, options), fetch), signal);
}

/** The fields of the answer to a credential's token request. */
async function fetchFields(
  parts: TokenParts,
  credential: StoredCredential,
  options: TokenOptions,
  signal: AbortSignal,
): Promise<ObtainedSecret> {
  const { type, data, name } = credential;
  const where = `Credential '${name}'`;
  const given = givenToken(credential);
  if (given !== undefined) return { fields: { access_token: given } };
  if (isMachine(credential)) {
    const { token: text, expiresAt } = await parts.token(credential, options, signal);
    return withTtl({ access_token: text, expires_in: Math.floor((expiresAt - parts.now()) / 1_000) });
  }
  if (isServiceAccount(credential)) {
    const { identityExpiry, requestByAssertion } = await import("./service-account.ts");
    const scopes = scoped(credential, options).scopes ?? [SCOPE];
    const { audience } = options;
    const claim = audience === undefined ? { scope: scopes.join(" ") } : { target_audience: audience };
    const answer = await requestByAssertion(parts.send, where, data, claim, parts.now(), signal);
    if (audience === undefined) return withTtl(tokenFields(answer));
    const fields = tokenFields(answer, "id_token");
    const text = String(fields["id_token"]);
    const ttlSeconds = Math.floor((identityExpiry(answer.what, text) - parts.now()) / 1_000);
    return { fields: { id_token: text }, ttlSeconds: Math.max(1, ttlSeconds) };
  }
  if (type.toLowerCase() === "oauth2" || textField(data, "token_url") !== undefined) {
    if (options.audience !== undefined) throw noIdentity(where, type);
    const { requestClientToken } = await import("./oauth2-client.ts");
    return withTtl(await requestClientToken(parts.send, where, data, options.scopes, signal));
  }
  throw new FlowError(
    "INVALID_INPUT",
    `${where} of type ${type} gives no token: use one of type oauth2, service_account or bearer, or {source: adc}.`,
  );
}

function withTtl(fields: JsonObject): ObtainedSecret {
  const ttlSeconds = secondsOf(fields["expires_in"]);
  return { fields, ...defined({ ttlSeconds }) };
}

/** The token stored in the credential itself; a requested one is fresher. */
function givenToken({ type, data }: StoredCredential): string | undefined {
  if (textField(data, "token_url", "private_key") !== undefined) return undefined;
  const isBearer = /^(http_)?(bearer|token)$/.test(type.toLowerCase().replaceAll("-", "_"));
  return isBearer ? textField(data, "token", "access_token", "value") : textField(data, "access_token", "token");
}

/** `auth: {source: adc}`: this machine's identity. Throws `FlowError` for an unknown source. */
function isMachine({ data }: StoredCredential): boolean {
  const source = own(data, "source");
  if (source === undefined) return false;
  if (source === "adc" || source === "metadata") return true;
  throw new FlowError("INVALID_INPUT", `auth has the source '${String(source)}': adc is supported.`);
}

function isServiceAccount({ type, data }: StoredCredential): boolean {
  return type.toLowerCase() === "service_account" || textField(data, "private_key") !== undefined;
}

/** The options, with the credential's own scopes by default. */
function scoped({ data }: StoredCredential, options: TokenOptions): TokenOptions {
  const scopes = options.scopes ?? wordsField(data, "scopes", "scope");
  return { ...options, ...defined({ scopes }) };
}

function noIdentity(where: string, type: string): FlowError {
  return new FlowError("INVALID_INPUT", `${where} of type ${type} gives no identity token: use a service_account.`);
}

/** A changed credential has another key. */
function cacheKey({ name, type, data }: StoredCredential, { scopes, audience }: TokenOptions): string {
  const text = JSON.stringify([name, type, data, scopes ?? null, audience ?? null]);
  return createHash("sha256").update(text).digest("hex");
}
