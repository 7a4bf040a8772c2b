import { type Context, Hono } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import {
  type AccessAnswer,
  AccessBody,
  type ExchangeAnswer,
  ExchangeBody,
  type KnownSession,
  type LoginAnswer,
  LoginBody,
  type ProvidersAnswer,
  type SessionAnswer,
} from "../../schema/api/gateway.ts";
import { GATEWAY_ROUTES } from "../../schema/routes/gateway.ts";
import type { AccessAction } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { LoggedIn, LoginRequest } from "../../services/login/login.ts";
import { readJson } from "../http/validate.ts";
import { unknownOrigin } from "./cors.ts";
import type { GatewayEnvironment } from "./request-context.ts";
import { formerCookie, invalidSession, type SessionCookie, sessionOf } from "./session-token.ts";

/** What the routes of logins do. */
export interface LoginRouteDeps {
  login(request: LoginRequest): Promise<LoggedIn>;
  /** With whom people log in, and why not where one does not answer. */
  providers(): Promise<readonly ListedProvider[]>;
  check(tokenSha256: string, address: string | undefined): Promise<KnownSession | undefined>;
  /** Ends a session. Throws `FlowError` UNAUTHENTICATED if it is not valid. */
  revoke(tokenSha256: string): Promise<void>;
  /** Whether the session's user may do something with a path. Throws `FlowError` UNAUTHENTICATED for no session. */
  isAllowed(tokenSha256: string, request: { action: AccessAction; path: string }): Promise<boolean>;
  /** GATEWAY_AUTH_BYPASS: callers without a session are answered as administrators, which they are. */
  bypass: boolean;
  /** What a browser keeps of a session. Its path stands before each path of the gateway: it is sent nowhere else. */
  cookie: SessionCookie;
  /** Milliseconds since 1970. */
  now(): number;
}

type ListedProvider = { domain: string; name: string } & (
  | { provider: { issuer: string; clientId: string; authorizationEndpoint: string } }
  | { problem: string }
);

/** The user that a gateway without logins assumes for every caller. */
const NOBODY = { user_id: 0, email: "nobody@localhost", display_name: "Nobody: logins are bypassed", roles: ["admin"] };

/** Login, logout, and what a session is worth (interface specification, Gateway). */
export function loginRoutes(deps: LoginRouteDeps) {
  return new Hono<GatewayEnvironment>()
    .post(GATEWAY_ROUTES.login.path, async (c) => {
      const { idp_token: idpToken, idp_domain: idpDomain } = await readJson(c, LoginBody);
      refuseUnknownOrigin(c);
      const { client: address } = c.var;
      const logged = await deps.login({ idpToken, idpDomain, address, userAgent: c.req.header("user-agent") });
      const answer = logIn(c, logged, deps);
      return c.json({ ...answer, session_token: logged.sessionToken } satisfies LoginAnswer);
    })
    .get("/api/auth/providers", async (c) => {
      c.header("cache-control", "no-store");
      return c.json({ providers: (await deps.providers()).map(providerItem) } satisfies ProvidersAnswer);
    })
    .post("/api/auth/exchange", async (c) => {
      const {
        idp_domain: idpDomain,
        code_verifier: codeVerifier,
        redirect_uri: redirectUri,
        ...rest
      } = await readJson(c, ExchangeBody);
      refuseUnknownOrigin(c);
      refuseForeignRedirect(c, redirectUri);
      const userAgent = c.req.header("user-agent");
      const code = { ...rest, codeVerifier, redirectUri };
      const logged = await deps.login({ code, idpDomain, address: c.var.client, userAgent });
      return c.json(logIn(c, logged, deps) satisfies ExchangeAnswer);
    })
    .post(GATEWAY_ROUTES.logout.path, async (c) => {
      const session = sessionOf(c);
      try {
        await deps.revoke(session);
      } catch (error) {
        // Of a session that is over nothing is left to try again with.
        if (error instanceof FlowError && error.code === "UNAUTHENTICATED") forget(c, deps.cookie);
        throw error;
      }
      forget(c, deps.cookie);
      return c.json({ status: "logged_out" });
    })
    .get("/api/auth/session", async (c) => {
      c.header("cache-control", "no-store");
      if (deps.bypass) return c.json({ valid: true, user: NOBODY, expires_at: null } satisfies SessionAnswer);
      const session = await deps.check(sessionOf(c), c.var.client);
      if (session === undefined) throw invalidSession();
      const { user, expiresAt } = session;
      return c.json({ valid: true, user, expires_at: withoutZone(expiresAt) } satisfies SessionAnswer);
    })
    .post("/api/auth/access", async (c) => {
      const body = await readJson(c, AccessBody);
      const allowed = deps.bypass || (await deps.isAllowed(sessionOf(c), body));
      return c.json({ allowed } satisfies AccessAnswer);
    });
}

/** No script reads it, it travels over TLS alone (or within the machine), and not with what other sites send. */
const COOKIE = { httpOnly: true, secure: true, sameSite: "Lax" } as const;

/** The cookie of a login, and the part of it that pages may read. */
function logIn(c: Context, { sessionToken, user, expiresAt }: LoggedIn, deps: LoginRouteDeps): ExchangeAnswer {
  const maxAge = Math.max(0, Math.floor((expiresAt - deps.now()) / 1_000));
  setCookie(c, deps.cookie.name, sessionToken, { ...COOKIE, path: deps.cookie.path, maxAge });
  forgetFormer(c, deps.cookie);
  c.header("cache-control", "no-store");
  const message = `Logged in as ${user.email}`;
  return { status: "authenticated", user, expires_at: withoutZone(expiresAt), message };
}

function forget(c: Context, cookie: SessionCookie): void {
  deleteCookie(c, cookie.name, { ...COOKIE, path: cookie.path });
  forgetFormer(c, cookie);
}

/** Only where a browser has one: an answer without need is shorter. */
function forgetFormer(c: Context, cookie: SessionCookie): void {
  const former = formerCookie(cookie);
  if (former !== undefined && getCookie(c, former.name) !== undefined)
    deleteCookie(c, former.name, { ...COOKIE, path: former.path });
}

function providerItem(listed: ListedProvider): ProvidersAnswer["providers"][number] {
  const { domain, name } = listed;
  if ("problem" in listed) {
    return { domain, name, issuer: null, client_id: null, authorization_endpoint: null, problem: listed.problem };
  }
  const { issuer, clientId, authorizationEndpoint } = listed.provider;
  return { domain, name, issuer, client_id: clientId, authorization_endpoint: authorizationEndpoint, problem: null };
}

/** A page exchanges what came back to itself. */
function refuseForeignRedirect(c: Context, redirectUri: string): void {
  const origin = c.req.header("origin");
  if (origin === undefined || new URL(redirectUri).origin === origin) return;
  throw new FlowError("FORBIDDEN", `'redirect_uri' must be of the page that calls, ${origin.slice(0, 200)}`);
}

/** A page that logged a visitor in as another user would see what the visitor then does. */
function refuseUnknownOrigin(c: Context<GatewayEnvironment>): void {
  const origin = c.req.header("origin");
  if (origin !== undefined && c.var.isAllowedOrigin !== true) throw unknownOrigin(origin);
}

/** `2026-06-01T12:00:00.000`, in UTC, as the specification requires. */
function withoutZone(ms: number): string {
  return new Date(ms).toISOString().slice(0, -1);
}
