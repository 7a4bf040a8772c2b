import type { Context } from "hono";
import { FlowError } from "../../schema/errors.ts";

/** The answer to an address that is no route of the gateway. */
export function noGatewayRoute(c: Context): never {
  const what = "/health, /api/auth/login, /api/auth/logout, /api/auth/session, /api/auth/access, /flow/… and /mcp";
  throw new FlowError("NOT_FOUND", `The gateway has no ${c.req.method} ${c.req.path}; it has ${what}`);
}
