import { genericGrantRequest } from "openid-client";
import type { AuthorizationCode } from "../../schema/api/gateway.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { CLOCK_TOLERANCE_SECONDS, discoverProvider, exchangeFailure, publicClient } from "./openid.ts";

/** A provider at which people log in with a browser. */
export interface LoginProvider {
  domain: string;
  /** What people call it. */
  name: string;
  issuer: string;
  /** Under which the page is registered there, as a public client with PKCE. */
  clientId: string;
  authorizationEndpoint: string;
  tokenEndpoint: string;
}

/** The same, or why logins there do not work now. */
export type ListedProvider =
  | { domain: string; name: string; provider: LoginProvider }
  | { domain: string; name: string; problem: string };

/** Providers as the settings have them. */
export interface LoginProviderSettings {
  /** Found by discovery at `https://<domain>`. */
  domains: readonly string[];
  audience: string | undefined;
  /** By domain; providers whose endpoints are not configured are asked for them. */
  providers: ReadonlyMap<
    string,
    {
      issuer: string;
      audience: string;
      name?: string;
      authorizationEndpoint?: string;
      tokenEndpoint?: string;
    }
  >;
}

/** What they take from outside. */
export interface LoginProviderDeps {
  fetch: typeof fetch;
  /** Milliseconds since 1970. */
  now(): number;
}

/** Providers for pages: where to log in, and what comes of the code that one comes back with. */
export interface LoginProviders {
  /** All of them, in the settings' order; never throws for a provider that does not answer. */
  list(): Promise<ListedProvider[]>;
  /**
   * Gives the ID token for a code (OpenID Connect Core 1.0, section 3.1.3). Nothing of it is checked yet but that this provider
   * gave it. Throws `FlowError` FORBIDDEN for a domain that is not in the settings, UNAUTHENTICATED where the provider refuses
   * the code, UNAVAILABLE where it does not answer.
   */
  exchange(domain: string, code: AuthorizationCode): Promise<string>;
}

/** A provider's pages are looked up again after this. */
const FOUND_AGE_MS = 3_600_000;
/** A provider that did not answer is tried again after this, however many users open the page. */
const LOST_AGE_MS = 10_000;

/** The providers of these settings. */
export function createLoginProviders(settings: LoginProviderSettings, deps: LoginProviderDeps): LoginProviders {
  const { domains, providers } = settings;
  const names = [...new Set([...domains, ...providers.keys()])];
  const found = new Map<string, { until: number; provider: Promise<LoginProvider> }>();
  const providerOf = (domain: string): Promise<LoginProvider> => {
    const known = found.get(domain);
    if (known !== undefined && known.until > deps.now()) return known.provider;
    const provider = openProvider(domain, settings, deps);
    const entry = { until: deps.now() + FOUND_AGE_MS, provider };
    found.set(domain, entry);
    provider.catch(() => {
      entry.until = deps.now() + LOST_AGE_MS;
    });
    return provider;
  };
  return {
    list: () =>
      Promise.all(
        names.map(async (domain) => {
          const name = providers.get(domain)?.name ?? domain;
          try {
            return { domain, name, provider: await providerOf(domain) };
          } catch (error) {
            return { domain, name, problem: messageOf(error) };
          }
        }),
      ),
    async exchange(domain, code) {
      const name = domain.trim().toLowerCase();
      if (!names.includes(name)) throw unknownDomain(name);
      return await tokenFor(await providerOf(name), code, deps.fetch);
    },
  };
}

/** The error for a domain that is not in the settings. */
function unknownDomain(domain: string): FlowError {
  const why = "it is not in FLOW_IDP_DOMAINS";
  return new FlowError("FORBIDDEN", `Logins here do not accept '${domain.slice(0, 100)}': ${why}`);
}

async function openProvider(
  domain: string,
  { audience, providers }: LoginProviderSettings,
  { fetch }: LoginProviderDeps,
): Promise<LoginProvider> {
  const set = providers.get(domain);
  const clientId = set?.audience ?? audience;
  if (clientId === undefined)
    throw new FlowError("INVALID_SETTING", `Logins with ${domain} need FLOW_IDP_AUDIENCE: the page's client id there`);
  const known = { domain, name: set?.name ?? domain, clientId };
  if (set?.authorizationEndpoint !== undefined && set.tokenEndpoint !== undefined) {
    const { issuer, authorizationEndpoint, tokenEndpoint } = set;
    return { ...known, issuer, authorizationEndpoint, tokenEndpoint };
  }
  const issuer = set?.issuer.replace(/\/$/, "") ?? `https://${domain}`;
  const { authorizationEndpoint, tokenEndpoint, ...told } = await discoverProvider(
    issuer,
    clientId,
    fetch,
    "check FLOW_IDP_DOMAINS and FLOW_IDP_CONFIG",
  );
  if (authorizationEndpoint === undefined || tokenEndpoint === undefined)
    throw new FlowError("UNAVAILABLE", `${issuer} has no page to log in at: it names none in its discovery document`);
  return { ...known, issuer: told.issuer, authorizationEndpoint, tokenEndpoint };
}

/** The ID token for a code. The page itself compares the issuer that the redirect names (RFC 9207). */
async function tokenFor(provider: LoginProvider, code: AuthorizationCode, fetcher: typeof fetch): Promise<string> {
  const client = publicClient(provider, provider.clientId, CLOCK_TOLERANCE_SECONDS, fetcher);
  const parameters = { code: code.code, redirect_uri: code.redirectUri, code_verifier: code.codeVerifier };
  const { id_token: token } = await genericGrantRequest(client, "authorization_code", parameters).catch(
    (error: unknown) => {
      throw exchangeFailure(error, provider.issuer, provider.tokenEndpoint);
    },
  );
  if (token !== undefined) return token;
  throw new FlowError("UNAUTHENTICATED", `${provider.issuer} refused the login: it gave no ID token; log in again`);
}
