import { type Context, Hono } from "hono";
import { type AddressRange, clientAddress } from "../../platform/http/client-address.ts";
import type { GuiFiles } from "../../platform/http/page-files.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { RequestMetrics } from "../../platform/telemetry/request-metrics.ts";
import { LINK_BODY_BYTES_MAX } from "../../schema/api/waits/approvals.ts";
import { HOOK_BYTES_MAX } from "../../schema/triggers/deliveries.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { refuseMethod } from "../http/allowed-methods.ts";
import { errorAnswers } from "../http/errors.ts";
import { BODY_BYTES_MAX } from "../http/read-body.ts";
import { bodyLimit, peerOf, requests } from "../http/request-context.ts";
import { guiFiles } from "../system/gui.ts";
import { type OriginRules, origins } from "./cors.ts";
import { type LoginRouteDeps, loginRoutes } from "./login.ts";
import { type ProxyDeps, proxyRoutes } from "./proxy.ts";
import type { GatewayEnvironment } from "./request-context.ts";

/** What the gateway's public side is made of. */
export interface GatewayAppDeps {
  login: LoginRouteDeps;
  proxy: ProxyDeps;
  origins: OriginRules;
  /** The browser's page; undefined if it is not installed. */
  gui?: GuiFiles | undefined;
  trustedProxies: readonly AddressRange[];
  logger: Logger;
  metrics: RequestMetrics;
  newRequestId(): string;
  /** The process is stopping: load balancers must send it no more calls. */
  isLeaving(): boolean;
}

/** Longest body of a login, bytes: an ID token of 16 KiB, and room. */
const LOGIN_BYTES_MAX = 65_536;

/**
 * What browsers reach. What stands between a request and its route, in this order: its id, log and metrics; whose address it is;
 * which page it comes from; whether it asks for the browser's page, which holds nothing and needs no session; how long it is. Callbacks of playbooks are not here but on a listener of their own.
 */
export function createGatewayApp(deps: GatewayAppDeps) {
  const app = new Hono<GatewayEnvironment>();
  app.onError(errorAnswers({ logger: deps.logger, unavailable: () => undefined }));
  app.notFound((c) => {
    refuseMethod(c, app.router);
    return noGatewayRoute(c);
  });
  app.use(requests(deps));
  app.use(async (c, next) => {
    const client = clientAddress(peerOf(c), c.req.header("x-forwarded-for"), deps.trustedProxies);
    if (client !== undefined) c.set("client", client);
    c.set("sessionCookie", deps.login.cookie.name);
    // Public to everyone who looks at any answer.
    if (deps.proxy.bypass) c.header("x-flow-auth-bypass", "true");
    await next();
  });
  app.use(origins(deps.origins));
  if (deps.gui !== undefined) app.use(guiFiles(deps.gui));
  app.use(bodyLimit(bytesMaxOf));
  return app
    .get("/health", (c) => (deps.isLeaving() ? c.text("stopping", 503) : c.text("ok")))
    .route("/", loginRoutes(deps.login))
    .route("/", proxyRoutes(deps.proxy));
}

function bytesMaxOf(route: string | undefined): number {
  if (route?.includes("/api/auth/") === true) return LOGIN_BYTES_MAX;
  if (route?.includes(" /approve/") === true) return LINK_BODY_BYTES_MAX;
  return route?.includes(" /hooks/") === true ? HOOK_BYTES_MAX : BODY_BYTES_MAX;
}

/** The answer to an address that is no route of the gateway. */
function noGatewayRoute(c: Context): never {
  const auth = ["login", "exchange", "providers", "logout", "session", "access"].map((name) => `/api/auth/${name}`);
  const what = `/health, ${auth.join(", ")}, /hooks/…, /approve/…, /flow/… and /mcp`;
  throw new FlowError("NOT_FOUND", `The gateway has no ${c.req.method} ${c.req.path}; it has ${what}`);
}
