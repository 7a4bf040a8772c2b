import type { MiddlewareHandler } from "hono";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { RequestMetrics } from "../../platform/telemetry/request-metrics.ts";
import { tooLarge } from "./read-body.ts";
import { type RouteEnvironment, routeOf } from "./request-context.ts";

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
    c.set("visible", () => undefined);
    // Before there is an answer: a header that is set on one makes it be copied as a stream, at twice the cost of the call.
    c.header("x-request-id", requestId);
    c.header("x-content-type-options", "nosniff");
    await next();
    const seconds = (performance.now() - began) / 1_000;
    const { status } = c.res;
    const route = routeOf(c) ?? "none";
    const { method } = c.req;
    // A method can be any text: each would be another series, for ever.
    deps.metrics.requestDone({ method: METHODS.has(method) ? method : "other", route, status }, seconds);
    const fields = { request_id: requestId, caller: c.get("role"), status, ms: Math.round(seconds * 1e6) / 1e3 };
    // Addresses without their query: what a caller put there by mistake does not belong into a log.
    const line = `${method} ${c.req.path} ${status}`;
    if (status >= 400) deps.logger.info(fields, line);
    else deps.logger.debug(fields, line);
  };
}

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
