import { createHash } from "node:crypto";
import type { Context } from "hono";
import { decideUserAccess } from "../../schema/rules/access-rules.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { defined } from "../../schema/words/defined.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { AgentCaller, BegunCall } from "../../services/mcp/tool-calls.ts";
import type { Recheck } from "../http/recheck-access.ts";
import type { RouteEnvironment } from "../http/request-context.ts";

/**
 * The caller. A call may last for hours: the user's permissions are read again each time, as the last check of their session
 * found them (`c.var.recheck`).
 */
export function agentCaller(c: Context<RouteEnvironment>): AgentCaller {
  const userId = c.get("user")?.userId;
  return {
    id: userId === undefined ? c.get("role") : `user:${userId}`,
    ...defined({ userId }),
    permit: (action, path) => c.var.permit(action, path),
    log: c.var.decisions,
    decided: async (executionId) => await c.var.decisions.settle({ executionId }),
    failed: async (error) => await c.var.decisions.failed(error),
    may(action, path) {
      const user = c.get("user");
      return user === undefined || decideUserAccess(user, action, path).allowed;
    },
    callable: () => c.var.visible("execute"),
  };
}

/** Who calls, as the log of an execution and the audit log name them. */
export interface SteeringCaller {
  caller: AgentCaller;
  by: string;
  /** Writes a row of the audit log. */
  record(action: string, executionId: string, detail: JsonObject): Promise<void>;
  /** The same of a signal to everyone. */
  recordSignal(name: string, detail: JsonObject): Promise<void>;
  /** The row, for what is written with a start. */
  row(action: string, executionId: string, detail: JsonObject): AuditEntry;
  /** The same for the same call that is sent again; absent without a session. */
  key?: string;
}

/**
 * The call as its caller may see it now, checked again because time has passed. Throws `FlowError` UNAUTHENTICATED if the
 * session has ended.
 */
export async function shownNow(recheck: Recheck | undefined, caller: AgentCaller, call: BegunCall): Promise<BegunCall> {
  await recheck?.again();
  return { ...call, isShown: call.isShown && caller.may("view", call.path) };
}

/** The key of a call: the session's id and that of the request within it. Ids of requests are of any length. */
export function callKey(session: string, requestId: string | number): string {
  return createHash("sha256")
    .update(JSON.stringify([session, requestId]))
    .digest("hex");
}
