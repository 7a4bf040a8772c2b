import { Histogram, type Registry } from "prom-client";

/** Numbers of HTTP requests. */
export interface RequestMetrics {
  /** One HTTP request: the route as it is declared, not as it was called, so that the series stay few. */
  requestDone(request: { method: string; route: string; status: number }, seconds: number): void;
}

/**
 * Options of the metrics of a process. The event loop's delay is taken from a timer that runs all the time: each 10 ms, which is the
 * default, it wakes an idle server 100 times a second.
 */
export const PROCESS_METRICS = { eventLoopMonitoringPrecision: 50 };

/** Buckets in seconds: from what the embedded default answers within to what a stuck database, or the longest login, takes. */
export const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** The series of requests, under a name for each kind of listener. */
export function requestSeries(registers: Registry[], name: string, help: string): RequestMetrics {
  const labelNames = ["method", "route", "status"] as const;
  const requests = new Histogram({ name, help, labelNames, buckets: REQUEST_SECONDS, registers });
  return {
    requestDone: ({ method, route, status }, seconds) =>
      requests.observe({ method, route, status: String(status) }, seconds),
  };
}
