import { SEALING_ROUTES } from "../../schema/routes/credentials.ts";
import type { Sealing } from "../../services/credentials/sealing.ts";
import { callerOf } from "../http/audit-caller.ts";
import { serve } from "../http/serve.ts";
import { pathId } from "../http/validate.ts";

/** Keys of sealed values. */
export function sealingRoutes(sealing: Pick<Sealing, "keysOf">) {
  return serve(SEALING_ROUTES, {
    key: async ({ params, json }, c) => {
      const id = pathId(params.execution_id, "execution");
      const { rootExecutionId, keys } = await sealing.keysOf(id, callerOf(c, SEALING_ROUTES.key));
      // No cache on the way may keep it.
      c.header("cache-control", "no-store");
      return json({
        root_execution_id: rootExecutionId,
        keys: keys.map(({ id: name, key }) => ({ id: name, key: Buffer.from(key).toString("base64") })),
      });
    },
  });
}
