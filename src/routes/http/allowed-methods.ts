import type { Context, Hono } from "hono";
import { FlowError } from "../../schema/words/errors.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/**
 * For an address that no route answers with this method. Throws `FlowError` METHOD_NOT_ALLOWED, and says in `Allow` which methods
 * there are, when the address has a route with another method; returns when it has none. It asks the router itself, so that an
 * address means here what it means to the routes.
 */
export function refuseMethod(c: Context, router: Pick<Hono["router"], "match">): void {
  const { method, path } = c.req;
  // Middleware is registered for all methods, handlers never are.
  const answers = (one: string) => router.match(one, path)[0].some(([[, route]]) => route.method !== "ALL");
  const allowed = METHODS.filter(answers).flatMap((one) => (one === "GET" ? ["GET", "HEAD"] : one));
  if (allowed.length === 0) return;
  const list = allowed.join(", ");
  c.header("allow", list);
  throw new FlowError("METHOD_NOT_ALLOWED", `There is no ${method} ${path}; this address takes ${list}`, {
    detail: { allow: allowed },
  });
}
