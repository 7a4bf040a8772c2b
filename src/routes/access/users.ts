import { type Context, Hono } from "hono";
import * as v from "valibot";
import {
  DoneAnswer,
  RoleName,
  UserBody,
  UserChangeBody,
  UserInAddress,
  UserItem,
  UsersAnswer,
  UsersQuery,
} from "../../schema/api/users.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { Actor } from "../../services/access/access.ts";
import type { Users } from "../../services/access/users.ts";
import { callerOf } from "../http/audit-caller.ts";
import { contract, type RouteContract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { check, jsonBody, queryOf } from "../http/validate.ts";

const MANAGE = { permission: "manage_users" } as const;

const LIST = contract({
  method: "get",
  path: "/api/auth/users",
  summary: "Users in the order in which they came, with their roles",
  access: "operator",
  user: MANAGE,
  query: UsersQuery,
  answer: UsersAnswer,
  refusals: [422],
});

const READ = contract({
  method: "get",
  path: "/api/auth/users/:user",
  summary: "One user by id or address",
  access: "operator",
  user: MANAGE,
  answer: UserItem,
  refusals: [404],
});

const ADD = contract({
  method: "post",
  path: "/api/auth/users",
  summary: "Adds a user before they log in; their login finds them by their address",
  access: "operator",
  user: MANAGE,
  body: UserBody,
  answer: UserItem,
  status: 201,
  audit: { action: "user.create", resource: "user" },
  refusals: [404, 409, 413, 422],
});

const CHANGE = contract({
  method: "put",
  path: "/api/auth/users/:user",
  summary: "Changes a user; what is left out stays",
  access: "operator",
  user: MANAGE,
  body: UserChangeBody,
  answer: UserItem,
  audit: { action: "user.update", resource: "user/:user" },
  refusals: [404, 409, 413, 422],
});

const REMOVE = contract({
  method: "delete",
  path: "/api/auth/users/:user",
  summary: "Deletes a user with their sessions and roles; what they did stays in the audit log",
  access: "operator",
  user: MANAGE,
  answer: DoneAnswer,
  audit: { action: "user.delete", resource: "user/:user" },
  refusals: [404, 409],
});

const GRANT = contract({
  method: "put",
  path: "/api/auth/users/:user/roles/:role",
  summary: "Gives a user a role",
  access: "operator",
  user: MANAGE,
  answer: UserItem,
  audit: { action: "user.grant", resource: "user/:user" },
  refusals: [404],
});

const REVOKE = contract({
  method: "delete",
  path: "/api/auth/users/:user/roles/:role",
  summary: "Takes a role from a user; one that they do not have is no error",
  access: "operator",
  user: MANAGE,
  answer: UserItem,
  audit: { action: "user.revoke", resource: "user/:user" },
  refusals: [404, 409],
});

/** Contracts of {@link userRoutes}. */
export const USER_CONTRACTS = [LIST, READ, ADD, CHANGE, REMOVE, GRANT, REVOKE];

/** Users and the roles that they have. */
export function userRoutes(users: Users) {
  return new Hono<RouteEnvironment>()
    .get(LIST.path, queryOf(LIST.query), async (c) => {
      const { limit, cursor, q, is_active, role } = c.req.valid("query");
      const filter = {
        ...(q !== undefined && { text: q }),
        ...(is_active !== undefined && { isActive: is_active === "true" }),
        ...(role !== undefined && { role }),
      };
      const page = { limit: pageSize(limit), ...(cursor !== undefined && { cursor }) };
      const { items, nextCursor } = await users.list(filter, page);
      return c.json({ users: items.map(itemOf), next_cursor: nextCursor } satisfies UsersAnswer);
    })
    .get(READ.path, async (c) => c.json(itemOf(await users.find(userIn(c)))))
    .post(ADD.path, jsonBody(ADD.body), async (c) => {
      const { email, display_name = email, roles = [] } = c.req.valid("json");
      return c.json(itemOf(await users.add({ email, displayName: display_name, roles }, actorOf(c, ADD))), 201);
    })
    .put(CHANGE.path, jsonBody(CHANGE.body), async (c) => {
      const { email, display_name, is_active } = c.req.valid("json");
      const change = {
        ...(email !== undefined && { email }),
        ...(display_name !== undefined && { displayName: display_name }),
        ...(is_active !== undefined && { isActive: is_active }),
      };
      return c.json(itemOf(await users.change(userIn(c), change, actorOf(c, CHANGE))));
    })
    .delete(REMOVE.path, async (c) => {
      await users.remove(userIn(c), actorOf(c, REMOVE));
      return c.json({ status: "success" as const });
    })
    .put(GRANT.path, async (c) => c.json(itemOf(await users.grant(userIn(c), roleIn(c), actorOf(c, GRANT)))))
    .delete(REVOKE.path, async (c) => c.json(itemOf(await users.revoke(userIn(c), roleIn(c), actorOf(c, REVOKE)))));
}

/** Who changes users and roles. */
export function actorOf(c: Context<RouteEnvironment>, route: RouteContract): Actor {
  const { user } = c.var;
  return { caller: callerOf(c, route), ...(user !== undefined && { user }) };
}

/** The role in an address. */
export function roleIn(c: Context): string {
  return check(RoleName, c.req.param("role"), "The name of the role");
}

function userIn(c: Context) {
  return userOf(c.req.param("user") ?? "");
}

/** A user by what a caller calls them. Throws `FlowError` NOT_FOUND for text that is neither an id nor an address. */
export function userOf(text: string) {
  const parsed = v.safeParse(UserInAddress, text);
  if (parsed.success) return parsed.output;
  throw new FlowError("NOT_FOUND", `There is no user '${text.slice(0, 320)}': give an id or an address`);
}

function itemOf(user: Awaited<ReturnType<Users["find"]>>): UserItem {
  return {
    user_id: user.userId,
    email: user.email,
    display_name: user.displayName,
    is_active: user.isActive,
    issuer: user.issuer,
    created_at: user.createdAt.toISOString(),
    last_login_at: user.lastLoginAt?.toISOString() ?? null,
    roles: user.roles.map(({ role, isActive, grantedBy, grantedAt }) => ({
      role,
      is_active: isActive,
      granted_by: grantedBy,
      granted_at: grantedAt,
    })),
  };
}
