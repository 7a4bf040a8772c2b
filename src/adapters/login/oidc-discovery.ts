import * as v from "valibot";
import { isLoopback } from "../../platform/http/loopback.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";

/** What a provider says of itself. */
export interface DiscoveredProvider {
  /** As it writes itself, perhaps with a slash at its end. */
  issuer: string;
  jwksUri: string;
  /** Where people log in; undefined for a provider without a page for it. */
  authorizationEndpoint: string | undefined;
  /** Where codes are exchanged for tokens. */
  tokenEndpoint: string | undefined;
}

const FETCH_MS = 5_000;

const Address = v.pipe(v.string(), v.url());
const Discovery = v.object({
  issuer: v.string(),
  jwks_uri: Address,
  authorization_endpoint: v.exactOptional(Address),
  token_endpoint: v.exactOptional(Address),
});

/**
 * Asks a provider for its addresses (OpenID Connect Discovery 1.0), for 5 s at the most. `issuer` has no slash at its end.
 * Throws `FlowError` UNAVAILABLE where nothing answers there, or another than this provider, or with addresses that are not
 * https; INVALID_SETTING for an issuer that is no address.
 */
export async function discoverProvider(issuer: string, fetcher: typeof fetch): Promise<DiscoveredProvider> {
  const url = `${issuer}/.well-known/openid-configuration`;
  if (!URL.canParse(url)) throw new FlowError("INVALID_SETTING", `The issuer '${issuer}' is no address to ask at`);
  const answer = v.safeParse(Discovery, await ask(url, fetcher));
  // The specification asks for this check: else one provider could speak in another's name.
  if (!answer.success || answer.output.issuer.replace(/\/$/, "") !== issuer) {
    throw new FlowError("UNAVAILABLE", `${url} does not describe the provider of ${issuer.replace(/^https:\/\//, "")}`);
  }
  const { jwks_uri: jwksUri, authorization_endpoint, token_endpoint } = answer.output;
  for (const address of [jwksUri, authorization_endpoint, token_endpoint]) {
    if (address === undefined || isSafe(address, issuer)) continue;
    throw new FlowError("UNAVAILABLE", `${url} names an address that is not https: ${address.slice(0, 200)}`);
  }
  const found = { authorizationEndpoint: authorization_endpoint, tokenEndpoint: token_endpoint };
  return { issuer: answer.output.issuer, jwksUri, ...found };
}

async function ask(url: string, fetcher: typeof fetch): Promise<unknown> {
  try {
    const answer = await fetcher(url, { redirect: "error", signal: AbortSignal.timeout(FETCH_MS) });
    if (answer.ok) return await answer.json();
    throw new Error(`status ${answer.status}`);
  } catch (cause) {
    const why = cause instanceof Error && cause.cause instanceof Error ? cause.cause.message : messageOf(cause);
    throw new FlowError("UNAVAILABLE", `The identity provider does not answer at ${url}: ${why}`, { cause });
  }
}

/** Codes, tokens and keys travel by these addresses: https, or within this machine where the provider itself is there. */
function isSafe(address: string, issuer: string): boolean {
  if (new URL(address).protocol === "https:") return true;
  return [address, issuer].every((each) => {
    const { protocol, hostname } = new URL(each);
    return protocol === "http:" && isLoopback(hostname);
  });
}
