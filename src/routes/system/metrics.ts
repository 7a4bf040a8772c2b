import { Hono } from "hono";
import type { Metrics } from "../../platform/telemetry/metrics.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";

const METRICS = contract({
  method: "get",
  path: "/metrics",
  summary: "Metrics in Prometheus' text format",
  access: "anonymous",
  contentType: "text/plain",
});

/** Contracts of {@link metricsRoutes}. */
export const METRICS_CONTRACTS = [METRICS];

/** Metrics (interface specification, Health and metrics). */
export function metricsRoutes(metrics: Metrics) {
  return new Hono<RouteEnvironment>().get(METRICS.path, async (c) => {
    const { contentType, text } = await metrics.expose();
    return c.body(text, 200, { "content-type": contentType });
  });
}
