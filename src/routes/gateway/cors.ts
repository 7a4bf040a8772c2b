import type { MiddlewareHandler } from "hono";
import { isLoopback } from "../../platform/http/loopback.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { GatewayEnvironment } from "./request-context.ts";

/** Which pages may call. */
export interface OriginRules {
  /** Origins as browsers send them. */
  allowed: readonly string[];
  /** Accepted Host headers if the gateway listens on loopback; undefined: any. */
  hosts: ReadonlySet<string> | undefined;
  /** No authentication: then pages of other origins may not call at all. */
  bypass: boolean;
}

const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE";
/** Headers that pages may send, and those of answers that they may read. */
const HEADERS = [
  "authorization",
  "content-type",
  "idempotency-key",
  "if-none-match",
  "last-event-id",
  "mcp-protocol-version",
  "mcp-session-id",
  "range",
  "traceparent",
  "x-session-token",
].join(", ");
const EXPOSED = "content-range, etag, mcp-session-id, retry-after, x-flow-auth-bypass, x-request-id";
const PREFLIGHT_SECONDS = "600";

/**
 * CORS (interface specification, Gateway): an allowed origin is answered with itself, any other with no such header, so that the
 * browser keeps the answer from its page. There is no wildcard, as calls bring cookies. Preflights need no session and reach no
 * route.
 *
 * The gateway's own page may call too. Browsers say so (`Sec-Fetch-Site`, which no script can set), whatever name and scheme
 * they have reached it by.
 */
export function origins({ allowed, hosts, bypass }: OriginRules): MiddlewareHandler<GatewayEnvironment> {
  const known = new Set(allowed);
  // Without authentication and with any host name accepted, a foreign page could reach this server under its own name (DNS rebinding).
  const isTrusted = !bypass || hosts !== undefined;
  return async (c, next) => {
    // Always: what is the answer for one page must not be taken from a cache for another.
    c.header("vary", "Origin", { append: true });
    const origin = c.req.header("origin");
    const isListed = origin !== undefined && known.has(origin);
    const isAllowed = isListed || (isTrusted && c.req.header("sec-fetch-site") === "same-origin");
    c.set("isAllowedOrigin", isAllowed);
    if (isListed) {
      c.header("access-control-allow-origin", origin);
      c.header("access-control-allow-credentials", "true");
      c.header("access-control-expose-headers", EXPOSED);
    }
    if (hosts !== undefined) checkHost(c.req.header("host") ?? new URL(c.req.url).host, hosts);
    const isPreflight = c.req.method === "OPTIONS" && c.req.header("access-control-request-method") !== undefined;
    if (origin !== undefined && !isAllowed && (isPreflight || bypass)) throw unknownOrigin(origin);
    if (!isPreflight) return await next();
    c.header("vary", "Access-Control-Request-Method", { append: true });
    c.header("vary", "Access-Control-Request-Headers", { append: true });
    c.header("access-control-allow-methods", METHODS);
    c.header("access-control-allow-headers", HEADERS);
    c.header("access-control-max-age", PREFLIGHT_SECONDS);
    return c.body(null, 204);
  };
}

/** The error for a page that may not call. */
export function unknownOrigin(origin: string): FlowError {
  const hint = "add it to CORS_ALLOWED_ORIGINS of the gateway if it may";
  return new FlowError("FORBIDDEN", `Pages of '${origin.slice(0, 200)}' may not call this gateway; ${hint}`);
}

/** Otherwise a page under any name that resolves to this machine could call as if it were same-origin (DNS rebinding). */
function checkHost(host: string, hosts: ReadonlySet<string>): void {
  const name = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : undefined;
  if (name !== undefined && (isLoopback(name.hostname) || hosts.has(name.host))) return;
  const hint = "set GATEWAY_PUBLIC_URL to the address by which browsers reach it";
  throw new FlowError(
    "FORBIDDEN",
    `Host '${host.slice(0, 200)}' is not this gateway, which listens on loopback; ${hint}`,
  );
}
