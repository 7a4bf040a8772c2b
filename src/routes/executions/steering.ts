import { SignalName } from "../../schema/api/steering.ts";
import { STEERING_ROUTES } from "../../schema/routes/steering.ts";
import { defined } from "../../schema/words/defined.ts";
import { type Audit, audited } from "../../services/access/audit.ts";
import type { BulkOperations } from "../../services/bulk/bulk.ts";
import type { Executions } from "../../services/executions/executions.ts";
import type { KeyedSignals } from "../../services/signals/keyed-signals.ts";
import { callerOf } from "../http/audit-caller.ts";
import { serve } from "../http/serve.ts";
import { check, pathId } from "../http/validate.ts";
import { bulkHandlers } from "./bulk.ts";

/** Steering executions (control, section 1). Who did it stands in the log of the execution and in the audit log. */
export function steeringRoutes(
  executions: Pick<Executions, "override" | "signal">,
  signals: Pick<KeyedSignals, "send">,
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
    signal: async ({ body: { data = null, key, id: signalId }, json }, c) => {
      const id = pathId(c.req.param("execution_id") ?? "", "execution");
      const name = check(SignalName, c.req.param("name"), "The name of the signal");
      const route = STEERING_ROUTES.signal;
      const caller = callerOf(c, route);
      const by = caller.actor ?? caller.actorKind;
      const signal = { name, data, by, ...defined({ key, id: signalId }) };
      const outcome = await executions.signal(id, signal);
      const detail = { name, ...defined({ key, id: signalId }), reached: outcome.reached };
      await audit.record(audited(caller, route.audit.action, `execution/${id}`, { detail }));
      return json({ ...outcome });
    },
    signalAll: async ({ body: { data = null, key, id: signalId, retain }, json }, c) => {
      const name = check(SignalName, c.req.param("name"), "The name of the signal");
      const route = STEERING_ROUTES.signalAll;
      const caller = callerOf(c, route);
      // Only what the caller may execute is reached: so the question is asked here, and decided for each execution.
      c.var.visible("execute");
      const by = caller.actor ?? caller.actorKind;
      const signal = { name, data, by, ...defined({ key, id: signalId, userId: caller.userId }) };
      const outcome = await signals.send(signal, retain);
      const detail = { ...defined({ key, id: signalId }), reached: outcome.reached };
      await audit.record(audited(caller, route.audit.action, `signal/${name}`, { detail }));
      return json({ ...outcome });
    },
    ...bulkHandlers(bulk, audit),
  });
}
