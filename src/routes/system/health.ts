import { Hono } from "hono";
import { HealthAnswer } from "../../schema/words/wire.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";

const HEALTH = contract({
  method: "get",
  path: "/api/health",
  summary: "Whether the process answers, and whether it can do its work",
  access: "anonymous",
  answer: HealthAnswer,
});

/** Contracts of {@link healthRoutes}. */
export const HEALTH_CONTRACTS = [HEALTH];

/**
 * Health (interface specification, Health and metrics). It does not ask the database, and is 200 while that is away: an
 * orchestrator that restarts the server because of it makes the outage longer. `status` says so. A server that stops answers 503,
 * so that load balancers send it no more calls.
 */
export function healthRoutes(health: () => HealthAnswer) {
  return new Hono<RouteEnvironment>().get(HEALTH.path, (c) => {
    const answer = health();
    return c.json(answer, answer.status === "stopping" ? 503 : 200);
  });
}
