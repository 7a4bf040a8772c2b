import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { configurationError } from "../contract/task-config.ts";
import type { Credential, CredentialTokens } from "../contract/tool.ts";

/** What an authentication adds to a request. Both are secrets: they never leave the origin that they were meant for. */
export interface HttpAuth {
  /** By lower-case name. */
  headers: Record<string, string>;
  /** Query parameters. */
  query: Record<string, string>;
  /** Authorities of the server's certificate (PEM), where a credential names them. */
  ca?: string;
  /** Tokens requested for it, for {@link CredentialTokens.forget} if the server refuses them. */
  requested?: string[];
}

/** Requests the token of a credential without a stored one. */
export type TokenOf = CredentialTokens["of"];

/**
 * Headers and query parameters for the task's `auth` (language document, sections 8 and 9): an inline map
 * `{type: bearer|basic|api_key, …}` wins, else the credentials that the task names. Throws FlowError `INVALID_INPUT`
 * when a credential is of a type that HTTP cannot carry or lacks a key, and what `tokenOf` throws: it is asked for the tokens
 * of `oauth2` client credentials, of a `service_account`, and of `{source: adc}`.
 */
export async function resolveHttpAuth(
  inline: Json | undefined,
  credentials: Readonly<Record<string, Credential>>,
  tokenOf?: TokenOf,
): Promise<HttpAuth> {
  if (isJsonObject(inline) && typeof inline["type"] === "string" && own(inline, "credential") === undefined) {
    return { ...authOf(inline["type"], inline, "auth"), ...authorityOf(inline, "auth") };
  }
  const chosen = credentials["default"];
  const named = chosen !== undefined ? [chosen] : [...new Set(Object.values(credentials))];
  const usable = named.filter((credential) => canonicalType(credential.type) !== undefined || needsToken(credential));
  if (named.length > 0 && usable.length === 0) {
    const list = named.map((credential) => `"${credential.name}" (${credential.type})`).join(", ");
    throw configurationError(
      `Credential ${list} cannot authenticate an HTTP request: ` +
        "use one of type bearer, basic, api_key, oauth2 or service_account.",
    );
  }
  const auth: HttpAuth = { headers: {}, query: {} };
  for (const credential of usable) {
    const part = await authOfCredential(credential, tokenOf);
    Object.assign(auth.headers, part.headers);
    Object.assign(auth.query, part.query);
    const { ca } = authorityOf(credential.data, `credential "${credential.name}"`);
    if (ca !== undefined) auth.ca = auth.ca === undefined ? ca : `${auth.ca}\n${ca}`;
    if (part.requested !== undefined) auth.requested = [...(auth.requested ?? []), ...part.requested];
  }
  return auth;
}

/** What `ca` of a credential says: certificates as PEM text. Throws FlowError `INVALID_INPUT` for any other text. */
export function authorityOf(data: JsonObject, where: string): { ca?: string } {
  const ca = textOf(data, "ca");
  if (ca === undefined) return {};
  if (!ca.includes("-----BEGIN CERTIFICATE-----")) {
    throw configurationError(`${where}: "ca" must be certificates as PEM text: -----BEGIN CERTIFICATE----- …`);
  }
  return { ca };
}

async function authOfCredential(credential: Credential, tokenOf: TokenOf | undefined): Promise<HttpAuth> {
  if (tokenOf === undefined || !needsToken(credential)) {
    return authOf(credential.type, credential.data, `credential "${credential.name}"`);
  }
  const token = await tokenOf(credential);
  return { headers: { authorization: `Bearer ${token}` }, query: {}, requested: [token] };
}

/** A credential that says how its token is requested. A token that stands in it besides may be an old one. */
function needsToken({ type, data }: Credential): boolean {
  if (own(data, "source") !== undefined || type.toLowerCase() === "service_account") return true;
  return canonicalType(type) === "oauth2" && textOf(data, "token_url", "token_uri") !== undefined;
}

/**
 * Moves the user and password of `https://user:password@host` into `auth`, where none stands there yet: in the URL they
 * would come to stand in results and messages.
 */
export function takeUserInfo(url: URL, auth: HttpAuth): void {
  if (url.username === "" && url.password === "") return;
  auth.headers["authorization"] ??= basicAuthorization(percentDecoded(url.username), percentDecoded(url.password));
  url.username = "";
  url.password = "";
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function basicAuthorization(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

function canonicalType(type: string): "bearer" | "basic" | "api_key" | "oauth2" | undefined {
  const plain = type
    .toLowerCase()
    .replaceAll("-", "_")
    .replace(/^http_/, "");
  if (plain === "token") return "bearer";
  if (plain === "apikey") return "api_key";
  return plain === "bearer" || plain === "basic" || plain === "api_key" || plain === "oauth2" ? plain : undefined;
}

function authOf(type: string, data: JsonObject, where: string): HttpAuth {
  switch (canonicalType(type)) {
    case "bearer": {
      const token = textOf(data, "token", "access_token", "value");
      if (token === undefined) throw missing(where, "bearer", "token");
      return { headers: { authorization: `Bearer ${token}` }, query: {} };
    }
    case "oauth2": {
      const token = textOf(data, "access_token", "token");
      if (token !== undefined) return { headers: { authorization: `Bearer ${token}` }, query: {} };
      throw configurationError(
        `${where} of type oauth2 has no token_url with client_id and client_secret to get a token with, and no access_token.`,
      );
    }
    case "basic": {
      const username = textOf(data, "username", "user");
      if (username === undefined) throw missing(where, "basic", "username");
      return { headers: { authorization: basicAuthorization(username, textOf(data, "password") ?? "") }, query: {} };
    }
    case "api_key":
      return apiKeyAuth(data, where);
    default:
      throw configurationError(`${where} has type "${type}", which HTTP does not know: use bearer, basic or api_key.`);
  }
}

/** `key` (or `value`) in header `header`, default `X-API-Key`; with `query` in that query parameter instead. */
function apiKeyAuth(data: JsonObject, where: string): HttpAuth {
  const key = textOf(data, "value", "key", "api_key", "token");
  if (key === undefined) throw missing(where, "api_key", "key");
  const parameter = textOf(data, "query", "param");
  if (parameter !== undefined) return { headers: {}, query: { [parameter]: key } };
  // `{key: X-Token, value: …}` names the header by `key`.
  const named = textOf(data, "header", "name") ?? (own(data, "value") === undefined ? undefined : textOf(data, "key"));
  return { headers: { [(named ?? "X-API-Key").toLowerCase()]: key }, query: {} };
}

function textOf(data: JsonObject, ...keys: string[]): string | undefined {
  for (const key of keys) {
    const value = own(data, key);
    if (typeof value === "string" && value !== "") return value;
    if (typeof value === "number") return String(value);
  }
  return undefined;
}

function missing(where: string, type: string, key: string): Error {
  return configurationError(`${where} of type ${type} has no "${key}".`);
}
