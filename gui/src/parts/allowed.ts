import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client.ts";
import { me } from "../api/queries.ts";
import type { Me } from "../api/types.ts";

/** Whether the current user may do something, as far as this page knows. The API decides in any case. */
export interface Allowed {
  allowed: boolean;
  /** Why not, and what to do about it; only where it is not allowed. */
  why?: string;
}

/** What something takes: an action on a playbook, a global permission, or the operator's own token. */
export type Need =
  | "execute"
  | "view"
  | "modify"
  | "manage_users"
  | "manage_roles"
  | "manage_credentials"
  | "view_audit"
  | "view_operations"
  | "operator";

/** Options of {@link useAllowed}. */
export interface AccessQuery {
  /** The catalog path that an action is about; without it the question is whether some path could be meant. */
  path?: string | undefined;
  /** Completes "Your roles do not let you …"; default: what the need says. */
  to?: string;
}

type User = Extract<Me, { kind: "user" }>;

const WORDS: Readonly<Record<Need, string>> = {
  execute: "run",
  view: "see",
  modify: "change",
  manage_users: "manage users",
  manage_roles: "manage roles",
  manage_credentials: "manage credentials",
  view_audit: "read the audit log",
  view_operations: "see workers and findings",
  operator: "do this",
};
/** What was decided of a path stands for so long, milliseconds; the API decides anew each time. */
const DECIDED_MS = 60_000;

/**
 * Whether the current user may do this. Until the answer has come everything counts as allowed: nothing moves for users who
 * may, and the API refuses the others. The operator's token allows everything.
 */
export function useAllowed(need: Need, { path, to = WORDS[need] }: AccessQuery = {}): Allowed {
  const who = useQuery(me()).data;
  const user = who?.kind === "user" ? who : undefined;
  const action = need === "execute" || need === "view" || need === "modify" ? need : undefined;
  const isChecked =
    user !== undefined && action !== undefined && path !== undefined && path !== "" && gives(user, need);
  const decision = useQuery({
    queryKey: ["can", user?.user_id, action, path],
    enabled: isChecked,
    staleTime: DECIDED_MS,
    queryFn: ({ signal }) =>
      api("POST /api/auth/can", { body: { action: action ?? "view", path: path ?? "" }, signal }),
  });
  if (user === undefined || (gives(user, need) && decision.data?.allowed !== false)) return { allowed: true };
  return { allowed: false, why: reason(user, need, path === undefined ? to : `${to} ${path}`) };
}

function gives(user: User, need: Need): boolean {
  if (need === "operator") return false;
  if (need === "execute" || need === "view" || need === "modify") return user.actions.includes(need);
  return user.permissions.includes(need);
}

function reason(user: User, need: Need, what: string): string {
  if (need === "operator") return `Operators alone may ${what}: with the server's own token, not through the gateway.`;
  if (user.roles.length === 0)
    return `You have no role yet, so you may not ${what}. An administrator can give you one.`;
  const roles = user.roles.length === 1 ? `role (${user.roles[0]}) does` : `roles (${user.roles.join(", ")}) do`;
  return `Your ${roles} not let you ${what}. An administrator can change that.`;
}

/** Which parts of the page are shown at all: a part of which the user may see nothing has no link. */
export function useSections(): { operations: boolean; credentials: boolean; access: boolean } {
  const operations = useAllowed("view_operations").allowed;
  const credentials = useAllowed("manage_credentials").allowed;
  const users = useAllowed("manage_users").allowed;
  const roles = useAllowed("manage_roles").allowed;
  const audit = useAllowed("view_audit").allowed;
  return { operations, credentials, access: users || roles || audit };
}
