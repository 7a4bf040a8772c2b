import type { RouteEnvironment } from "../http/request-context.ts";

/** What the middleware of the gateway finds out about a request. */
export interface GatewayEnvironment extends RouteEnvironment {
  Variables: RouteEnvironment["Variables"] & {
    /** Whose call it is, as far as it is known. */
    client?: string;
    /** The page that the call comes from is one of CORS_ALLOWED_ORIGINS. */
    isAllowedOrigin?: boolean;
  };
}
