import type { Context } from "hono";
import type { ApprovalAnswer } from "../../schema/api/waits/approvals.ts";
import { APPROVAL_ROUTES } from "../../schema/routes/steering.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { pageSize } from "../../schema/words/wire.ts";
import { type Audit, audited, inAuditLog } from "../../services/access/audit.ts";
import type { Approvals, Person, ShownApproval } from "../../services/approvals/approvals.ts";
import { callerOf } from "../http/audit-caller.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { serve } from "../http/serve.ts";
import { pathId } from "../http/validate.ts";

type Message = Awaited<ReturnType<Approvals["messages"]>>[number];

/** Approvals (control, section 2). Who looked at one and who decided stands in the audit log, refusals too. */
export function approvalRoutes(approvals: Approvals, audit: Pick<Audit, "record" | "noted" | "refused">) {
  return serve(APPROVAL_ROUTES, {
    list: async ({ query: { limit, cursor, status, mine, execution_id }, maskedJson }, c) => {
      // Approvers need no right on the playbook: the use case looks at all that the caller has.
      c.var.visible("execute");
      const isMine = mine !== undefined && mine !== "false";
      const filter = { ...defined({ status, executionId: execution_id }), mine: isMine };
      const page = { limit: pageSize(limit), ...defined({ cursor }) };
      const { items, nextCursor } = await approvals.list(filter, page, personOf(c));
      return maskedJson({ approvals: items.map(answerOf), next_cursor: nextCursor });
    },
    detail: async ({ params, maskedJson }, c) => {
      const id = pathId(params.approval_id, "approval");
      const route = APPROVAL_ROUTES.detail;
      const shown = await approvals.find(id, personOf(c)).catch(refusing(c, audit, route, id));
      audit.noted(audited({ ...callerOf(c, route), ...ofExecution(shown) }, route.audit.action, `approval/${id}`));
      const messages = shown.mayView ? await approvals.messages(id) : [];
      return maskedJson({ ...answerOf(shown), ...(messages.length > 0 && { messages: messages.map(messageOf) }) });
    },
    decide: async ({ params, body, json }, c) => {
      const id = pathId(params.approval_id, "approval");
      const route = APPROVAL_ROUTES.decide;
      const { decision, data, comment } = body;
      const saying = { decision, ...defined({ data, comment }) };
      const { row, status } = await approvals.decide(id, saying, personOf(c)).catch(refusing(c, audit, route, id));
      const { executionId } = row;
      const detail = { decision, status };
      await audit.record(
        audited({ ...callerOf(c, route), executionId }, route.audit.action, `approval/${id}`, { detail }),
      );
      return json({ approval_id: id, execution_id: executionId, status: status as "open" | "approved" | "rejected" });
    },
  });
}

/** The caller as a person. */
function personOf(c: Context<RouteEnvironment>): Person {
  const { actor, actorKind } = callerOf(c, { access: "operator" });
  return { by: actor ?? actorKind, user: c.get("user") };
}

function ofExecution({ row: { executionId } }: ShownApproval) {
  return { executionId };
}

/** Who is refused is in the audit log. */
function refusing(
  c: Context<RouteEnvironment>,
  audit: Pick<Audit, "refused">,
  route: { access: "operator"; audit: { action: string } },
  id: string,
): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof FlowError) || error.code !== "FORBIDDEN") throw error;
    const caller = { ...callerOf(c, route), rule: "not among its approvers" };
    audit.refused(audited(caller, route.audit.action, `approval/${id}`, { result: "deny" }));
    throw inAuditLog(error);
  };
}

function messageOf({ number, to, playbook, createdAt, sentAt, executionId, error }: Message) {
  return {
    ...{ number, playbook, created_at: createdAt.toISOString() },
    ...defined({
      to: to ?? undefined,
      sent_at: sentAt?.toISOString(),
      execution_id: executionId ?? undefined,
      error: error ?? undefined,
    }),
  };
}

function answerOf({ row, mayDecide, mayView }: ShownApproval): ApprovalAnswer {
  const named = (kind: string) =>
    row.approvers.filter((name) => name.startsWith(kind)).map((name) => name.slice(kind.length));
  const [due, closedAt] = [row.dueAt?.toISOString(), row.closedAt?.toISOString()];
  return {
    ...{ approval_id: row.approvalId, execution_id: row.executionId, step: row.step },
    ...defined({ iteration: row.iteration ?? undefined }),
    ...{ path: row.path, title: row.title },
    ...defined({ description: row.description ?? undefined, form: row.form ?? undefined }),
    ...{ status: row.status, opened_at: row.openedAt.toISOString() },
    ...defined({ due, closed_at: closedAt }),
    ...{ required: row.required, rejections: row.rejections },
    approvers: {
      ...{ roles: named("role:"), users: named("user:") },
      ...{ not_starter: row.notStarter, who_may_execute: row.byPath },
    },
    decisions: row.decisions.map(({ decision, by, at, data, comment }) => ({
      ...{ decision, by, at },
      ...defined({ data: mayView ? data : undefined, comment }),
    })),
    may_decide: mayDecide,
  };
}
