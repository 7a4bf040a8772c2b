import { createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider, { type KoaContextWithOIDC } from "oidc-provider";

/** A person with an account at the provider. */
export interface Person {
  sub: string;
  email?: string;
  name?: string;
  /** Default true. */
  verified?: boolean;
}

/** A real OpenID provider, at which every address has an account. */
export interface IdentityProvider {
  issuer: string;
  /** `FLOW_IDP_CONFIG` with it under the domain {@link DOMAIN}. */
  config: string;
  /** Logs a person in by the authorization code flow with PKCE, as a browser's application does; gives the ID token. */
  idToken(person: Person): Promise<string>;
  /** Who sits at the browser, that of {@link browse} or a real one; undefined: a person who refuses to log in. */
  visitor: Person | undefined;
  /** What a browser does with the address of a login: follows it, with cookies, to the end. Gives the last page's text. */
  browse(address: string): Promise<string>;
  close(): Promise<void>;
}

/** `idp_domain` of its logins. */
export const DOMAIN = "login.example.com";
/** How applications are registered there: as public clients of one's own machine, with PKCE. */
export const CLIENT_ID = "browser-app";
const REDIRECT = "http://127.0.0.1/callback";
/** The gateway's own page. */
const PAGE_REDIRECT = "http://127.0.0.1/login";
/** The same behind a reverse proxy with a path. */
const PATH_REDIRECT = "http://127.0.0.1/flow/login";
const REDIRECTS_MAX = 20;

/** Starts one on a free port of this machine. */
export async function startIdentityProvider(): Promise<IdentityProvider> {
  const people = new Map<string, Person>();
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        application_type: "native",
        token_endpoint_auth_method: "none",
        redirect_uris: [REDIRECT, PAGE_REDIRECT, PATH_REDIRECT],
        grant_types: ["authorization_code"],
        response_types: ["code"],
      },
    ],
    cookies: { keys: ["test"] },
    pkce: { required: () => true },
    // Pages exchange their codes themselves.
    clientBasedCORS: () => true,
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    // In the ID token itself, as most providers have them.
    conformIdTokenClaims: false,
    features: { devInteractions: { enabled: false } },
    findAccount: (_, id) => ({ accountId: id, claims: () => claimsOf(people.get(id) ?? { sub: id }) }),
    loadExistingGrant: consent,
  });
  /** The page on which a person would type their password: whom the application hints at does so, else the visitor. */
  const typePassword = async (request: IncomingMessage, response: ServerResponse) => {
    const { params } = await provider.interactionDetails(request, response);
    const { visitor } = identityProvider;
    if (visitor !== undefined) people.set(visitor.sub, visitor);
    const sub = params["login_hint"] ?? visitor?.sub;
    const outcome =
      sub === undefined
        ? { error: "access_denied", error_description: "No, thank you" }
        : { login: { accountId: String(sub) }, consent: {} };
    await provider.interactionFinished(request, response, outcome);
  };
  server.on("request", (request, response) => {
    const isPage = request.url?.startsWith("/interaction/") === true;
    void (isPage ? typePassword(request, response) : provider.callback()(request, response));
  });
  const identityProvider: IdentityProvider = {
    issuer,
    visitor: undefined,
    browse: (address) => follow(address).then(({ text }) => text),
    config: JSON.stringify({ [DOMAIN]: { issuer, jwks_uri: `${issuer}/jwks`, audience: CLIENT_ID } }),
    idToken(person) {
      people.set(person.sub, person);
      return logIn(issuer, person.sub);
    },
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
  return identityProvider;
}

function claimsOf({ sub, email, name, verified = true }: Person) {
  return { sub, ...(email !== undefined && { email, email_verified: verified }), ...(name !== undefined && { name }) };
}

/** No consent is asked for. */
async function consent({ oidc }: KoaContextWithOIDC) {
  const { account, client, provider } = oidc;
  const grant = new provider.Grant({
    ...(account && { accountId: account.accountId }),
    ...(client && { clientId: client.clientId }),
  });
  grant.addOIDCScope("openid email profile");
  await grant.save();
  return grant;
}

async function logIn(issuer: string, sub: string): Promise<string> {
  const verifier = randomBytes(32).toString("base64url");
  const query = new URLSearchParams({
    client_id: CLIENT_ID,
    response_type: "code",
    scope: "openid email profile",
    redirect_uri: REDIRECT,
    login_hint: sub,
    nonce: randomBytes(8).toString("hex"),
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  const code = await codeOf(`${issuer}/auth?${query}`);
  const body = new URLSearchParams({
    grant_type: "authorization_code",
    client_id: CLIENT_ID,
    code,
    redirect_uri: REDIRECT,
    code_verifier: verifier,
  });
  const response = await fetch(`${issuer}/token`, { method: "POST", body });
  const { id_token: idToken } = (await response.json()) as { id_token?: string };
  if (idToken === undefined) throw new Error(`The provider gave no ID token: ${response.status}`);
  return idToken;
}

/** Follows a login until the application is called back, where nothing listens. */
async function codeOf(address: string): Promise<string> {
  const { url } = await follow(address, (next) => next.startsWith(`${REDIRECT}?`));
  const code = new URL(url).searchParams.get("code");
  if (code === null) throw new Error(`The provider did not call the application back: ${url}`);
  return code;
}

/** Follows redirects as a browser does, with cookies, to the last page, or to an address that is not to be asked for. */
async function follow(address: string, isEnd: (url: string) => boolean = () => false) {
  const cookies = new Map<string, string>();
  let url = address;
  for (let hops = 0; hops < REDIRECTS_MAX; hops += 1) {
    if (isEnd(url)) return { url, text: "" };
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { cookie } });
    for (const set of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get("location");
    const text = await response.text();
    if (location === null) return { url, text };
    url = new URL(location, url).href;
  }
  throw new Error(`The provider goes round in circles: ${url}`);
}
