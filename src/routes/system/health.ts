import { HEALTH_ROUTES } from "../../schema/routes/system.ts";
import type { HealthAnswer } from "../../schema/words/wire.ts";
import { serve } from "../http/serve.ts";

/**
 * Health (interface specification, Health and metrics). It does not ask the database, and is 200 while that is away: an
 * orchestrator that restarts the server because of it makes the outage longer. `status` says so. A server that stops answers 503,
 * so that load balancers send it no more calls.
 */
export function healthRoutes(health: () => HealthAnswer) {
  return serve(HEALTH_ROUTES, {
    health: ({ json }) => {
      const answer = health();
      return json(answer, answer.status === "stopping" ? 503 : 200);
    },
  });
}
