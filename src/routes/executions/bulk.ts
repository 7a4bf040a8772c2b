import type { Context } from "hono";
import type { BulkAnswer } from "../../schema/api/steering.ts";
import { STEERING_ROUTES } from "../../schema/routes/steering.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type Audit, audited } from "../../services/access/audit.ts";
import type { BulkCaller, BulkDetail, BulkOperations } from "../../services/bulk/bulk.ts";
import { callerOf } from "../http/audit-caller.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import type { RouteHandler } from "../http/serve.ts";
import { pathId } from "../http/validate.ts";

/** Operations on many executions (control, section 1, rules 15 and 16). */
export function bulkHandlers(bulk: BulkOperations, audit: Pick<Audit, "record">) {
  const start: RouteHandler<typeof STEERING_ROUTES.bulk> = async ({ body, json, maskedJson }, c) => {
    const visible = c.var.visible("execute");
    const { action, filter, options = {}, dry_run } = body;
    if (action === "rerun") {
      throw new FlowError(
        "INVALID_INPUT",
        "Executions cannot be repeated in bulk by this server. Repeat each by itself",
      );
    }
    if (dry_run === true) {
      const { matched, sample } = await bulk.preview(filter, { visible });
      const shown = sample.map(({ executionId, path, version, status, startedAt }) => ({
        ...{ execution_id: executionId, path, version, status, started_at: startedAt.toISOString() },
      }));
      return maskedJson({ matched, sample: shown });
    }
    const route = STEERING_ROUTES.bulk;
    const { bulkId, matched } = await bulk.start({ action, filter, options }, asker(c), { visible });
    const detail = { bulk_id: bulkId, action, matched, filter: filter as Record<string, never>, options };
    await audit.record(audited(callerOf(c, route), route.audit.action, `bulk/${bulkId}`, { detail }));
    return json({ bulk_id: bulkId, matched });
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

function asker(c: Context<RouteEnvironment>): BulkCaller {
  const { actor, actorKind, userId } = callerOf(c, { access: "operator" });
  return { name: actor ?? actorKind, ...(userId !== undefined && { userId: String(userId) }) };
}

function answerOf({ row, failures }: BulkDetail): BulkAnswer {
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
    failures: failures.map(({ executionId, code, message }) => ({ execution_id: executionId, code, message })),
  };
}
