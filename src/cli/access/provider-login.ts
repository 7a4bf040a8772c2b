import { createHash, randomBytes } from "node:crypto";
import * as v from "valibot";
import { isLoopback } from "../../platform/http/loopback.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { CliIo } from "../command-line/command.ts";
import { cleanText } from "../terminal/text.ts";
import { readIdToken } from "./id-token.ts";
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
const FETCH_MS = 10_000;

const Discovery = v.object({
  issuer: v.string(),
  authorization_endpoint: v.pipe(v.string(), v.url()),
  token_endpoint: v.pipe(v.string(), v.url()),
});
type Discovery = v.InferOutput<typeof Discovery>;

/**
 * Gets an ID token by the authorization code flow with PKCE over a redirect to this machine (RFC 8252, RFC 7636; OpenID Connect
 * Core 1.0, section 3.1). Opens no browser: prints the address, for whichever browser of this machine.
 *
 * Throws `FlowError` UNAVAILABLE where the provider does not answer as one, UNAUTHENTICATED where it refuses, TIMEOUT after five
 * minutes, INVALID_SETTING for a port that is taken, CANCELLED.
 */
export async function logInAtProvider(login: ProviderLogin, io: CliIo): Promise<string> {
  const provider = await discover(login.issuer, io.signal);
  // 256 bits each. An observer of the address or the answer does not learn the verifier.
  const [state, nonce, verifier] = [random(), random(), random()];
  const redirect = await startRedirect({ port: login.port, state, issuer: provider.issuer });
  try {
    const challenge = createHash("sha256").update(verifier).digest("base64url");
    const address = new URL(provider.authorization_endpoint);
    const fixed = { response_type: "code", scope: "openid email profile", code_challenge_method: "S256" };
    const perLogin = { client_id: login.clientId, redirect_uri: redirect.url, state, nonce, code_challenge: challenge };
    for (const [name, value] of Object.entries({ ...fixed, ...perLogin })) address.searchParams.set(name, value);
    io.stderr.write(`Open this address in a browser on this machine and log in:\n\n  ${cleanText(address.href)}\n\n`);
    const code = await waitForCode(redirect, io.signal);
    const token = await exchange(provider, login, { code, verifier, redirect: redirect.url }, io.signal);
    if (readIdToken(token, "the provider's answer").nonce === nonce) return token;
    throw new FlowError("UNAUTHENTICATED", `${login.issuer} answered with the token of another login: try again`);
  } finally {
    await redirect.close();
  }
}

function random(): string {
  return randomBytes(32).toString("base64url");
}

async function waitForCode(redirect: LoopbackRedirect, signal: AbortSignal): Promise<string> {
  const late = AbortSignal.timeout(LOGIN_MS);
  const limited = AbortSignal.any([signal, late]);
  let give = () => {};
  const ended = new Promise<never>((_, reject) => {
    give = () => reject(waitEnded(signal));
    if (limited.aborted) give();
    else limited.addEventListener("abort", give, { once: true });
  });
  try {
    return await Promise.race([redirect.code, ended]);
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

/** The provider's addresses, by OpenID Connect Discovery 1.0. */
async function discover(issuer: string, signal: AbortSignal): Promise<Discovery> {
  requireHttps(issuer, "The identity provider");
  const url = `${issuer}/.well-known/openid-configuration`;
  const answer = v.safeParse(Discovery, (await fetchJson(url, {}, signal)).body);
  // The specification asks for this check: else one provider could speak in another's name.
  if (!answer.success || answer.output.issuer.replace(/\/$/, "") !== issuer) {
    throw new FlowError(
      "UNAVAILABLE",
      `${url} does not describe an identity provider of this address: is it --issuer?`,
    );
  }
  requireHttps(answer.output.authorization_endpoint, "Its page for logins");
  requireHttps(answer.output.token_endpoint, "Its address for tokens");
  return answer.output;
}

/** Codes and tokens travel by these addresses. */
function requireHttps(url: string, what: string): void {
  const { protocol, hostname } = new URL(url);
  if (protocol === "https:" || (protocol === "http:" && isLoopback(hostname))) return;
  throw new FlowError("INVALID_SETTING", `${what} must be an https address, got '${url}'`);
}

const Tokens = v.object({ id_token: v.string() });
const Refusal = v.object({ error: v.string(), error_description: v.exactOptional(v.string()) });

async function exchange(
  { token_endpoint }: Discovery,
  { issuer, clientId }: ProviderLogin,
  { code, verifier, redirect }: { code: string; verifier: string; redirect: string },
  signal: AbortSignal,
): Promise<string> {
  const body = new URLSearchParams({
    grant_type: "authorization_code",
    code,
    redirect_uri: redirect,
    client_id: clientId,
    code_verifier: verifier,
  });
  const answer = await fetchJson(token_endpoint, { method: "POST", body }, signal);
  const tokens = v.safeParse(Tokens, answer.body);
  if (answer.ok && tokens.success) return tokens.output.id_token;
  const refusal = v.safeParse(Refusal, answer.body);
  const { error, error_description } = refusal.success ? refusal.output : { error: "it gave no ID token" };
  throw new FlowError("UNAUTHENTICATED", `${issuer} refused the login: ${error_description ?? error}`);
}

async function fetchJson(url: string, init: RequestInit, signal: AbortSignal): Promise<{ ok: boolean; body: unknown }> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(FETCH_MS)]);
  const headers = { accept: "application/json" };
  try {
    const answer = await fetch(url, { ...init, headers, redirect: "error", signal: limited });
    return { ok: answer.ok, body: await answer.json() };
  } catch (cause) {
    if (signal.aborted) throw new FlowError("CANCELLED", "login was interrupted", { cause });
    const why = cause instanceof Error && cause.cause instanceof Error ? cause.cause.message : messageOf(cause);
    throw new FlowError("UNAVAILABLE", `The identity provider does not answer at ${url}: ${why}`, { cause });
  }
}
