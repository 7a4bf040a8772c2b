import { Hono } from "hono";
import type { Metrics } from "../../platform/telemetry/metrics.ts";
import { ClaimAnswer, ClaimBody, ClaimedCommandAnswer, ClaimOneBody } from "../../schema/api/commands.ts";
import type { Orchestrator } from "../../services/orchestration/orchestrator.ts";
import type { Workers } from "../../services/workers/workers.ts";
import { listening } from "../http/client-signal.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { jsonBody, pathId } from "../http/validate.ts";
import { commandAnswer } from "./claimed-command.ts";

const CLAIM = contract({
  method: "post",
  path: "/api/commands/claim",
  summary: "Claims commands for a worker, waiting for the first if asked to; none when there was none in time",
  access: "worker",
  body: ClaimBody,
  answer: ClaimAnswer,
  refusals: [413, 422],
});

const CLAIM_ONE = contract({
  method: "post",
  path: "/api/commands/:command_id/claim",
  summary:
    "Claims one command; 409 `active_claim` (with Retry-After) while another worker holds it, or `already_terminal`",
  access: "worker",
  body: ClaimOneBody,
  answer: ClaimedCommandAnswer,
  refusals: [404, 409, 413, 422],
});

/** Contracts of {@link commandRoutes}. */
export const COMMAND_CONTRACTS = [CLAIM, CLAIM_ONE];

/** Claims (Worker protocol). A claim whose client leaves ends its wait, and holds nothing. */
export function commandRoutes(
  orchestrator: Pick<Orchestrator, "claim">,
  workers: Pick<Workers, "claimOne">,
  metrics: Pick<Metrics, "claimAnswered">,
  stopping: AbortSignal,
) {
  return new Hono<RouteEnvironment>()
    .post(CLAIM.path, jsonBody(CLAIM.body), async (c) => {
      const { worker, limit, kinds, labels = {}, wait_ms: waitMs = 0 } = c.req.valid("json");
      const listener = listening(c, stopping);
      const began = performance.now();
      try {
        const input = { worker, limit, kinds, labels, waitMs };
        const claimed = await orchestrator.claim(input, listener.signal, listener.left);
        return c.json({ commands: claimed.map(commandAnswer) } satisfies ClaimAnswer);
      } finally {
        metrics.claimAnswered((performance.now() - began) / 1_000);
        listener.done();
      }
    })
    .post(CLAIM_ONE.path, jsonBody(CLAIM_ONE.body), async (c) => {
      const commandId = pathId(c.req.param("command_id"), "command");
      return c.json(commandAnswer(await workers.claimOne(commandId, c.req.valid("json").worker)));
    });
}
