import type { Context, MiddlewareHandler } from "hono";
import type { PublicAddress } from "../../platform/config/public-address.ts";
import { isLoopbackUrl } from "../../platform/http/loopback.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { RouteEnvironment } from "./request-context.ts";

/**
 * For a server that listens on loopback: only names of this machine may be asked for, and only its own pages may ask.
 * Otherwise any page in the browser of this machine's user could have its own name resolve to 127.0.0.1 (DNS rebinding) and
 * register and run playbooks. `own`: the address by which a reverse proxy on this machine is reached, where callers have to
 * say who they are.
 */
export function loopbackOnly(own?: PublicAddress): MiddlewareHandler {
  return async (c, next) => {
    // The adapter builds the address from the Host header; tests give the address alone.
    const host = c.req.header("host") ?? new URL(c.req.url).host;
    if (!isLoopbackUrl(`http://${host}`) && host !== own?.host) throw refused("Host", host);
    const origin = c.req.header("origin");
    if (origin !== undefined && !isLoopbackUrl(origin) && origin !== own?.origin) throw refused("Origin", origin);
    await next();
  };
}

/**
 * For a route that pages of browsers have no business with, wherever the server listens: an Origin that is not of this machine
 * is refused, except from the gateway, which has looked at it. Throws `FlowError` FORBIDDEN.
 */
export function refuseForeignPages(c: Context<RouteEnvironment>): void {
  const origin = c.req.header("origin");
  if (origin === undefined || c.get("role") === "user" || isLoopbackUrl(origin)) return;
  throw new FlowError(
    "FORBIDDEN",
    `Pages of '${origin}' may not call this. Browsers call the gateway, which knows its pages`,
  );
}

function refused(header: string, value: string): FlowError {
  const hint = "To be reached by other names, listen on another address (FLOW_HOST) with FLOW_SERVER_TOKEN set.";
  return new FlowError(
    "FORBIDDEN",
    `${header} '${value}' is not this machine, on which alone the server listens. ${hint}`,
  );
}
