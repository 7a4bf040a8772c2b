import type { Context } from "hono";
import { matchedRoutes } from "hono/route";
import type { TokenRole } from "../../schema/routes/contract.ts";
import type { AccessAction, PathRule } from "../../schema/rules/access-rules.ts";
import type { CallingUser } from "../../services/access/access.ts";
import type { Recheck } from "./recheck-access.ts";

/** The caller. A user calls through a gateway, which has the operator's token and names the session. */
export type Role = TokenRole | "user";

/** What the middleware finds out about a request, for the handlers behind it. */
export interface RouteEnvironment {
  /** What the request came with; nothing where there is no port. */
  Bindings: { incoming?: { socket: { remoteAddress?: string | undefined } } };
  Variables: {
    /** Id of the request: in the answer's `x-request-id`, in error bodies and in the log. */
    requestId: string;
    /** The caller. */
    role: Role;
    /** The user, for role `user`. */
    user?: CallingUser;
    /** The client's address, if a gateway reported it. */
    address?: string;
    /** What let a user call, for the audit log. */
    rule?: string;
    /** Throws `FlowError` FORBIDDEN for a user whose roles do not allow this on this path; others may. Audited. */
    permit(action: AccessAction, path: string): Promise<void>;
    /** For a user: the check that a stream repeats before it continues. */
    recheck?: Recheck;
    /** Which paths of a list the caller may do this with; undefined: all. */
    visible(action: AccessAction): readonly PathRule[] | undefined;
  };
}

/**
 * The route that answers this request, such as `GET /api/health`, or undefined without one. It is what the router matched, so
 * that no spelling of an address (case, encoded or doubled slashes) can be taken for another route than the one that runs.
 */
export function routeOf(c: Context): string | undefined {
  const handler = matchedRoutes(c)[handlerIndex(c)];
  return handler === undefined ? undefined : `${handler.method} ${handler.path}`;
}

/** The parameters of the address exactly as the handler will read them. */
export function parametersOf(c: Context): Record<string, string> {
  const before = c.req.routeIndex;
  // Parameters are read for the part of the chain that runs; this one stands before the handler.
  c.req.routeIndex = handlerIndex(c);
  try {
    return c.req.param();
  } finally {
    c.req.routeIndex = before;
  }
}

/** Middleware is registered for all methods, handlers never are. The first handler is the one that answers. */
function handlerIndex(c: Context): number {
  return matchedRoutes(c).findIndex(({ method }) => method !== "ALL");
}
