import type { AuditItem, AuditProblem } from "../../schema/api/audit.ts";
import { AUDIT_ROUTES } from "../../schema/routes/auth.ts";
import { defined } from "../../schema/words/defined.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { Audit } from "../../services/access/audit.ts";
import type { ChainProblem } from "../../services/access/audit-chain.ts";
import { serve } from "../http/serve.ts";

/** The audit log. */
export function auditRoutes(audit: Pick<Audit, "list" | "verify">) {
  return serve(AUDIT_ROUTES, {
    list: async ({ query: { limit, cursor, user_id, execution_id, since, until, ...rest }, json }) => {
      const filter = {
        ...rest,
        ...defined({ userId: user_id, executionId: execution_id }),
        ...(since !== undefined && { since: new Date(since) }),
        ...(until !== undefined && { until: new Date(until) }),
      };
      const page = { limit: pageSize(limit), ...defined({ cursor }) };
      const { items, nextCursor } = await audit.list(filter, page);
      return json({ entries: items.map(itemOf), next_cursor: nextCursor });
    },
    verify: async ({ body, json }) => {
      const { problems, next = null, ...told } = await audit.verify(body);
      return json({ ...told, problems: problems.map(problemItem), next });
    },
  });
}

function itemOf(row: Awaited<ReturnType<Audit["list"]>>["items"][number]): AuditItem {
  return {
    audit_id: row.auditId,
    at: row.at.toISOString(),
    actor_kind: row.actorKind,
    actor: row.actor,
    user_id: row.userId,
    issuer: row.issuer,
    subject: row.subject,
    action: row.action,
    resource: row.resource,
    rule: row.rule,
    result: row.result,
    address: row.address,
    request_id: row.requestId,
    execution_id: row.executionId,
    command_id: row.commandId,
    attempt: row.attempt,
    detail: row.detail,
  };
}

function problemItem({ auditId, ...rest }: ChainProblem): AuditProblem {
  return { ...rest, audit_id: auditId };
}
