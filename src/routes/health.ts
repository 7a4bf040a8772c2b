import { Hono } from "hono";
import { HealthAnswer } from "../schema/wire.ts";
import { contract } from "./contract.ts";
import type { RouteEnvironment } from "./environment.ts";

const HEALTH = contract({
  method: "get",
  path: "/api/health",
  summary: "Whether the process answers",
  access: "anonymous",
  answer: HealthAnswer,
});

/** Contracts of {@link healthRoutes}. */
export const HEALTH_CONTRACTS = [HEALTH];

/**
 * Health (interface specification, Health and metrics). It does not ask the database: an orchestrator that restarts the
 * server because the database is away makes the outage longer.
 */
export function healthRoutes() {
  return new Hono<RouteEnvironment>().get(HEALTH.path, (c) => c.json({ status: "ok" }));
}
