import type { MiddlewareHandler } from "hono";
import { isLoopback } from "../platform/loopback.ts";
import { FlowError } from "../schema/errors.ts";

/**
 * For a server that listens on loopback: only names of this machine may be asked for, and only its own pages may ask.
 * Otherwise any page in the browser of whoever runs this could have its own name resolve to 127.0.0.1 (DNS rebinding) and
 * register and run playbooks.
 */
export function loopbackOnly(): MiddlewareHandler {
  return async (c, next) => {
    // The adapter builds the address from the Host header; tests give the address alone.
    const host = c.req.header("host") ?? new URL(c.req.url).host;
    if (!isLocal(`http://${host}`)) throw refused("Host", host);
    const origin = c.req.header("origin");
    if (origin !== undefined && !isLocal(origin)) throw refused("Origin", origin);
    await next();
  };
}

function isLocal(address: string): boolean {
  return URL.canParse(address) && isLoopback(new URL(address).hostname);
}

function refused(header: string, value: string): FlowError {
  const hint = "To be reached by other names, listen on another address (FLOW_HOST) with FLOW_SERVER_TOKEN set.";
  return new FlowError(
    "FORBIDDEN",
    `${header} '${value}' is not this machine, on which alone the server listens. ${hint}`,
  );
}
