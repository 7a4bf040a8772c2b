import { BACKFILL_ROUTES } from "../../schema/routes/triggers.ts";
import { BackfillBody } from "../../schema/triggers/backfill.ts";
import { defined } from "../../schema/words/defined.ts";
import { audited } from "../../services/access/audit.ts";
import type { BulkOperations } from "../../services/bulk/bulk.ts";
import type { Triggers } from "../../services/triggers/triggers.ts";
import { asker } from "../executions/bulk.ts";
import { callerOf } from "../http/audit-caller.ts";
import { bodySha256, idempotencyKey, keyOwner } from "../http/idempotency.ts";
import { BODY_BYTES_MAX, parseJson, readBody } from "../http/read-body.ts";
import { serve } from "../http/serve.ts";
import { check, pathId } from "../http/validate.ts";

type Preview = Awaited<ReturnType<BulkOperations["previewBackfill"]>>;

/** Making up for times of a schedule (control, rule 45). */
export function backfillRoutes(
  bulk: Pick<BulkOperations, "backfill" | "previewBackfill">,
  triggers: Pick<Triggers, "find">,
) {
  return serve(BACKFILL_ROUTES, {
    backfill: {
      readsBody: async ({ params, json }, c) => {
        const trigger = await triggers.find(pathId(params.trigger_id, "trigger"));
        await c.var.permit("execute", trigger.path);
        const bytes = await readBody(c.req.raw, BODY_BYTES_MAX);
        const body = check(BackfillBody, parseJson(bytes), "The body");
        const range = rangeOf(body);
        if (body.dry_run === true) return json(answerOf(await bulk.previewBackfill(trigger, range)), 200);
        const key = idempotencyKey(c);
        const idempotency = key === null ? undefined : { caller: keyOwner(c), key, bodySha256: bodySha256(bytes) };
        const route = BACKFILL_ROUTES.backfill;
        const log = (bulkId: string, matched: number) => {
          const { path, name, triggerId } = trigger;
          const detail = { path, name, bulk_id: bulkId, matched, from: body.from, to: body.to };
          return audited(callerOf(c, route), route.audit.action, `trigger/${triggerId}`, { detail });
        };
        const started = await bulk.backfill(trigger, { ...range, log, ...defined({ idempotency }) }, asker(c));
        const { bulkId, matched, duplicate } = started;
        return json({ bulk_id: bulkId, matched, ...(duplicate && { duplicate: true as const }) });
      },
    },
  });
}

function rangeOf({ from, to, max_active: maxActive = 4, order = "oldest", only_missing: isMissing }: BackfillBody) {
  return { from, to, maxActive, order, onlyMissing: isMissing === true };
}

function answerOf({ matched, missing, gaps, sample }: Preview) {
  const text = (ms: number) => new Date(ms).toISOString();
  return {
    ...{ matched, missing },
    gaps: gaps.map(({ from, to, count }) => ({ from: text(from), to: text(to), count })),
    sample: sample.map(({ dueAt, executionId }) => ({
      due_at: text(dueAt),
      status: executionId === undefined ? ("missing" as const) : ("started" as const),
      ...defined({ execution_id: executionId }),
    })),
  };
}
