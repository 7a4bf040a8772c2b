import type { Context } from "hono";
import { FlowError } from "../../schema/words/errors.ts";

/** The answer to an address that is no route of the gateway. */
export function noGatewayRoute(c: Context): never {
  const auth = ["login", "exchange", "providers", "logout", "session", "access"].map((name) => `/api/auth/${name}`);
  const what = `/health, ${auth.join(", ")}, /flow/… and /mcp`;
  throw new FlowError("NOT_FOUND", `The gateway has no ${c.req.method} ${c.req.path}; it has ${what}`);
}
