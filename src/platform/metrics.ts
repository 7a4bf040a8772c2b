import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry, Summary } from "prom-client";

/** The numbers of one process, in Prometheus' text format. */
export interface Metrics {
  /** One HTTP request: the route as it is declared, not as it was called, so that the series stay few. */
  requestDone(request: { method: string; route: string; status: number }, seconds: number): void;
  /** A version was added to the catalog, or (`unchanged`) was there already. */
  catalogRegistered(kind: string, outcome: "created" | "unchanged"): void;
  /** `GET /metrics`. */
  expose(): Promise<{ contentType: string; text: string }>;
}

/** What the embedded default answers within, up to what a stuck database takes. */
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** A registry of its own, so that two servers in one process (tests) do not count for each other. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  registerBatchSeries(registers);
  const requests = new Histogram({
    name: "flow_http_request_duration_seconds",
    help: "Time from a request's arrival to its answer",
    labelNames: ["method", "route", "status"] as const,
    buckets: REQUEST_SECONDS,
    registers,
  });
  const registrations = new Counter({
    name: "flow_catalog_registrations_total",
    help: "Accepted registrations by kind of resource, and whether they made a version",
    labelNames: ["kind", "outcome"] as const,
    registers,
  });
  for (const kind of ["playbook", "agent", "mcp"]) {
    for (const outcome of ["created", "unchanged"]) registrations.inc({ kind, outcome }, 0);
  }
  return {
    requestDone: ({ method, route, status }, seconds) =>
      requests.observe({ method, route, status: String(status) }, seconds),
    catalogRegistered: (kind, outcome) => registrations.inc({ kind, outcome }),
    expose: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}

/**
 * The series of event batches, under the names of the interface specification. They stand at zero from the start, so that
 * a dashboard or an alert can tell "nothing happened" from "nothing is measured".
 */
function registerBatchSeries(registers: Registry[]): void {
  // Without percentiles a summary is exactly the two series `_sum` and `_count` that the specification names.
  const summary = (name: string, help: string) => new Summary({ name, help, percentiles: [], registers });
  summary("noetl_batch_enqueue_latency_seconds", "Time until an accepted batch was in the queue");
  summary("noetl_batch_first_worker_claim_latency_seconds", "Time from a batch to the first claim of its commands");
  new Counter({ name: "noetl_batch_ack_timeout_total", help: "Batches whose enqueueing took too long", registers });
  new Gauge({ name: "noetl_batch_queue_depth", help: "Batches accepted and not yet processed", registers });
}
