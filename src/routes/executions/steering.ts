import { STEERING_ROUTES } from "../../schema/routes/steering.ts";
import { defined } from "../../schema/words/defined.ts";
import { type Audit, audited } from "../../services/access/audit.ts";
import type { BulkOperations } from "../../services/bulk/bulk.ts";
import type { Executions } from "../../services/executions/executions.ts";
import { callerOf } from "../http/audit-caller.ts";
import { serve } from "../http/serve.ts";
import { pathId } from "../http/validate.ts";
import { bulkHandlers } from "./bulk.ts";

/** Steering executions (control, section 1). Who did it stands in the log of the execution and in the audit log. */
export function steeringRoutes(
  executions: Pick<Executions, "override">,
  bulk: BulkOperations,
  audit: Pick<Audit, "record">,
) {
  return serve(STEERING_ROUTES, {
    override: async ({ body, json }, c) => {
      const id = pathId(c.req.param("execution_id") ?? "", "execution");
      const step = c.req.param("step") ?? "";
      const route = STEERING_ROUTES.override;
      const caller = callerOf(c, route);
      const status = await executions.override(id, step, { ...body, by: caller.actor ?? caller.actorKind });
      const { action, reason, iteration } = body;
      const detail = { step, action, reason, ...defined({ iteration }) };
      await audit.record(audited(caller, route.audit.action, `execution/${id}`, { detail }));
      return json({ execution_id: id, step, status });
    },
    ...bulkHandlers(bulk, audit),
  });
}
