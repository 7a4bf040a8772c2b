import { Counter, collectDefaultMetrics, Registry } from "prom-client";
import { PROCESS_METRICS, type RequestMetrics, requestSeries } from "./request-metrics.ts";

/** The numbers of a gateway, in Prometheus' text format. */
export interface GatewayMetrics extends RequestMetrics {
  /** A login ended: `ok`, or the code of its refusal. */
  loginEnded(outcome: string): void;
  /** Where the answer about a session came from. */
  sessionChecked(by: "memory" | "broker" | "server"): void;
  /** `GET /metrics` of the internal listener. */
  expose(): Promise<{ contentType: string; text: string }>;
}

/** A separate registry, so that a server in the same process does not count for it. */
export function createGatewayMetrics(): GatewayMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ ...PROCESS_METRICS, register: registry });
  const help = "Time from a request's arrival at the gateway to its answer's head";
  const requests = requestSeries(registers, "flow_gateway_request_duration_seconds", help);
  const logins = new Counter({
    name: "flow_gateway_logins_total",
    help: "Logins by how they ended: ok, or the code of the refusal",
    labelNames: ["outcome"] as const,
    registers,
  });
  logins.inc({ outcome: "ok" }, 0);
  const checks = new Counter({
    name: "flow_gateway_session_checks_total",
    help: "Validations of sessions by who answered: this process' memory, the broker's bucket, the server",
    labelNames: ["by"] as const,
    registers,
  });
  for (const by of ["memory", "broker", "server"]) checks.inc({ by }, 0);
  return {
    ...requests,
    loginEnded: (outcome) => logins.inc({ outcome }),
    sessionChecked: (by) => checks.inc({ by }),
    expose: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}
