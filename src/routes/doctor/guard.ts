import type { MiddlewareHandler } from "hono";
import type { Secret } from "../../platform/crypto/secret.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { bearerOf, tokenMatcher } from "../http/bearer.ts";
import type { RouteEnvironment } from "../http/request-context.ts";

/**
 * Lets callers with the token in, and everybody to `open`. Without a token nobody is asked: then the doctor listens on
 * loopback only. Looking is guarded too: a caller may name a server and a database that the doctor is to connect to.
 */
export function tokenGuard(token: Secret | undefined, open: string): MiddlewareHandler<RouteEnvironment> {
  const isExpected = token === undefined ? undefined : tokenMatcher(token);
  return async (c, next) => {
    const isOpen = c.req.method === "GET" && c.req.path === open;
    if (isExpected !== undefined && !isOpen) {
      const given = bearerOf(c.req.header("authorization"));
      if (given === undefined || !isExpected(given)) {
        const hint =
          "send 'Authorization: Bearer <token>' with FLOW_DOCTOR_TOKEN, or FLOW_SERVER_TOKEN where that is not set";
        throw new FlowError("UNAUTHENTICATED", `The doctor does not know this caller; ${hint}`);
      }
    }
    c.set("role", "operator");
    await next();
  };
}
