import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from "openid-client";
import { discoverProvider, exchangeFailure, publicClient } from "../../adapters/login/openid.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { CliIo } from "../command-line/command.ts";
import { cleanText } from "../terminal/text.ts";
import { type LoopbackRedirect, startRedirect } from "./loopback-redirect.ts";

/** The identity provider to log in at. */
export interface ProviderLogin {
  /** `https://login.example.com`, without a slash at its end. */
  issuer: string;
  /** Under which flow is registered there, as a public (native) client. */
  clientId: string;
  /** Of the address on this machine to which the browser comes back; 0 for a free one. */
  port: number;
}

/** Longest wait for the user: time for a password and a second factor. */
const LOGIN_MS = 300_000;
/** How far this machine's clock may be off. The gateway checks the token again, by its own clock. */
const CLOCK_TOLERANCE_SECONDS = 300;

/**
 * Gets an ID token by the authorization code flow with PKCE over a redirect to this machine (RFC 8252, RFC 7636; OpenID Connect
 * Core 1.0, section 3.1). Opens no browser: prints the address, for whichever browser of this machine. The token's issuer,
 * audience, times and nonce are checked here; its signature by the gateway.
 *
 * Throws `FlowError` UNAVAILABLE where the provider does not answer as one, UNAUTHENTICATED where it refuses, TIMEOUT after five
 * minutes, INVALID_SETTING for a port that is taken, CANCELLED.
 */
export async function logInAtProvider({ issuer, clientId, port }: ProviderLogin, io: CliIo): Promise<string> {
  const interruptible: typeof fetch = (input, init) =>
    fetch(input, { ...init, signal: AbortSignal.any([io.signal, ...(init?.signal ? [init.signal] : [])]) });
  const provider = await discoverProvider(issuer, clientId, interruptible, "is it --issuer?").catch(
    unlessInterrupted(io.signal),
  );
  const { authorizationEndpoint, tokenEndpoint } = provider;
  if (authorizationEndpoint === undefined || tokenEndpoint === undefined)
    throw new FlowError("UNAVAILABLE", `${issuer} has no page to log in at: it names none in its discovery document`);
  const client = publicClient(provider, clientId, CLOCK_TOLERANCE_SECONDS, interruptible);
  // 256 bits each. An observer of the address or the answer does not learn the verifier.
  const [state, nonce, verifier] = [randomState(), randomNonce(), randomPKCECodeVerifier()];
  const redirect = await startRedirect({ port, state, provider });
  try {
    const address = buildAuthorizationUrl(client, {
      scope: "openid email profile",
      redirect_uri: redirect.url,
      ...{ state, nonce, code_challenge: await calculatePKCECodeChallenge(verifier), code_challenge_method: "S256" },
    });
    io.stderr.write(`Open this address in a browser on this machine and log in:\n\n  ${cleanText(address.href)}\n\n`);
    const answer = await waitForAnswer(redirect, io.signal);
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true };
    // With `idTokenExpected` an answer without one is an error.
    const tokens = await authorizationCodeGrant(client, answer, checks).catch((error: unknown) =>
      unlessInterrupted(io.signal)(exchangeFailure(error, issuer, tokenEndpoint)),
    );
    return tokens.id_token as string;
  } finally {
    await redirect.close();
  }
}

/** Passes an error on, unless the login was interrupted, which is then the error. */
function unlessInterrupted(signal: AbortSignal): (error: unknown) => never {
  return (error) => {
    throw signal.aborted ? new FlowError("CANCELLED", "login was interrupted") : error;
  };
}

async function waitForAnswer(redirect: LoopbackRedirect, signal: AbortSignal): Promise<URL> {
  const late = AbortSignal.timeout(LOGIN_MS);
  const limited = AbortSignal.any([signal, late]);
  let give = () => {};
  const ended = new Promise<never>((_, reject) => {
    give = () => reject(waitEnded(signal));
    if (limited.aborted) give();
    else limited.addEventListener("abort", give, { once: true });
  });
  try {
    return await Promise.race([redirect.answer, ended]);
  } finally {
    limited.removeEventListener("abort", give);
  }
}

function waitEnded(signal: AbortSignal): FlowError {
  if (signal.aborted) return new FlowError("CANCELLED", "login was interrupted");
  return new FlowError(
    "TIMEOUT",
    `The browser did not come back from the provider within ${LOGIN_MS / 60_000} minutes: try again`,
  );
}
