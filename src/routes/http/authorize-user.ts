import type { Context } from "hono";
import type { RouteContract, SubjectName, UserNeeds } from "../../schema/routes/contract.ts";
import { type AccessAction, decideUserAccess, type Permission, pathRules } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Access, CallingUser } from "../../services/access/access.ts";
import { audited } from "../../services/access/audit.ts";
import { callerOf } from "./audit-caller.ts";
import type { DecisionLog } from "./decisions.ts";
import { parametersOf, type RouteEnvironment } from "./request-context.ts";
import { SUBJECTS, type SubjectOf } from "./subject.ts";
import { validQuery } from "./validate.ts";

/** What deciding over a user's call needs. */
export interface UserAccessDeps {
  access: Pick<Access, "pathOf">;
  audit: DecisionLog;
}

type UserContext = Context<RouteEnvironment>;

/**
 * Lets a user call a route, or throws `FlowError` FORBIDDEN, or NOT_FOUND for an id of nothing. Returns a check to
 * run after the handler: it throws if the handler has not made the permission check that its contract leaves to it, so that no call
 * is answered without a decision.
 */
export async function admitUser(
  c: UserContext,
  user: CallingUser,
  route: RouteContract | undefined,
  deps: UserAccessDeps,
): Promise<() => void> {
  let isChecked = false;
  c.set("permit", async (action, path) => {
    isChecked = true;
    permit(c, user, { action, path, described: path });
  });
  c.set("may", (action, path) => decideUserAccess(user, action, path).allowed);
  c.set("visible", (action) => {
    isChecked = true;
    return pathRules(user.playbooks, action);
  });
  const needs = route?.user;
  if (route === undefined || needs === undefined) {
    refuse(c, { action: "route.call", resource: c.req.path, rule: "no user may" });
    throw new FlowError("FORBIDDEN", `No user may ${c.req.method} ${c.req.path}, whatever their roles`);
  }
  await decide(c, user, route, needs, deps);
  const isLeft = typeof needs === "object" && "of" in needs && subjectOf(needs.of) === undefined;
  return () => {
    if (isLeft && !isChecked) throw new Error(`${route.path} has answered a user without asking what they may`);
  };
}

async function decide(
  c: UserContext,
  user: CallingUser,
  route: RouteContract,
  needs: UserNeeds,
  deps: UserAccessDeps,
): Promise<void> {
  if (needs === "session") return c.set("rule", "session");
  if ("permission" in needs) return permitted(c, user, route, [needs.permission].flat());
  const { action, of } = needs;
  const read = subjectOf(of);
  if (read === undefined) return;
  const parameters = parametersOf(c);
  const subject = read({
    parameter: (name) => parameters[name] ?? "",
    query: (schema) => validQuery(c, schema),
  });
  if ("path" in subject) {
    permit(c, user, { action, path: subject.path, described: subject.path });
    return await c.get("decisions").settle();
  }
  const described = "catalogId" in subject ? `catalog entry ${subject.catalogId}` : `execution ${subject.executionId}`;
  const path = await deps.access.pathOf(subject);
  if (path === undefined) {
    const isReference = "executionId" in subject && subject.ref !== undefined;
    throw new FlowError(isReference ? "REFERENCE_NOT_AVAILABLE" : "NOT_FOUND", `There is no ${described}`);
  }
  // The answer reveals that it exists, but not its path.
  permit(c, user, { action, path, described });
  // Nothing else is asked: what changes something is in the log before it is done.
  await c.get("decisions").settle("executionId" in subject ? { executionId: subject.executionId } : {});
}

/** Undefined where the handler says what a call is about. */
function subjectOf(of: SubjectName | "asked" | "list"): SubjectOf | undefined {
  return of === "asked" || of === "list" ? undefined : SUBJECTS[of];
}

function permitted(c: UserContext, user: CallingUser, route: RouteContract, wanted: readonly Permission[]): void {
  const action = route.audit?.action ?? `${wanted[0]}.${route.method}`;
  const has = wanted.find((permission) => user.permissions.includes(permission));
  if (has !== undefined) {
    c.set("rule", `permission ${has}`);
    // An audited use case writes its own row.
    if (route.audit === undefined) c.get("decisions").allowed(audited(callerOf(c, route), action, c.req.path), true);
    return;
  }
  const either = wanted.join(" or ");
  refuse(c, { action, resource: c.req.path, rule: `no role has ${either}` });
  throw refusal(user, `${c.req.method} ${c.req.path}`, `has the permission ${either}`);
}

function permit(
  c: UserContext,
  user: CallingUser,
  { action, path, described }: { action: AccessAction; path: string; described: string },
): void {
  const { allowed, rule } = decideUserAccess(user, action, path);
  const entry = { action: `playbook.${action}`, resource: `playbook/${path}`, rule };
  if (!allowed) {
    refuse(c, entry);
    throw refusal(user, `${action} ${described}`, `allows to ${action} it`);
  }
  c.set("rule", rule);
  const row = audited({ ...callerOf(c, { access: "operator" }), rule }, entry.action, entry.resource);
  c.get("decisions").allowed(row, action === "view");
}

function refuse(c: UserContext, { action, resource, rule }: { action: string; resource: string; rule: string }): void {
  c.get("decisions").refused(
    audited({ ...callerOf(c, { access: "operator" }), rule }, action, resource, { result: "deny" }),
  );
}

function refusal({ email, roles }: CallingUser, what: string, giving: string): FlowError {
  const why = roles.length === 0 ? "they have no role" : `none of their roles (${roles.join(", ")}) ${giving}`;
  return new FlowError("FORBIDDEN", `${email} may not ${what}: ${why}. Ask an administrator for one that ${giving}`);
}
