import { createRemoteJWKSet, errors, type JWTPayload, jwtVerify } from "jose";
import * as v from "valibot";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { ALGORITHMS, CLOCK_TOLERANCE_SECONDS, discoverProvider } from "./openid.ts";

/** The identity in an ID token. */
export interface Identity {
  /** The domain at which the person logged in, one of the allowed. */
  domain: string;
  issuer: string;
  /** The provider's name of the person: unique and lasting, unlike the address. */
  subject: string;
  /** In lower case. The provider says that it is theirs. */
  email: string;
  displayName: string;
  /** When the token's time is over, milliseconds since 1970. */
  expiresAt: number;
}

/** A provider whose addresses are set and not discovered. */
export interface ProviderSettings {
  issuer: string;
  jwksUri: string;
  audience: string;
}

/** Whose tokens are believed. */
export interface IdTokenSettings {
  /** Allow-list of `idp_domain`. */
  domains: readonly string[];
  /** The `aud` that a token of a discovered provider must have: the id under which the browser application is registered. */
  audience: string | undefined;
  /** Providers that need no discovery, by domain. */
  providers: ReadonlyMap<string, ProviderSettings>;
}

/** What checking takes from outside. */
export interface IdTokenDeps {
  fetch: typeof fetch;
  /** Milliseconds since 1970. */
  now(): number;
}

/** Longest token; real ones have some 2 kB. */
const TOKEN_CHARS_MAX = 16_384;
const FETCH_MS = 5_000;
/** An unknown key is requested again after this, however many tokens name unknown ones. */
const KEYS_COOLDOWN_MS = 30_000;
const KEYS_AGE_MS = 600_000;
/** A provider's addresses are looked up again after this. */
const DISCOVERY_AGE_MS = 3_600_000;

/** Checks ID tokens (OpenID Connect Core 1.0, section 3.1.3.7). */
export interface IdTokens {
  /**
   * Throws `FlowError` FORBIDDEN for a domain that is not allowed (before any request), UNAUTHENTICATED for an invalid token,
   * UNAVAILABLE if the provider does not answer. With `nonce` the token must contain it.
   */
  verify(domain: string, token: string, nonce?: string): Promise<Identity>;
}

/** Checks the tokens of these providers. */
export function createIdTokens(settings: IdTokenSettings, deps: IdTokenDeps): IdTokens {
  const found = new Map<string, { until: number; provider: Promise<Provider> }>();
  const providerOf = (domain: string): Promise<Provider> => {
    const known = found.get(domain);
    if (known !== undefined && known.until > deps.now()) return known.provider;
    const provider = openProvider(domain, settings, deps);
    found.set(domain, { until: deps.now() + DISCOVERY_AGE_MS, provider });
    provider.catch(() => found.delete(domain));
    return provider;
  };
  return {
    async verify(domain, token, nonce) {
      const name = domain.trim().toLowerCase();
      // A list of a few names: no address is built from what a caller sent.
      if (!settings.domains.includes(name) && !settings.providers.has(name)) {
        throw new FlowError(
          "FORBIDDEN",
          `Logins here do not accept '${name.slice(0, 100)}': it is not in FLOW_IDP_DOMAINS`,
        );
      }
      if (token.length > TOKEN_CHARS_MAX) throw notBelieved("it is longer than any ID token");
      const claims = await claimsOf(await providerOf(name), token, deps);
      if (nonce !== undefined && claims["nonce"] !== nonce) throw notBelieved("it was made for another login");
      return identityOf(name, claims);
    },
  };
}

/** A provider, and its keys, which are fetched when they are needed. */
interface Provider extends ProviderSettings {
  keys: ReturnType<typeof createRemoteJWKSet>;
}

async function openProvider(domain: string, settings: IdTokenSettings, deps: IdTokenDeps): Promise<Provider> {
  const provider = settings.providers.get(domain) ?? (await discover(domain, settings.audience, deps));
  const keys = createRemoteJWKSet(new URL(provider.jwksUri), {
    timeoutDuration: FETCH_MS,
    cooldownDuration: KEYS_COOLDOWN_MS,
    cacheMaxAge: KEYS_AGE_MS,
  });
  return { ...provider, keys };
}

/** The provider's addresses, by OpenID Connect Discovery over https. */
async function discover(domain: string, audience: string | undefined, deps: IdTokenDeps): Promise<ProviderSettings> {
  if (audience === undefined) {
    throw new FlowError("INVALID_SETTING", `Logins with ${domain} need FLOW_IDP_AUDIENCE: whom its tokens are for`);
  }
  const { issuer, jwksUri } = await discoverProvider(
    `https://${domain}`,
    audience,
    deps.fetch,
    "is it in FLOW_IDP_DOMAINS by mistake?",
  );
  return { issuer, jwksUri, audience };
}

async function claimsOf(provider: Provider, token: string, { now }: IdTokenDeps): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, provider.keys, {
      algorithms: ALGORITHMS,
      issuer: provider.issuer,
      audience: provider.audience,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      currentDate: new Date(now()),
      requiredClaims: ["exp", "iat", "sub"],
    });
    // A token for several parties names the one that requested it.
    if (payload["azp"] !== undefined && payload["azp"] !== provider.audience)
      throw notBelieved("it was asked for by another party");
    if (Array.isArray(payload.aud) && payload.aud.length > 1 && payload["azp"] === undefined) {
      throw notBelieved("it is for several parties and does not say which of them asked for it");
    }
    return payload;
  } catch (error) {
    throw refusalOf(error, provider);
  }
}

/** Details of a refusal: enough to fix the settings, nothing of the token. */
function refusalOf(error: unknown, provider: Provider): FlowError {
  if (error instanceof FlowError) return error;
  if (error instanceof errors.JWTExpired) return notBelieved("its time is over; log in again");
  if (error instanceof errors.JWTClaimValidationFailed)
    return notBelieved(`its claim '${error.claim}' is not the expected one`);
  if (error instanceof errors.JOSEAlgNotAllowed)
    return notBelieved("it is not signed with an algorithm that is accepted here");
  if (error instanceof errors.JWKSNoMatchingKey)
    return notBelieved("the provider has no key that it could be signed with");
  if (error instanceof errors.JWKSMultipleMatchingKeys) return notBelieved("it does not name its key");
  if (error instanceof errors.JWSSignatureVerificationFailed) return notBelieved("its signature is wrong");
  const isProviders =
    error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || !(error instanceof errors.JOSEError);
  if (!isProviders && error.code !== "ERR_JOSE_GENERIC") return notBelieved("it is no signed token");
  const what = `The keys of ${provider.issuer} cannot be fetched from ${provider.jwksUri}`;
  return new FlowError("UNAVAILABLE", `${what}: ${messageOf(error)}`, { cause: error });
}

function notBelieved(why: string): FlowError {
  return new FlowError("UNAUTHENTICATED", `The ID token was rejected: ${why}`);
}

const Claims = v.object({
  iss: v.string(),
  sub: v.pipe(v.string(), v.minLength(1), v.maxLength(255)),
  exp: v.number(),
  email: v.pipe(v.string(), v.maxLength(320), v.email()),
  email_verified: v.union([v.literal(true), v.literal("true")]),
  name: v.optional(v.pipe(v.string(), v.maxLength(320))),
});

function identityOf(domain: string, payload: JWTPayload): Identity {
  const claims = v.safeParse(Claims, payload);
  if (!claims.success) {
    const claim = String(v.getDotPath(claims.issues[0]) ?? "");
    const hint = claim === "email_verified" ? "the provider does not say that the address is the person's own" : "";
    throw notBelieved(`its claim '${claim}' is missing or cannot be used${hint === "" ? "" : `: ${hint}`}`);
  }
  const { iss, sub, exp, email, name } = claims.output;
  const address = email.toLowerCase();
  return {
    domain,
    issuer: iss,
    subject: sub,
    email: address,
    displayName: name?.trim() || address,
    expiresAt: exp * 1_000,
  };
}
