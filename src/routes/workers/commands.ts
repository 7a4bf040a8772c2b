import type { ClaimSecrets } from "../../platform/crypto/claim-secrets.ts";
import type { Metrics } from "../../platform/telemetry/metrics.ts";
import { COMMAND_ROUTES } from "../../schema/routes/workers.ts";
import { poolWork } from "../../schema/rules/pool-label.ts";
import type { Orchestrator } from "../../services/orchestration/orchestrator.ts";
import type { Pools } from "../../services/workers/pools.ts";
import type { Workers } from "../../services/workers/workers.ts";
import { provenInstance } from "../http/authenticate.ts";
import { listening } from "../http/client-signal.ts";
import { serve } from "../http/serve.ts";
import { pathId } from "../http/validate.ts";
import { commandAnswer } from "./claimed-command.ts";
import { abilityOf } from "./event-batch.ts";

/** Claims (Worker protocol). A claim whose client leaves ends its wait, and holds nothing. */
export function commandRoutes(
  orchestrator: Pick<Orchestrator, "claim">,
  workers: Pick<Workers, "claimOne">,
  secrets: ClaimSecrets,
  pools: Pick<Pools, "has" | "hasOwn">,
  metrics: Pick<Metrics, "claimAnswered">,
  stopping: AbortSignal,
) {
  return serve(COMMAND_ROUTES, {
    claim: async ({ body: { worker, limit, kinds, labels = {}, wait_ms: waitMs = 0 }, json }, c) => {
      provenInstance(c, secrets, worker);
      const listener = listening(c, stopping);
      const began = performance.now();
      try {
        const input = { worker, limit, kinds, waitMs, ...abilityOf(c, labels, pools) };
        const claimed = await orchestrator.claim(input, listener.signal, listener.left);
        return json({ commands: claimed.map((one) => commandAnswer(one, secrets)) });
      } finally {
        metrics.claimAnswered((performance.now() - began) / 1_000);
        listener.done();
      }
    },
    claimOne: async ({ body, params, json }, c) => {
      provenInstance(c, secrets, body.worker);
      const commandId = pathId(params.command_id, "command");
      return json(
        commandAnswer(await workers.claimOne(commandId, body.worker, poolWork(c.get("pool"), pools)), secrets),
      );
    },
  });
}
