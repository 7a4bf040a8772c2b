import { Counter, collectDefaultMetrics, Histogram, Registry } from "prom-client";

/** The numbers of a gateway, in Prometheus' text format. */
export interface GatewayMetrics {
  /** One HTTP request: the route as it is declared, not as it was called, so that the series stay few. */
  requestDone(request: { method: string; route: string; status: number }, seconds: number): void;
  /** A login ended: `ok`, or the code of its refusal. */
  loginEnded(outcome: string): void;
  /** Who told whether a session is valid. */
  sessionChecked(by: "memory" | "broker" | "server"): void;
  /** `GET /metrics` of the internal listener. */
  expose(): Promise<{ contentType: string; text: string }>;
}

/** From what the cache answers within to the longest login. */
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** A registry of its own, so that a server in the same process does not count for it. */
export function createGatewayMetrics(): GatewayMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Histogram({
    name: "flow_gateway_request_duration_seconds",
    help: "Time from a request's arrival at the gateway to its answer's head",
    labelNames: ["method", "route", "status"] as const,
    buckets: REQUEST_SECONDS,
    registers,
  });
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
    requestDone: ({ method, route, status }, seconds) =>
      requests.observe({ method, route, status: String(status) }, seconds),
    loginEnded: (outcome) => logins.inc({ outcome }),
    sessionChecked: (by) => checks.inc({ by }),
    expose: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}
