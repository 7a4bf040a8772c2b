import type { AuditItem } from "../../schema/api/audit.ts";
import { AUDIT_ROUTES } from "../../schema/routes/auth.ts";
import { defined } from "../../schema/words/defined.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { Audit } from "../../services/access/audit.ts";
import { serve } from "../http/serve.ts";

/** The audit log. */
export function auditRoutes(audit: Pick<Audit, "list">) {
  return serve(AUDIT_ROUTES, {
    list: async ({ query: { limit, cursor, user_id, since, until, ...rest }, json }) => {
      const filter = {
        ...rest,
        ...defined({ userId: user_id }),
        ...(since !== undefined && { since: new Date(since) }),
        ...(until !== undefined && { until: new Date(until) }),
      };
      const page = { limit: pageSize(limit), ...defined({ cursor }) };
      const { items, nextCursor } = await audit.list(filter, page);
      return json({ entries: items.map(itemOf), next_cursor: nextCursor });
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
    action: row.action,
    resource: row.resource,
    rule: row.rule,
    result: row.result,
    address: row.address,
    request_id: row.requestId,
    detail: row.detail,
  };
}
