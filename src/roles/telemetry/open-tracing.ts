import type { Config } from "../../platform/config/config.ts";
import { headersOf } from "../../platform/config/tracing.ts";
import type { Lifecycle } from "../../platform/system/lifecycle.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { openTracing, type Tracing } from "../../platform/telemetry/tracing.ts";

/** The way to the collector of spans, closed with the lifecycle; undefined without `OTEL_EXPORTER_OTLP_ENDPOINT`. */
export function openProcessTracing(
  config: Pick<Config, "otlpEndpoint" | "otlpHeaders" | "serviceName">,
  about: { role: "server" | "worker"; version: string; instance: string },
  logger: Logger,
  lifecycle: Lifecycle,
): Tracing | undefined {
  const { otlpEndpoint: endpoint, otlpHeaders, serviceName } = config;
  if (endpoint === undefined) return undefined;
  const tracing = openTracing({
    endpoint,
    headers: headersOf(otlpHeaders),
    resource: {
      "service.name": serviceName,
      "service.version": about.version,
      "service.instance.id": about.instance,
      "flow.role": about.role,
    },
    logger,
  });
  lifecycle.add("the spans", () => tracing.close());
  return tracing;
}
