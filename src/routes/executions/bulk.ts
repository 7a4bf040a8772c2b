import type { Context } from "hono";
import { type BulkAnswer, BulkBody } from "../../schema/api/steering.ts";
import { STEERING_ROUTES } from "../../schema/routes/steering.ts";
import { defined } from "../../schema/words/defined.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { type Audit, audited } from "../../services/access/audit.ts";
import type { BulkCaller, BulkDetail, BulkOperations, BulkPreview } from "../../services/bulk/bulk.ts";
import { callerOf } from "../http/audit-caller.ts";
import { bodySha256, idempotencyKey, keyOwner } from "../http/idempotency.ts";
import { BODY_BYTES_MAX, parseJson, readBody } from "../http/read-body.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import type { RouteHandler } from "../http/serve.ts";
import { check, pathId } from "../http/validate.ts";

/** Operations on many executions (control, section 1, rules 15 and 16). */
export function bulkHandlers(bulk: BulkOperations, audit: Pick<Audit, "record">) {
  const start: RouteHandler<typeof STEERING_ROUTES.bulk> = {
    readsBody: async ({ json, maskedJson }, c) => {
      const bytes = await readBody(c.req.raw, BODY_BYTES_MAX);
      const { action, filter, options = {}, dry_run: isDry = false } = check(BulkBody, parseJson(bytes), "The body");
      const visible = c.var.visible("execute");
      const request = { action, filter, options: options as JsonObject };
      if (isDry) {
        const { matched, sample } = await bulk.preview(request, { visible });
        return maskedJson({ matched, sample: sample.map(sampleOf) });
      }
      const key = idempotencyKey(c);
      const idempotency = key === null ? undefined : { caller: keyOwner(c), key, bodySha256: bodySha256(bytes) };
      const route = STEERING_ROUTES.bulk;
      const log = (bulkId: string, matched: number, told: JsonObject) => {
        const detail = { bulk_id: bulkId, action, matched, filter: filter as JsonObject, options: told };
        return audited(callerOf(c, route), route.audit.action, `bulk/${bulkId}`, { detail });
      };
      const asked = { ...request, log, ...defined({ idempotency }) };
      const { bulkId, matched, duplicate } = await bulk.start(asked, asker(c), { visible });
      return json({ bulk_id: bulkId, matched, ...(duplicate && { duplicate: true as const }) });
    },
  };
  const status: RouteHandler<typeof STEERING_ROUTES.bulkStatus> = async ({ maskedJson }, c) =>
    maskedJson(answerOf(await bulk.find(idOf(c), asker(c))));
  const change =
    (what: "cancel" | "pause" | "resume", route: { access: "operator"; audit: { action: string } }) =>
    async ({ maskedJson }: { maskedJson(answer: BulkAnswer): Response }, c: Context<RouteEnvironment>) => {
      const id = idOf(c);
      const detail = await bulk.steer(id, what, asker(c));
      await audit.record(audited(callerOf(c, route), route.audit.action, `bulk/${id}`));
      return maskedJson(answerOf(detail));
    };
  return {
    bulk: start,
    bulkStatus: status,
    bulkCancel: change("cancel", STEERING_ROUTES.bulkCancel),
    bulkPause: change("pause", STEERING_ROUTES.bulkPause),
    bulkResume: change("resume", STEERING_ROUTES.bulkResume),
  };
}

function idOf(c: Context): string {
  return pathId(c.req.param("bulk_id") ?? "", "bulk operation");
}

function itemOf({ executionId, dueAt }: { executionId: string; dueAt: Date | null }) {
  return dueAt === null ? { execution_id: executionId } : { due_at: dueAt.toISOString() };
}

/** Who asks for an operation. */
export function asker(c: Context<RouteEnvironment>): BulkCaller {
  const caller = callerOf(c, { access: "operator" });
  const { actor, actorKind, userId } = caller;
  return { name: actor ?? actorKind, audit: caller, ...defined({ userId }) };
}

function sampleOf({ executionId, path, version, status, startedAt, plan }: BulkPreview["sample"][number]) {
  const told = plan === undefined || "refused" in plan ? plan : { reused: plan.reused, will_run: plan.willRun };
  return {
    ...{ execution_id: executionId, path, version, status, started_at: startedAt.toISOString() },
    ...defined({ plan: told }),
  };
}

function answerOf({ row, failures, started }: BulkDetail): BulkAnswer {
  const { matched, done, failed, skipped } = row;
  return {
    bulk_id: row.bulkId,
    action: row.action,
    status: row.status,
    filter: row.filter,
    options: row.options,
    by: row.askedBy,
    created_at: row.createdAt.toISOString(),
    ended_at: row.endedAt?.toISOString() ?? null,
    counts: { matched, done, failed, skipped },
    failures: failures.map(({ code, message, ...item }) => ({ ...itemOf(item), code, message })),
    ...((row.action === "rerun" || row.action === "backfill") && {
      started: started.map(({ newExecutionId, ...item }) => ({ ...itemOf(item), new_execution_id: newExecutionId })),
    }),
  };
}
