import type { Metrics } from "../../platform/telemetry/metrics.ts";
import { METRICS_ROUTES } from "../../schema/routes/system.ts";
import { serve } from "../http/serve.ts";

/** Metrics (interface specification, Health and metrics). */
export function metricsRoutes(metrics: Metrics) {
  return serve(METRICS_ROUTES, {
    metrics: async (_, c) => {
      const { contentType, text } = await metrics.expose();
      return c.body(text, 200, { "content-type": contentType });
    },
  });
}
