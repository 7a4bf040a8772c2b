import type { Context } from "hono";
import * as v from "valibot";
import { RoleName, UserInAddress, type UserItem } from "../../schema/api/users.ts";
import type { RouteContract } from "../../schema/routes/contract.ts";
import { USER_ROUTES } from "../../schema/routes/users.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { Actor } from "../../services/access/access.ts";
import type { Users } from "../../services/access/users.ts";
import { callerOf } from "../http/audit-caller.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { serve } from "../http/serve.ts";
import { check } from "../http/validate.ts";

/** Users and the roles that they have. */
export function userRoutes(users: Users) {
  return serve(USER_ROUTES, {
    list: async ({ query: { limit, cursor, q, is_active, role }, json }) => {
      const filter = {
        ...defined({ text: q }),
        ...(is_active !== undefined && { isActive: is_active === "true" }),
        ...defined({ role }),
      };
      const page = { limit: pageSize(limit), ...defined({ cursor }) };
      const { items, nextCursor } = await users.list(filter, page);
      return json({ users: items.map(itemOf), next_cursor: nextCursor });
    },
    read: async ({ json }, c) => json(itemOf(await users.find(userIn(c)))),
    add: async ({ body: { email, display_name = email, roles = [], issuer, any_issuer }, json }, c) => {
      return json(
        itemOf(
          await users.add(
            { email, displayName: display_name, roles, ...defined({ issuer, anyIssuer: any_issuer }) },
            actorOf(c, USER_ROUTES.add),
          ),
        ),
        201,
      );
    },
    change: async ({ body: { email, display_name, is_active }, json }, c) => {
      const change = {
        ...defined({ email, displayName: display_name, isActive: is_active }),
      };
      return json(itemOf(await users.change(userIn(c), change, actorOf(c, USER_ROUTES.change))));
    },
    remove: async ({ json }, c) => {
      await users.remove(userIn(c), actorOf(c, USER_ROUTES.remove));
      return json({ status: "success" as const });
    },
    grant: async ({ json }, c) => json(itemOf(await users.grant(userIn(c), roleIn(c), actorOf(c, USER_ROUTES.grant)))),
    revoke: async ({ json }, c) =>
      json(itemOf(await users.revoke(userIn(c), roleIn(c), actorOf(c, USER_ROUTES.revoke)))),
  });
}

/** The caller who changes users and roles. */
export function actorOf(c: Context<RouteEnvironment>, route: RouteContract): Actor {
  const { user } = c.var;
  return { caller: callerOf(c, route), ...defined({ user }) };
}

/** The role in an address. */
export function roleIn(c: Context): string {
  return check(RoleName, c.req.param("role"), "The name of the role");
}

function userIn(c: Context) {
  return userOf(c.req.param("user") ?? "");
}

/** Finds a user by id or address. Throws `FlowError` NOT_FOUND for any other text. */
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
