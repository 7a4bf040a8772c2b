import { Hono } from "hono";
import { SealingKeyAnswer } from "../../schema/api/executions.ts";
import type { Sealing } from "../../services/credentials/sealing.ts";
import { callerOf } from "../http/audit-caller.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { pathId } from "../http/validate.ts";

const KEY = contract({
  method: "get",
  path: "/api/executions/:execution_id/sealing-key",
  summary: "The keys with which workers seal secrets that pass between the steps of an execution's tree; audited",
  access: "worker",
  answer: SealingKeyAnswer,
  audit: { action: "sealing.key", resource: "execution/:execution_id" },
  refusals: [404],
});

/** Contracts of {@link sealingRoutes}. */
export const SEALING_CONTRACTS = [KEY];

/** Keys of sealed values. */
export function sealingRoutes(sealing: Pick<Sealing, "keysOf">) {
  return new Hono<RouteEnvironment>().get(KEY.path, async (c) => {
    const id = pathId(c.req.param("execution_id"), "execution");
    const { rootExecutionId, keys } = await sealing.keysOf(id, callerOf(c, KEY));
    // No cache on the way may keep it.
    c.header("cache-control", "no-store");
    return c.json({
      root_execution_id: rootExecutionId,
      keys: keys.map(({ id: name, key }) => ({ id: name, key: Buffer.from(key).toString("base64") })),
    } satisfies SealingKeyAnswer);
  });
}
