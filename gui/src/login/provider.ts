import { problemOf, unreachable } from "../api/problem.ts";

/** A provider at which people log in, as the gateway tells it. */
export interface Provider {
  domain: string;
  authorization_endpoint: string;
  client_id: string;
}

/** What was asked of a provider, until its answer comes. */
interface Asked {
  state: string;
  nonce: string;
  domain: string;
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
 * Goes to the provider's page, which sends the browser back here with an ID token behind the `#`, where no server's log has it
 * (OpenID Connect Core 1.0, section 3.2: implicit flow, for the ID token alone).
 */
export function goToProvider(provider: Provider, to: string): void {
  const asked: Asked = { state: random(), nonce: random(), domain: provider.domain, to };
  sessionStorage.setItem(KEY, JSON.stringify(asked));
  const url = new URL(provider.authorization_endpoint);
  const values = {
    response_type: "id_token",
    response_mode: "fragment",
    scope: "openid email profile",
    client_id: provider.client_id,
    redirect_uri: `${location.origin}/login`,
    state: asked.state,
    nonce: asked.nonce,
  };
  for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value);
  location.assign(url);
}

/** The page to go on to when the provider's answer is in the address and the gateway believes it; undefined without an answer. */
export async function takeAnswer(signal: AbortSignal): Promise<string | undefined> {
  const answer = new URLSearchParams(location.hash.slice(1));
  if (!answer.has("state")) return undefined;
  const asked = JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Partial<Asked>;
  sessionStorage.removeItem(KEY);
  // The token shall not stay in the browser's history.
  history.replaceState(null, "", "/login");
  if (answer.get("state") !== asked.state)
    throw new Error("This answer is not to a question of this page; log in again.");
  const error = answer.get("error");
  if (error !== null) throw new Error(`The provider refused: ${answer.get("error_description") ?? error}`);
  const token = answer.get("id_token") ?? "";
  if (nonceOf(token) !== asked.nonce) throw new Error("The ID token was made for another login; log in again.");
  await answerOf("/api/auth/login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ idp_token: token, idp_domain: asked.domain }),
    signal,
  });
  return asked.to?.startsWith("/") === true ? asked.to : "/";
}

/** Ends the session of this browser. */
export async function logOut(): Promise<void> {
  await answerOf("/api/auth/logout", { method: "POST" });
}

async function answerOf(path: string, init: RequestInit): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, credentials: "same-origin" });
  } catch (error) {
    throw unreachable(error);
  }
  if (!response.ok) throw await problemOf(response);
  return response.status === 204 ? undefined : await response.json();
}

function nonceOf(token: string): unknown {
  const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
  return (JSON.parse(atob(payload)) as Record<string, unknown>)["nonce"];
}

function random(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
