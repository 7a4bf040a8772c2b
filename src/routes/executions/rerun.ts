import { formatTraceparent, parseTraceparent } from "../../platform/telemetry/trace-context.ts";
import { RerunBody } from "../../schema/api/steering.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { defined } from "../../schema/words/defined.ts";
import { audited } from "../../services/access/audit.ts";
import type { Executions } from "../../services/executions/executions.ts";
import { callerOf } from "../http/audit-caller.ts";
import { bodySha256, idempotencyKey, keyOwner } from "../http/idempotency.ts";
import { BODY_BYTES_MAX, parseJson, readBody } from "../http/read-body.ts";
import type { RouteHandler } from "../http/serve.ts";
import { check, pathId } from "../http/validate.ts";
import { askedRerun, rerunAnswer } from "./rerun-request.ts";

/** Begins a rerun, or answers its plan. Its row of the audit log is written with the new execution. */
export function rerunRoute(executions: Pick<Executions, "rerun">): RouteHandler<typeof EXECUTION_ROUTES.rerun> {
  return {
    readsBody: async ({ params, json }, c) => {
      const bytes = await readBody(c.req.raw, BODY_BYTES_MAX);
      const body = check(RerunBody, bytes.length === 0 ? {} : parseJson(bytes), "The body");
      const id = pathId(params.execution_id, "execution");
      const key = idempotencyKey(c);
      // The body does not say which execution it is about.
      const sha = bodySha256(Buffer.concat([Buffer.from(`rerun ${id}\n`), bytes]));
      const caller = callerOf(c, EXECUTION_ROUTES.rerun);
      const { decisions, user } = c.var;
      const trace = parseTraceparent(c.req.header("traceparent"));
      const { action } = EXECUTION_ROUTES.rerun.audit;
      const rerun = await executions.rerun(id, {
        ...askedRerun(body),
        by: caller.actor ?? caller.actorKind,
        bytes: bytes.length,
        permit: (path) => c.var.permit("execute", path),
        permitView: (path) => c.var.permit("view", path),
        may: (path) => c.var.may("execute", path),
        log: {
          rows: (executionId) => [
            ...decisions.rows(executionId),
            audited(caller, action, `execution/${id}`, {
              detail: { execution_id: executionId, ...defined({ reason: body.reason }) },
            }),
          ],
          ended: decisions.ended,
        },
        ...(user !== undefined && { startedBy: user.userId }),
        ...(trace !== undefined && { traceparent: formatTraceparent(trace) }),
        ...(key !== null && { idempotency: { caller: keyOwner(c), key, bodySha256: sha } }),
      });
      const { executionId } = rerun;
      await decisions.settle(defined({ executionId }));
      return json(rerunAnswer(id, rerun), executionId === undefined ? 200 : 202);
    },
  };
}
