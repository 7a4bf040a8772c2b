import { Problem, problemOf, unreachable } from "../api/problem.ts";
import { PUBLIC_PATH } from "../api/session.ts";
import { takeArrival } from "./arrival.ts";
import { returnTo } from "./return-to.ts";
import { announceSession } from "./session-channel.ts";

/** An identity provider from the gateway's list; without a login page it says why. */
export interface Provider {
  domain: string;
  name: string;
  issuer: string | null;
  client_id: string | null;
  authorization_endpoint: string | null;
  problem: string | null;
}

/** A login that waits for the provider's answer. It stays in this tab, and only this tab has the verifier. */
interface PendingLogin {
  state: string;
  nonce: string;
  verifier: string;
  domain: string;
  issuer: string | null;
  /** Page to go on to. */
  to: string;
}

const KEY = "flow.login";

/** The providers of this gateway. */
export async function providers(signal: AbortSignal): Promise<Provider[]> {
  const answer = (await answerOf("/api/auth/providers", { signal })) as { providers: Provider[] };
  return answer.providers;
}

/**
 * Goes to the provider's page, which sends the browser back here with a code (OpenID Connect Core 1.0, section 3.1: the
 * authorization code flow, with PKCE, RFC 7636). The browser never gets a token. Throws if the page has no cryptography, as
 * over plain http.
 */
export async function goToProvider(provider: Provider, to: string): Promise<void> {
  if (provider.authorization_endpoint === null || provider.client_id === null) throw new Error(provider.problem ?? "");
  if (!isSecureContext) throw new Error("Logins need https: browsers keep no session for a page served over http.");
  const { domain, issuer } = provider;
  const pending: PendingLogin = { state: random(), nonce: random(), verifier: random(), domain, issuer, to };
  sessionStorage.setItem(KEY, JSON.stringify(pending));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(pending.verifier));
  const url = new URL(provider.authorization_endpoint);
  const values = {
    response_type: "code",
    scope: "openid email profile",
    client_id: provider.client_id,
    redirect_uri: redirectUri(),
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value);
  location.assign(url);
}

/**
 * The page to go on to when the provider has sent this browser back and the gateway has accepted its answer; undefined without
 * an answer of a provider. An answer is used once. Throws {@link Problem} with a message for the user.
 */
export async function takeAnswer(): Promise<string | undefined> {
  const arrival = takeArrival();
  if (arrival === undefined) return undefined;
  const pending = JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Partial<PendingLogin>;
  sessionStorage.removeItem(KEY);
  // Otherwise another site could log its visitor in as a different user.
  if (pending.state === undefined || arrival.get("state") !== pending.state)
    throw refused("This login was not started in this tab. Log in again here.");
  // RFC 9207: the answer came from another provider than requested.
  const from = arrival.get("iss");
  if (from !== null && pending.issuer !== null && from !== pending.issuer)
    throw refused("The login was answered by another provider than the one you chose. Log in again.");
  const error = arrival.get("error");
  if (error !== null) throw refused(`${pending.domain} refused: ${arrival.get("error_description") ?? error}.`);
  await answerOf("/api/auth/exchange", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      idp_domain: pending.domain,
      code: arrival.get("code") ?? "",
      code_verifier: pending.verifier,
      redirect_uri: redirectUri(),
      nonce: pending.nonce,
    }),
  });
  announceSession("in");
  return returnTo(pending.to);
}

/** Whether this browser has a session. */
export async function hasSession(signal: AbortSignal): Promise<boolean> {
  try {
    await answerOf("/api/auth/session", { signal });
    return true;
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return false;
    throw error;
  }
}

/** Ends the session of this browser; a session that has already ended is no error. */
export async function logOut(): Promise<void> {
  try {
    await answerOf("/api/auth/logout", { method: "POST" });
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
  }
  announceSession("out");
}

async function answerOf(path: string, init: RequestInit): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(PUBLIC_PATH + path, { ...init, credentials: "same-origin" });
  } catch (error) {
    throw unreachable(error);
  }
  if (!response.ok) throw await problemOf(response);
  return response.status === 204 ? undefined : await response.json();
}

function refused(message: string): Problem {
  return new Problem(401, "LOGIN", message);
}

function redirectUri(): string {
  return `${location.origin}${PUBLIC_PATH}/login`;
}

/** 256 bits. */
function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
