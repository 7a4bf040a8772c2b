import { Hono } from "hono";
import type { Logger } from "../platform/logger.ts";
import type { Metrics } from "../platform/metrics.ts";
import type { FlowError } from "../schema/errors.ts";
import type { Catalog } from "../services/catalog.ts";
import { access, type Tokens } from "./access.ts";
import { CATALOG_CONTRACTS, catalogRoutes } from "./catalog.ts";
import type { RouteContract } from "./contract.ts";
import type { RouteEnvironment } from "./environment.ts";
import { errorAnswers, noSuchRoute } from "./errors.ts";
import { HEALTH_CONTRACTS, healthRoutes } from "./health.ts";
import { loopbackOnly } from "./host.ts";
import { METRICS_CONTRACTS, metricsRoutes } from "./metrics.ts";
import { OPENAPI_CONTRACTS, openApiRoutes } from "./openapi.ts";
import { bodyLimit, requests } from "./request.ts";

/** Every route of the server's API. */
export const CONTRACTS: readonly RouteContract[] = [
  ...HEALTH_CONTRACTS,
  ...METRICS_CONTRACTS,
  ...CATALOG_CONTRACTS,
  ...OPENAPI_CONTRACTS,
];

/** What the API is made of. */
export interface AppDeps {
  catalog: Catalog;
  logger: Logger;
  metrics: Metrics;
  tokens: Tokens;
  /** The server listens on loopback: refuse names and pages from elsewhere. */
  loopback: boolean;
  /** Version of the program, for the API's description. */
  version: string;
  newRequestId(): string;
  /** The refusal for an error that says "the database is away"; undefined for one that is a fault. */
  unavailable(error: unknown): FlowError | undefined;
}

/**
 * The server's API. What stands between a request and its route, in this order: its id, log and metrics; where it comes
 * from; how long it is; who sends it.
 */
export function createApp(deps: AppDeps) {
  const app = new Hono<RouteEnvironment>();
  app.onError(errorAnswers(deps));
  app.notFound(noSuchRoute);
  app.use(requests(deps));
  if (deps.loopback) app.use(loopbackOnly());
  app.use(bodyLimit());
  app.use(access(CONTRACTS, deps.tokens));
  return app
    .route("/", healthRoutes())
    .route("/", metricsRoutes(deps.metrics))
    .route("/", catalogRoutes(deps.catalog))
    .route("/", openApiRoutes(CONTRACTS, deps.version));
}
