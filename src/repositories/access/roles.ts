import type { PlaybookPermission } from "../../schema/rules/access-rules.ts";
import type { Database, Transaction } from "../database/database.ts";
import { type Page, type PageRequest, page } from "../database/page.ts";
import { playbookPermissionJson } from "./playbook-permission-json.ts";

/** A role, and what it gives. */
export interface RoleRow {
  name: string;
  description: string | null;
  isActive: boolean;
  createdAt: Date;
  /** Names of what it gives beside playbooks. */
  permissions: string[];
  playbooks: PlaybookPermission[];
}

/** A role that is added, or what of one changes. */
export interface RoleChange {
  description?: string | null;
  isActive?: boolean;
  /** All that it gives beside playbooks from now on. */
  permissions?: readonly string[];
}

/** A permission on playbooks that is added. */
export type NewPlaybookPermission = Omit<PlaybookPermission, "permissionId" | "role">;

/** Roles by name, which is the cursor too. */
export async function listRoles(
  { sql }: Database,
  { limit, cursor }: PageRequest<string>,
): Promise<Page<RoleRow, string>> {
  // Byte by byte, as the key is read: a database's locale may change.
  const rows = await sql<RoleRow[]>`
    select ${columns(sql)} from auth.roles r
    where ${cursor === undefined ? sql`true` : sql`name collate "C" > ${cursor}`}
    order by name collate "C"
    limit ${limit + 1}`;
  return page(rows, limit, (last) => last.name);
}

/** One role, or undefined. */
export async function findRole({ sql }: Database | Transaction, name: string): Promise<RoleRow | undefined> {
  const [row] = await sql<RoleRow[]>`select ${columns(sql)} from auth.roles r where name = ${name}`;
  return row;
}

/** The roles of these names, in any order; unknown ones are left out. */
export async function findRoles({ sql }: Database | Transaction, names: readonly string[]): Promise<RoleRow[]> {
  return await sql<RoleRow[]>`select ${columns(sql)} from auth.roles r where name = any(${[...names]}::text[])`;
}

/** What a role can give beside playbooks. */
export interface PermissionRow {
  name: string;
  description: string;
}

/** What roles can give beside playbooks, by name, which is the cursor too. */
export async function listPermissions(
  { sql }: Database,
  { limit, cursor }: PageRequest<string>,
): Promise<Page<PermissionRow, string>> {
  // Byte by byte, as the key is read: a database's locale may change.
  const rows = await sql<PermissionRow[]>`
    select name, description from auth.permissions
    where ${cursor === undefined ? sql`true` : sql`name collate "C" > ${cursor}`}
    order by name collate "C"
    limit ${limit + 1}`;
  return page(rows, limit, (last) => last.name);
}

/** Adds a role that gives nothing; false where there is one of that name. */
export async function insertRole({ sql }: Database | Transaction, name: string): Promise<boolean> {
  return (
    (await sql`insert into auth.roles (name) values (${name}) on conflict (name) do nothing returning 1`).length > 0
  );
}

/** Changes a role; false where there is none. In a transaction: it may take several statements. */
export async function updateRole(
  { sql }: Transaction,
  name: string,
  { description, isActive, permissions }: RoleChange,
): Promise<boolean> {
  const rows = await sql`
    update auth.roles set
      description = case when ${description !== undefined} then ${description ?? null} else description end,
      is_active = coalesce(${isActive ?? null}, is_active)
    where name = ${name}
    returning 1`;
  if (rows.length === 0) return false;
  if (permissions === undefined) return true;
  await sql`
    delete from auth.role_permissions g using auth.roles r, auth.permissions p
    where r.role_id = g.role_id and p.permission_id = g.permission_id
      and r.name = ${name} and p.name <> all(${[...permissions]}::text[])`;
  await sql`
    insert into auth.role_permissions (role_id, permission_id)
    select role_id, permission_id from auth.roles r, auth.permissions p
    where r.name = ${name} and p.name = any(${[...permissions]}::text[])
    on conflict do nothing`;
  return true;
}

/** Deletes a role, also from its users; false where there is none. */
export async function deleteRole({ sql }: Database | Transaction, name: string): Promise<boolean> {
  return (await sql`delete from auth.roles where name = ${name} returning 1`).length > 0;
}

/** Adds a permission on playbooks to a role; gives its id, undefined where there is no such role. */
export async function insertPlaybookPermission(
  { sql }: Database | Transaction,
  role: string,
  permission: NewPlaybookPermission,
): Promise<string | undefined> {
  const { playbookPath, allowPattern, denyPattern, canExecute, canView, canModify } = permission;
  const [row] = await sql<{ id: string }[]>`
    insert into auth.playbook_permissions (role_id, playbook_path, allow_pattern, deny_pattern, can_execute, can_view,
      can_modify)
    select role_id, ${playbookPath}, ${allowPattern}, ${denyPattern}, ${canExecute}, ${canView}, ${canModify}
    from auth.roles where name = ${role}
    returning playbook_permission_id as id`;
  return row?.id;
}

/** Takes a permission on playbooks from a role; false where it has none of that id. */
export async function deletePlaybookPermission(
  { sql }: Database | Transaction,
  role: string,
  permissionId: string,
): Promise<boolean> {
  const rows = await sql`
    delete from auth.playbook_permissions p using auth.roles r
    where r.role_id = p.role_id and r.name = ${role} and p.playbook_permission_id = ${permissionId}
    returning 1`;
  return rows.length > 0;
}

function columns(sql: Database["sql"] | Transaction["sql"]) {
  return sql`
    r.name, r.description, r.is_active as "isActive", r.created_at as "createdAt",
    coalesce((
      select json_agg(p.name order by p.name)
      from auth.role_permissions g join auth.permissions p using (permission_id) where g.role_id = r.role_id
    ), '[]') as permissions,
    coalesce((
      select json_agg(${playbookPermissionJson(sql, sql`r.name`)} order by p.playbook_permission_id)
      from auth.playbook_permissions p where p.role_id = r.role_id
    ), '[]') as playbooks`;
}
