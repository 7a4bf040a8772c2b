import type { Context, MiddlewareHandler } from "hono";
import { matchedRoutes } from "hono/route";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { RequestMetrics } from "../../platform/telemetry/request-metrics.ts";
import type { TokenRole } from "../../schema/routes/contract.ts";
import type { AccessAction, PathRule } from "../../schema/rules/access-rules.ts";
import type { CallingUser } from "../../services/access/access.ts";
import type { WorkerPool } from "../../services/workers/pools.ts";
import type { PresentClaim } from "../../services/workers/present-claims.ts";
import type { Decisions } from "./decisions.ts";
import type { MessageSink } from "./message-request.ts";
import { tooLarge } from "./read-body.ts";
import type { Recheck } from "./recheck-access.ts";

/** The caller. A user calls through a gateway, which has the operator's token and names the session. */
export type Role = TokenRole | "user";

/** What the middleware finds out about a request, for the handlers behind it. */
export interface RouteEnvironment {
  Bindings: {
    /** What the request came with; nothing where there is no port. */
    incoming?: { socket: { remoteAddress?: string | undefined } };
    /** Of a call that this process makes itself: in the name of which pool. What came over a port has none. */
    ownPool?: WorkerPool;
    /** Of a request for another protocol on its connection: the route says whether it may have it. */
    upgrade?: { isLeaving: boolean; isAccepted: boolean };
    /** Of a call that came as a message of a worker connection. */
    message?: MessageSink;
  };
  Variables: {
    /** Id of the request: in the answer's `x-request-id`, in error bodies and in the log. */
    requestId: string;
    /** The caller. */
    role: Role;
    /** The user, for role `user`. */
    user?: CallingUser;
    /** For a worker: its pool; undefined for one with the shared token. */
    pool?: WorkerPool;
    /** For a worker on a route that needs one: the claim in whose name it calls. */
    claim?: PresentClaim;
    /** The client's address, if a gateway reported it. */
    address?: string;
    /** What let a user call, for the audit log. */
    rule?: string;
    /** Throws `FlowError` FORBIDDEN for a user whose roles do not allow this on this path; others may. Audited. */
    permit(action: AccessAction, path: string): Promise<void>;
    /** The same as an answer, which is in no log: for what only a message depends on. */
    may(action: AccessAction, path: string): boolean;
    /** What was decided about this call. */
    decisions: Decisions;
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

/** The address that the connection comes from; undefined for a request without a socket, as in tests. */
export function peerOf(c: Context<RouteEnvironment>): string | undefined {
  const env = c.env as RouteEnvironment["Bindings"] | undefined;
  return env?.incoming?.socket.remoteAddress;
}

/** The outermost middleware: assigns the request id, and reports the request's end to log and metrics. */
export function requests(deps: {
  newRequestId(): string;
  logger: Logger;
  metrics: RequestMetrics;
}): MiddlewareHandler<RouteEnvironment> {
  return async (c, next) => {
    const began = performance.now();
    const requestId = deps.newRequestId();
    c.set("requestId", requestId);
    c.set("role", "anonymous");
    c.set("permit", async () => undefined);
    c.set("may", () => true);
    c.set("visible", () => undefined);
    const { message, upgrade } = c.env ?? {};
    if (message === undefined) {
      // Before there is an answer: a header that is set on one makes it be copied as a stream, at twice the cost of the call.
      c.header("x-request-id", requestId);
      c.header("x-content-type-options", "nosniff");
    }
    await next();
    const seconds = (performance.now() - began) / 1_000;
    // A `Response` cannot have the status of a connection that changes its protocol.
    const status = upgrade?.isAccepted === true ? SWITCHING_PROTOCOLS : c.res.status;
    const route = routeOf(c) ?? "none";
    const { method } = c.req;
    // A method can be any text: each would be another series, for ever.
    deps.metrics.requestDone({ method: METHODS.has(method) ? method : "other", route, status }, seconds);
    const fields = { request_id: requestId, caller: c.get("role"), status, ms: Math.round(seconds * 1e6) / 1e3 };
    // Addresses without their query: what a caller put there by mistake does not belong into a log.
    const line = `${method} ${c.req.path.replace(LINK, "$1…")} ${status}`;
    if (status >= 400) deps.logger.info(fields, line);
    else deps.logger.debug(fields, line);
  };
}

/** A link is a secret: who has it decides. */
const LINK = /^(.*\/approve\/).+/;
const SWITCHING_PROTOCOLS = 101;
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/**
 * Refuses a body whose announced length is too large for its route, before authentication. A body without a length (chunked) is
 * counted while it is read, which only happens for callers who may call the route.
 */
export function bodyLimit(bytesMaxOf: (route: string | undefined) => number): MiddlewareHandler {
  return async (c, next) => {
    const length = Number(c.req.header("content-length") ?? 0);
    if (length > 0) {
      const bytesMax = bytesMaxOf(routeOf(c));
      if (length > bytesMax) throw tooLarge(bytesMax);
    }
    await next();
  };
}
