import { Hono } from "hono";
import { AuditAnswer, type AuditItem, AuditQuery } from "../../schema/api/audit.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { Audit } from "../../services/access/audit.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { queryOf } from "../http/validate.ts";

const LIST = contract({
  method: "get",
  path: "/api/auth/audit",
  summary:
    "The audit log, newest first: who did what, what let or did not let them. A page may be short and not the last",
  access: "operator",
  user: { permission: "view_audit" },
  query: AuditQuery,
  answer: AuditAnswer,
  refusals: [422],
});

/** Contracts of {@link auditRoutes}. */
export const AUDIT_CONTRACTS = [LIST];

/** The audit log. */
export function auditRoutes(audit: Pick<Audit, "list">) {
  return new Hono<RouteEnvironment>().get(LIST.path, queryOf(LIST.query), async (c) => {
    const { limit, cursor, user_id, since, until, ...filter } = c.req.valid("query");
    const asked = {
      ...filter,
      ...(user_id !== undefined && { userId: user_id }),
      ...(since !== undefined && { since: new Date(since) }),
      ...(until !== undefined && { until: new Date(until) }),
    };
    const page = { limit: pageSize(limit), ...(cursor !== undefined && { cursor }) };
    const { items, nextCursor } = await audit.list(asked, page);
    return c.json({ entries: items.map(itemOf), next_cursor: nextCursor } satisfies AuditAnswer);
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
