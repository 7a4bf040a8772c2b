import type { PlaybookRuleBody, PlaybookRuleItem, RoleChangeBody, RoleItem } from "../../schema/api/roles.ts";
import { ROLE_ROUTES } from "../../schema/routes/roles.ts";
import type { PlaybookPermission } from "../../schema/rules/access-rules.ts";
import { defined } from "../../schema/words/defined.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { Roles } from "../../services/access/roles.ts";
import { serve } from "../http/serve.ts";
import { pathId } from "../http/validate.ts";
import { actorOf, roleIn } from "./users.ts";

/** Roles, and what they give. */
export function roleRoutes(roles: Roles) {
  return serve(ROLE_ROUTES, {
    list: async ({ query: { limit, ...query }, json }) => {
      const { items, nextCursor } = await roles.list({ ...query, limit: pageSize(limit) });
      return json({ roles: items.map(itemOf), next_cursor: nextCursor });
    },
    read: async ({ json }, c) => json(itemOf(await roles.find(roleIn(c)))),
    permissions: async ({ query: { limit, ...query }, json }) => {
      const { items, nextCursor } = await roles.permissions({ ...query, limit: pageSize(limit) });
      return json({ permissions: items, next_cursor: nextCursor });
    },
    add: async ({ body: { name, playbooks = [], ...change }, json }, c) => {
      const given = { name, playbooks: playbooks.map(permissionOf), ...changeOf(change) };
      return json(itemOf(await roles.add(given, actorOf(c, ROLE_ROUTES.add))), 201);
    },
    change: async ({ body, json }, c) => {
      const change = changeOf(body);
      return json(itemOf(await roles.change(roleIn(c), change, actorOf(c, ROLE_ROUTES.change))));
    },
    remove: async ({ json }, c) => {
      await roles.remove(roleIn(c), actorOf(c, ROLE_ROUTES.remove));
      return json({ status: "success" as const });
    },
    allow: async ({ body, json }, c) => {
      const permission = permissionOf(body);
      const permissionId = await roles.allow(roleIn(c), permission, actorOf(c, ROLE_ROUTES.allow));
      return json(ruleOf({ ...permission, permissionId }), 201);
    },
    disallow: async ({ params, json }, c) => {
      const permissionId = pathId(params.permission_id, "permission on playbooks");
      await roles.disallow(roleIn(c), permissionId, actorOf(c, ROLE_ROUTES.disallow));
      return json({ status: "success" as const });
    },
  });
}

function changeOf({ description, is_active, permissions }: RoleChangeBody) {
  return {
    ...defined({ description, isActive: is_active, permissions }),
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
