import {
  PermissionsAnswer,
  PlaybookRuleBody,
  PlaybookRuleItem,
  RoleBody,
  RoleChangeBody,
  RoleItem,
  RolesAnswer,
} from "../api/roles.ts";
import { DoneAnswer } from "../api/users.ts";
import { PageQuery } from "../words/wire.ts";
import { contract } from "./contract.ts";

const SEE = { permission: ["manage_users", "manage_roles"] } as const;

const MANAGE = { permission: "manage_roles" } as const;

/** Roles, and what they give. */
export const ROLE_ROUTES = {
  list: contract({
    method: "get",
    path: "/api/auth/roles",
    summary: "Roles by name, with what they give",
    access: "operator",
    user: SEE,
    query: PageQuery,
    answer: RolesAnswer,
    refusals: [422],
  }),
  read: contract({
    method: "get",
    path: "/api/auth/roles/:role",
    summary: "One role",
    access: "operator",
    user: SEE,
    answer: RoleItem,
    refusals: [404, 422],
  }),
  permissions: contract({
    method: "get",
    path: "/api/auth/permissions",
    summary: "The global permissions, by name",
    access: "operator",
    user: SEE,
    query: PageQuery,
    answer: PermissionsAnswer,
    refusals: [422],
  }),
  add: contract({
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
  }),
  change: contract({
    method: "put",
    path: "/api/auth/roles/:role",
    summary: "Changes a role; what is left out stays",
    access: "operator",
    user: MANAGE,
    body: RoleChangeBody,
    answer: RoleItem,
    audit: { action: "role.update", resource: "role/:role" },
    refusals: [404, 409, 413, 422],
  }),
  remove: contract({
    method: "delete",
    path: "/api/auth/roles/:role",
    summary: "Deletes a role, also from its users",
    access: "operator",
    user: MANAGE,
    answer: DoneAnswer,
    audit: { action: "role.delete", resource: "role/:role" },
    refusals: [404, 409, 422],
  }),
  allow: contract({
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
  }),
  disallow: contract({
    method: "delete",
    path: "/api/auth/roles/:role/playbooks/:permission_id",
    summary: "Takes a permission on playbooks from a role",
    access: "operator",
    user: MANAGE,
    answer: DoneAnswer,
    audit: { action: "role.disallow", resource: "role/:role" },
    refusals: [404, 409, 422],
  }),
} as const;
