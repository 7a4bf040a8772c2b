import { StatsAnswer, StatsQuery } from "../api/overview.ts";
import { HealthAnswer } from "../words/wire.ts";
import { contract } from "./contract.ts";

/** Health (interface specification, Health and metrics). */
export const HEALTH_ROUTES = {
  health: contract({
    method: "get",
    path: "/api/health",
    summary: "Whether the process answers, and whether it can do its work",
    access: "anonymous",
    answer: HealthAnswer,
  }),
} as const;

/** Metrics (interface specification, Health and metrics). */
export const METRICS_ROUTES = {
  metrics: contract({
    method: "get",
    path: "/metrics",
    summary: "Metrics in Prometheus' text format",
    access: "anonymous",
    contentType: "text/plain",
  }),
} as const;

/** The description of these routes, made at the first call and kept. */
export const OPENAPI_ROUTES = {
  openapi: contract({
    method: "get",
    path: "/api/openapi.json",
    summary: "This description",
    access: "worker",
    user: "session",
  }),
} as const;

/** Statistics of executions that have ended. */
export const STATS_ROUTES = {
  stats: contract({
    method: "get",
    path: "/api/stats",
    summary:
      "How many executions ended over time, how they ended, how long they took and waited, and which steps are slow",
    access: "operator",
    user: { action: "view", of: "list" },
    query: StatsQuery,
    answer: StatsAnswer,
    refusals: [422],
  }),
} as const;
