import type { Context } from "hono";
import { isSessionToken, tokenSha256 } from "../../platform/crypto/token.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { bearerOf } from "../http/authenticate.ts";
import { unknownOrigin } from "./cors.ts";
import type { GatewayEnvironment } from "./request-context.ts";

/** The cookie that holds a session's token. */
export interface SessionCookie {
  name: string;
  path: string;
}

const NAME = "session_token";

/**
 * The cookie of a gateway at this public address. Behind https it has a prefix by which browsers refuse one of that name from plain
 * http, and with `__Host-`, which takes a path of `/`, one from any other host: neither can put a session of its own beside ours. Behind
 * http, as on this machine, browsers refuse the prefixes.
 */
export function sessionCookie(own: { url: string; path: string } | undefined): SessionCookie {
  const path = own?.path || "/";
  if (own?.url.startsWith("https:") !== true) return { name: NAME, path };
  return { name: `${path === "/" ? "__Host-" : "__Secure-"}${NAME}`, path };
}

/** The cookie of versions without prefixes at this path; undefined where it is still in use. It is no session behind https, and taken away. */
export function formerCookie({ name, path }: SessionCookie): SessionCookie | undefined {
  return name === NAME ? undefined : { name: NAME, path };
}

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * The SHA-256 of a call's session token. `Authorization: Bearer`, `X-Session-Token` and the cookie are read in this order: the
 * first one present decides. Browsers send a cookie whatever page calls, so a call with one that changes something must come
 * from an allowed origin. Throws `FlowError` UNAUTHENTICATED without a valid token, FORBIDDEN for another origin.
 */
export function sessionOf(c: Context<GatewayEnvironment>): string {
  const { token, isCookie } = tokenOf(c);
  if (!isSessionToken(token)) throw invalidSession();
  if (isCookie && !SAFE_METHODS.has(c.req.method) && c.var.isAllowedOrigin !== true)
    throw forgedRequest(c.req.header("origin"));
  return tokenSha256(token);
}

/** The error for a token that is no session's. */
export function invalidSession(): FlowError {
  return new FlowError(
    "UNAUTHENTICATED",
    "The session is not valid: it is over, was ended, or never was; log in again",
  );
}

function tokenOf(c: Context<GatewayEnvironment>): { token: string; isCookie: boolean } {
  const authorization = c.req.header("authorization");
  if (authorization !== undefined) {
    return { token: bearerOf(authorization) ?? "", isCookie: false };
  }
  const header = c.req.header("x-session-token");
  if (header !== undefined) return { token: header, isCookie: false };
  const cookies = cookiesOf(c.req.header("cookie") ?? "", c.var.sessionCookie ?? NAME);
  if (cookies.length === 0) {
    const how = "send 'Authorization: Bearer <session token>', X-Session-Token, or the cookie of a login";
    throw new FlowError("UNAUTHENTICATED", `The call has no session: ${how}`);
  }
  // Another host of the same site can set a cookie of this name beside ours, and would so choose the user.
  if (new Set(cookies).size > 1)
    throw new FlowError("UNAUTHENTICATED", "The call has two session cookies; log in again");
  return { token: cookies[0] ?? "", isCookie: true };
}

function cookiesOf(header: string, wanted: string): string[] {
  return header.split(";").flatMap((part) => {
    const [name, value = ""] = part.split(/=(.*)/s);
    return name?.trim() === wanted ? [value.trim()] : [];
  });
}

function forgedRequest(origin: string | undefined): FlowError {
  if (origin !== undefined) return unknownOrigin(origin);
  const hint = "programs send the token as 'Authorization: Bearer'";
  return new FlowError("FORBIDDEN", `A call by cookie that changes something must say its Origin; ${hint}`);
}
