import { Hono } from "hono";
import {
  PermissionsAnswer,
  PlaybookRuleBody,
  PlaybookRuleItem,
  RoleBody,
  RoleChangeBody,
  RoleItem,
  RolesAnswer,
} from "../../schema/api/roles.ts";
import { DoneAnswer } from "../../schema/api/users.ts";
import type { PlaybookPermission } from "../../schema/rules/access-rules.ts";
import { PageQuery, pageSize } from "../../schema/words/wire.ts";
import type { Roles } from "../../services/access/roles.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { jsonBody, pathId, queryOf } from "../http/validate.ts";
import { actorOf, roleIn } from "./users.ts";

const SEE = { permission: ["manage_users", "manage_roles"] } as const;
const MANAGE = { permission: "manage_roles" } as const;

const LIST = contract({
  method: "get",
  path: "/api/auth/roles",
  summary: "Roles by name, with what they give",
  access: "operator",
  user: SEE,
  query: PageQuery,
  answer: RolesAnswer,
  refusals: [422],
});

const READ = contract({
  method: "get",
  path: "/api/auth/roles/:role",
  summary: "One role",
  access: "operator",
  user: SEE,
  answer: RoleItem,
  refusals: [404, 422],
});

const PERMISSIONS = contract({
  method: "get",
  path: "/api/auth/permissions",
  summary: "What roles can give beside playbooks, by name",
  access: "operator",
  user: SEE,
  query: PageQuery,
  answer: PermissionsAnswer,
  refusals: [422],
});

const ADD = contract({
  method: "post",
  path: "/api/auth/roles",
  summary: "Adds a role",
  access: "operator",
  user: MANAGE,
  body: RoleBody,
  answer: RoleItem,
  status: 201,
  audit: { action: "role.create", resource: "role" },
  refusals: [404, 409, 413, 422],
});

const CHANGE = contract({
  method: "put",
  path: "/api/auth/roles/:role",
  summary: "Changes a role; what is left out stays",
  access: "operator",
  user: MANAGE,
  body: RoleChangeBody,
  answer: RoleItem,
  audit: { action: "role.update", resource: "role/:role" },
  refusals: [404, 409, 413, 422],
});

const REMOVE = contract({
  method: "delete",
  path: "/api/auth/roles/:role",
  summary: "Deletes a role, also from its users",
  access: "operator",
  user: MANAGE,
  answer: DoneAnswer,
  audit: { action: "role.delete", resource: "role/:role" },
  refusals: [404, 409, 422],
});

const ALLOW = contract({
  method: "post",
  path: "/api/auth/roles/:role/playbooks",
  summary: "Gives a role a permission on playbooks: on one path, or on those of a pattern",
  access: "operator",
  user: MANAGE,
  body: PlaybookRuleBody,
  answer: PlaybookRuleItem,
  status: 201,
  audit: { action: "role.allow", resource: "role/:role" },
  refusals: [404, 409, 413, 422],
});

const DISALLOW = contract({
  method: "delete",
  path: "/api/auth/roles/:role/playbooks/:permission_id",
  summary: "Takes a permission on playbooks from a role",
  access: "operator",
  user: MANAGE,
  answer: DoneAnswer,
  audit: { action: "role.disallow", resource: "role/:role" },
  refusals: [404, 409, 422],
});

/** Contracts of {@link roleRoutes}. */
export const ROLE_CONTRACTS = [LIST, READ, PERMISSIONS, ADD, CHANGE, REMOVE, ALLOW, DISALLOW];

/** Roles, and what they give. */
export function roleRoutes(roles: Roles) {
  return new Hono<RouteEnvironment>()
    .get(LIST.path, queryOf(LIST.query), async (c) => {
      const { limit, ...query } = c.req.valid("query");
      const { items, nextCursor } = await roles.list({ ...query, limit: pageSize(limit) });
      return c.json({ roles: items.map(itemOf), next_cursor: nextCursor } satisfies RolesAnswer);
    })
    .get(READ.path, async (c) => c.json(itemOf(await roles.find(roleIn(c)))))
    .get(PERMISSIONS.path, queryOf(PERMISSIONS.query), async (c) => {
      const { limit, ...query } = c.req.valid("query");
      const { items, nextCursor } = await roles.permissions({ ...query, limit: pageSize(limit) });
      return c.json({ permissions: items, next_cursor: nextCursor } satisfies PermissionsAnswer);
    })
    .post(ADD.path, jsonBody(ADD.body), async (c) => {
      const { name, playbooks = [], ...change } = c.req.valid("json");
      const given = { name, playbooks: playbooks.map(permissionOf), ...changeOf(change) };
      return c.json(itemOf(await roles.add(given, actorOf(c, ADD))), 201);
    })
    .put(CHANGE.path, jsonBody(CHANGE.body), async (c) => {
      const change = changeOf(c.req.valid("json"));
      return c.json(itemOf(await roles.change(roleIn(c), change, actorOf(c, CHANGE))));
    })
    .delete(REMOVE.path, async (c) => {
      await roles.remove(roleIn(c), actorOf(c, REMOVE));
      return c.json({ status: "success" as const });
    })
    .post(ALLOW.path, jsonBody(ALLOW.body), async (c) => {
      const permission = permissionOf(c.req.valid("json"));
      const permissionId = await roles.allow(roleIn(c), permission, actorOf(c, ALLOW));
      return c.json(ruleOf({ ...permission, permissionId }), 201);
    })
    .delete(DISALLOW.path, async (c) => {
      const permissionId = pathId(c.req.param("permission_id"), "permission on playbooks");
      await roles.disallow(roleIn(c), permissionId, actorOf(c, DISALLOW));
      return c.json({ status: "success" as const });
    });
}

function changeOf({ description, is_active, permissions }: RoleChangeBody) {
  return {
    ...(description !== undefined && { description }),
    ...(is_active !== undefined && { isActive: is_active }),
    ...(permissions !== undefined && { permissions }),
  };
}

function permissionOf(body: PlaybookRuleBody) {
  return {
    playbookPath: body.playbook_path ?? null,
    allowPattern: body.allow_pattern ?? null,
    denyPattern: body.deny_pattern ?? null,
    canExecute: body.can_execute ?? false,
    canView: body.can_view ?? false,
    canModify: body.can_modify ?? false,
  };
}

function itemOf(role: Awaited<ReturnType<Roles["find"]>>): RoleItem {
  return {
    name: role.name,
    description: role.description,
    is_active: role.isActive,
    created_at: role.createdAt.toISOString(),
    permissions: role.permissions,
    playbooks: role.playbooks.map(ruleOf),
  };
}

function ruleOf(permission: Omit<PlaybookPermission, "role">): PlaybookRuleItem {
  return {
    permission_id: permission.permissionId,
    playbook_path: permission.playbookPath,
    allow_pattern: permission.allowPattern,
    deny_pattern: permission.denyPattern,
    can_execute: permission.canExecute,
    can_view: permission.canView,
    can_modify: permission.canModify,
  };
}
