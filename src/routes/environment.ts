import type { Context } from "hono";
import { matchedRoutes } from "hono/route";
import type { Role } from "./contract.ts";

/** What the middleware finds out about a request, for the handlers behind it. */
export interface RouteEnvironment {
  /** What the request came with; nothing where there is no port. */
  Bindings: { incoming?: { socket: { remoteAddress?: string | undefined } } };
  Variables: {
    /** Id of the request: in the answer's `x-request-id`, in error bodies and in the log. */
    requestId: string;
    /** Who calls. */
    role: Role;
  };
}

/**
 * The route that answers this request, as `GET /api/health`, or undefined when none does. It is what the router found, so
 * that no spelling of an address (case, encoded or doubled slashes) can pass for another route than the one that runs.
 */
export function routeOf(c: Context): string | undefined {
  // Middleware is registered for all methods, handlers never are. The first handler is the one that answers.
  const handler = matchedRoutes(c).find(({ method }) => method !== "ALL");
  return handler === undefined ? undefined : `${handler.method} ${handler.path}`;
}
