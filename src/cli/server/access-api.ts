import { loadConfig } from "../../platform/config/config.ts";
import { CanAnswer, MeAnswer } from "../../schema/api/auth.ts";
import { PermissionsAnswer, PlaybookRuleItem, RoleItem, RolesAnswer } from "../../schema/api/roles.ts";
import { DoneAnswer, RevokeAnswer, UserItem, UsersAnswer } from "../../schema/api/users.ts";
import type { AccessAction } from "../../schema/rules/access-rules.ts";
import type { CliInput } from "../command-line/command.ts";
import { callServer } from "./client.ts";
import { paginate } from "./paginate.ts";
import { type ServerTarget, serverTarget } from "./target.ts";

/* The calls about users, roles and what they may do, one function each; they throw as `callServer` does. */

/** The server to call, and the signal that ends the call. */
export interface ApiContext {
  target: ServerTarget;
  signal: AbortSignal;
}

/** The server that a command line means. Throws as `serverTarget` does. */
export async function openApi(input: CliInput): Promise<ApiContext> {
  const { environment, signal } = input.io;
  return { target: await serverTarget(input, loadConfig(environment)), signal };
}

/** Who the caller is. */
export function readMe({ target, signal }: ApiContext) {
  return callServer(target, { method: "GET", path: "/api/auth/me", answer: MeAnswer, signal });
}

/** Whether the caller, or the user of that address, may do something with a path. */
export function checkAccess(
  { target, signal }: ApiContext,
  question: { action: AccessAction; path: string; email?: string },
) {
  return callServer(target, { method: "POST", path: "/api/auth/can", body: question, answer: CanAnswer, signal });
}

const PAGE = "500";

/** Every user that fits the query, in the order in which they came. */
export function listUsers({ target, signal }: ApiContext, query: Readonly<Record<string, string>>) {
  return paginate(async (cursor) => {
    const path = `/api/auth/users?${pageOf(cursor, query)}`;
    const page = await callServer(target, { method: "GET", path, answer: UsersAnswer, signal });
    return { items: page.users, next: page.next_cursor };
  });
}

function pageOf(cursor: string | undefined, query: Readonly<Record<string, string>> = {}): URLSearchParams {
  return new URLSearchParams({ ...query, limit: PAGE, ...(cursor !== undefined && { cursor }) });
}

/** One user, by address or id. */
export function readUser({ target, signal }: ApiContext, user: string) {
  return callServer(target, { method: "GET", path: userPath(user), answer: UserItem, signal });
}

/** Adds a user. */
export function addUser(
  { target, signal }: ApiContext,
  body: { email: string; display_name?: string; roles: string[] },
) {
  return callServer(target, { method: "POST", path: "/api/auth/users", body, answer: UserItem, signal });
}

/** Lets a user log in, or ends their sessions and lets them in no more. */
export function setUserActive({ target, signal }: ApiContext, user: string, is_active: boolean) {
  const body = { is_active };
  return callServer(target, { method: "PUT", path: userPath(user), body, answer: UserItem, signal });
}

/** Deletes a user. */
export function deleteUser({ target, signal }: ApiContext, user: string) {
  return callServer(target, { method: "DELETE", path: userPath(user), answer: DoneAnswer, signal });
}

/** Gives a role to a user. */
export function grantRole({ target, signal }: ApiContext, user: string, role: string) {
  const path = `${userPath(user)}/roles/${encodeURIComponent(role)}`;
  return callServer(target, { method: "PUT", path, answer: UserItem, signal });
}

/** Takes a role from a user. */
export function revokeRole({ target, signal }: ApiContext, user: string, role: string) {
  const path = `${userPath(user)}/roles/${encodeURIComponent(role)}`;
  return callServer(target, { method: "DELETE", path, answer: UserItem, signal });
}

/** Ends every session of a user. */
export function endSessions({ target, signal }: ApiContext, user: string) {
  return callServer(target, { method: "DELETE", path: `${userPath(user)}/sessions`, answer: RevokeAnswer, signal });
}

function userPath(user: string): string {
  return `/api/auth/users/${encodeURIComponent(user)}`;
}

/** Every role, by name. */
export function listRoles({ target, signal }: ApiContext) {
  return paginate(async (cursor) => {
    const path = `/api/auth/roles?${pageOf(cursor)}`;
    const page = await callServer(target, { method: "GET", path, answer: RolesAnswer, signal });
    return { items: page.roles, next: page.next_cursor };
  });
}

/** One role. */
export function readRole({ target, signal }: ApiContext, role: string) {
  return callServer(target, { method: "GET", path: rolePath(role), answer: RoleItem, signal });
}

/** Everything that roles can give beside playbooks, by name. */
export function listPermissions({ target, signal }: ApiContext) {
  return paginate(async (cursor) => {
    const path = `/api/auth/permissions?${pageOf(cursor)}`;
    const page = await callServer(target, { method: "GET", path, answer: PermissionsAnswer, signal });
    return { items: page.permissions, next: page.next_cursor };
  });
}

/** Adds a role that gives nothing yet. */
export function createRole({ target, signal }: ApiContext, body: { name: string; description?: string }) {
  return callServer(target, { method: "POST", path: "/api/auth/roles", body, answer: RoleItem, signal });
}

/** Changes what is given. */
export function changeRole(
  { target, signal }: ApiContext,
  role: string,
  body: { is_active?: boolean; permissions?: string[] },
) {
  return callServer(target, { method: "PUT", path: rolePath(role), body, answer: RoleItem, signal });
}

/** Deletes a role, also from its users. */
export function deleteRole({ target, signal }: ApiContext, role: string) {
  return callServer(target, { method: "DELETE", path: rolePath(role), answer: DoneAnswer, signal });
}

/** A permission on playbooks without its id. */
export type PlaybookRule = Omit<PlaybookRuleItem, "permission_id">;

/** Gives a permission on playbooks. */
export function allowPlaybooks({ target, signal }: ApiContext, role: string, body: PlaybookRule) {
  const path = `${rolePath(role)}/playbooks`;
  return callServer(target, { method: "POST", path, body, answer: PlaybookRuleItem, signal });
}

/** Takes a permission on playbooks away. */
export function disallowPlaybooks({ target, signal }: ApiContext, role: string, permissionId: string) {
  const path = `${rolePath(role)}/playbooks/${encodeURIComponent(permissionId)}`;
  return callServer(target, { method: "DELETE", path, answer: DoneAnswer, signal });
}

function rolePath(role: string): string {
  return `/api/auth/roles/${encodeURIComponent(role)}`;
}
