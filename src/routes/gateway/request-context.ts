import type { RouteEnvironment } from "../http/request-context.ts";

/** What the middleware of the gateway finds out about a request. */
export interface GatewayEnvironment extends RouteEnvironment {
  Variables: RouteEnvironment["Variables"] & {
    /** The session's user, if known. */
    client?: string;
    /** The page that the call comes from is one of CORS_ALLOWED_ORIGINS. */
    isAllowedOrigin?: boolean;
    /** Name of the cookie that holds a session's token here. */
    sessionCookie?: string;
  };
}
