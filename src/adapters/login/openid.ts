import {
  allowInsecureRequests,
  ClientError,
  Configuration,
  type CustomFetch,
  clockTolerance,
  customFetch,
  discovery,
  None,
  ResponseBodyError,
  type ServerMetadata,
} from "openid-client";
import { isLoopback } from "../../platform/http/loopback.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";

/** A provider's addresses, from its discovery document or from the settings. */
export interface OpenIdProvider {
  /** As it writes itself, perhaps with a slash at its end. */
  issuer: string;
  /** Where people log in; undefined for a provider without a page for it. */
  authorizationEndpoint?: string | undefined;
  /** Where codes are exchanged for tokens. */
  tokenEndpoint?: string | undefined;
}

/** A provider that was asked for its addresses. */
export interface DiscoveredProvider extends OpenIdProvider {
  jwksUri: string;
  /** Its redirects name their issuer (RFC 9207). */
  namesIssuer: boolean;
}

/** Accepted signatures. Asymmetric ones alone: a party that can check a token must not be able to make one. */
export const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA"],
];

/** How far the provider's clock may be off from the gateway's, seconds. */
export const CLOCK_TOLERANCE_SECONDS = 30;
const DISCOVERY_SECONDS = 5;
const EXCHANGE_SECONDS = 10;

/**
 * Asks a provider for its addresses (OpenID Connect Discovery 1.0), for 5 s at the most. `issuer` has no slash at its end; `hint`
 * ends the message about an address that describes no such provider. Throws `FlowError` UNAVAILABLE where nothing answers, or
 * another provider, or one with addresses that are not https; INVALID_SETTING for an issuer that is no https address.
 */
export async function discoverProvider(
  issuer: string,
  clientId: string,
  fetcher: typeof fetch,
  hint: string,
): Promise<DiscoveredProvider> {
  const url = `${issuer}/.well-known/openid-configuration`;
  if (!URL.canParse(url))
    throw new FlowError("INVALID_SETTING", `The issuer '${issuer}' is not an address that can be called`);
  if (!isSafe(issuer, issuer))
    throw new FlowError("INVALID_SETTING", `The identity provider must be an https address, got '${issuer}'`);
  const about = `${url} does not describe an identity provider of this address: ${hint}`;
  // The document's own address: given the issuer's, the package makes exceptions for two hosted providers.
  const found = await discovery(new URL(url), clientId, undefined, None(), {
    timeout: DISCOVERY_SECONDS,
    [customFetch]: withFetch(fetcher),
    execute: isLocal(issuer) ? [allowInsecureRequests] : [],
  }).catch((error: unknown) => {
    throw UNREADABLE.has(codeOf(error)) ? new FlowError("UNAVAILABLE", about) : unanswered(url, error);
  });
  const metadata = found.serverMetadata();
  // The specification asks for this check: otherwise one provider could speak in another's name.
  if (metadata.issuer.replace(/\/$/, "") !== issuer || typeof metadata.jwks_uri !== "string")
    throw new FlowError("UNAVAILABLE", about);
  for (const address of [metadata.jwks_uri, metadata.authorization_endpoint, metadata.token_endpoint]) {
    if (address === undefined || isSafe(address, issuer)) continue;
    throw new FlowError("UNAVAILABLE", `${url} names an address that is not https: ${String(address).slice(0, 200)}`);
  }
  return {
    issuer: metadata.issuer,
    jwksUri: metadata.jwks_uri,
    authorizationEndpoint: metadata.authorization_endpoint,
    tokenEndpoint: metadata.token_endpoint,
    namesIssuer: metadata.authorization_response_iss_parameter_supported === true,
  };
}

/**
 * A public client of a provider (without a secret, with PKCE). Its requests take 10 s at the most. The provider's clock may be
 * off by `toleranceSeconds`.
 */
export function publicClient(
  { issuer, authorizationEndpoint, tokenEndpoint, namesIssuer = false }: OpenIdProvider & { namesIssuer?: boolean },
  clientId: string,
  toleranceSeconds: number,
  fetcher: typeof fetch,
): Configuration {
  const server: ServerMetadata = {
    issuer,
    ...(authorizationEndpoint !== undefined && { authorization_endpoint: authorizationEndpoint }),
    ...(tokenEndpoint !== undefined && { token_endpoint: tokenEndpoint }),
    id_token_signing_alg_values_supported: ALGORITHMS,
    authorization_response_iss_parameter_supported: namesIssuer,
  };
  const client = new Configuration(server, clientId, { [clockTolerance]: toleranceSeconds }, None());
  client.timeout = EXCHANGE_SECONDS;
  client[customFetch] = withFetch(fetcher);
  // The settings and discovery let none but this machine have an address without https.
  if (isLocal(tokenEndpoint)) allowInsecureRequests(client);
  return client;
}

/**
 * The error of a refused or failed exchange of a code. Nothing of an answer is its cause: answers hold tokens. `issuer` is the
 * provider's name in the message.
 */
export function exchangeFailure(error: unknown, issuer: string, tokenEndpoint: string): FlowError {
  if (error instanceof ResponseBodyError) {
    const why = (error.error_description ?? error.error).slice(0, 300);
    return new FlowError("UNAUTHENTICATED", `${issuer} refused the login: ${why}; log in again`);
  }
  if (WRONG_TOKEN.has(codeOf(error)))
    return new FlowError("UNAUTHENTICATED", `${issuer} answered with the token of another login: log in again`);
  const what = `The identity provider does not exchange codes at ${tokenEndpoint}`;
  return new FlowError("UNAVAILABLE", `${what}: ${reasonOf(error)}`);
}

/** The two differ in their types alone: whether a missing body is undefined or absent. */
function withFetch(fetcher: typeof fetch): CustomFetch {
  return (url, options) => fetcher(url, options as RequestInit);
}

/** The error of a provider that does not answer. */
function unanswered(url: string, error: unknown): FlowError {
  return new FlowError("UNAVAILABLE", `The identity provider does not answer at ${url}: ${reasonOf(error)}`);
}

/** Codes of answers that are no discovery document. */
const UNREADABLE: ReadonlySet<string> = new Set([
  "OAUTH_RESPONSE_IS_NOT_JSON",
  "OAUTH_PARSE_ERROR",
  "OAUTH_INVALID_RESPONSE",
]);
/** Codes of ID tokens whose claims are not those of the login. */
const WRONG_TOKEN: ReadonlySet<string> = new Set([
  "OAUTH_JWT_CLAIM_COMPARISON_FAILED",
  "OAUTH_JWT_TIMESTAMP_CHECK_FAILED",
]);

function codeOf(error: unknown): string {
  return error instanceof ClientError ? (error.code ?? "") : "";
}

/** `fetch failed` and `something went wrong` say nothing; their causes do. */
function reasonOf(error: unknown): string {
  return messageOf(error instanceof Error && error.cause instanceof Error ? error.cause : error);
}

/** Codes, tokens and keys travel by these addresses: https, or within this machine where the provider itself is there. */
function isSafe(address: unknown, issuer: string): boolean {
  const isHttps = typeof address === "string" && URL.canParse(address) && new URL(address).protocol === "https:";
  return isHttps || (isLocal(address) && isLocal(issuer));
}

function isLocal(address: unknown): boolean {
  if (typeof address !== "string" || !URL.canParse(address)) return false;
  const { protocol, hostname } = new URL(address);
  return protocol === "http:" && isLoopback(hostname);
}
