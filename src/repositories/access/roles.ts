import { and, sql as built, eq, inArray, notInArray } from "drizzle-orm";
import { alias, QueryBuilder } from "drizzle-orm/pg-core";
import type { PlaybookPermission } from "../../schema/rules/access-rules.ts";
import { jsonFields } from "../database/columns-of.ts";
import type { Database, Transaction } from "../database/database.ts";
import { type Page, type PageRequest, page } from "../database/page.ts";
import { permissions, playbookPermissions, rolePermissions, roles } from "../tables/auth.ts";

/** A role, and what it gives. */
export interface RoleRow extends Omit<typeof roles.$inferSelect, "roleId"> {
  /** Names of its global permissions. */
  permissions: string[];
  playbooks: PlaybookPermission[];
}

/** A role that is added, or what of one changes. */
export interface RoleChange {
  description?: string | null;
  isActive?: boolean;
  /** All global permissions that it has from now on. */
  permissions?: readonly string[];
}

/** A permission on playbooks that is added. */
export type NewPlaybookPermission = Omit<PlaybookPermission, "permissionId" | "role">;

/** Roles by name, which is the cursor too. */
export async function listRoles(
  { db }: Database,
  { limit, cursor }: PageRequest<string>,
): Promise<Page<RoleRow, string>> {
  // Byte by byte, as the key is read: a database's locale may change.
  const rows = await db
    .select(ROLE)
    .from(roles)
    .where(cursor === undefined ? undefined : built`${roles.name} collate "C" > ${cursor}`)
    .orderBy(built`${roles.name} collate "C"`)
    .limit(limit + 1);
  return page(rows, limit, (last) => last.name);
}

/** One role, or undefined. */
export async function findRole({ db }: Database | Transaction, name: string): Promise<RoleRow | undefined> {
  const [row] = await db.select(ROLE).from(roles).where(eq(roles.name, name));
  return row;
}

/** The roles of these names, in any order; unknown ones are left out. */
export async function findRoles({ db }: Database | Transaction, names: readonly string[]): Promise<RoleRow[]> {
  return await db
    .select(ROLE)
    .from(roles)
    .where(inArray(roles.name, [...names]));
}

/** A global permission. */
export type PermissionRow = Pick<typeof permissions.$inferSelect, "name" | "description">;

/** The global permissions by name, which is the cursor too. */
export async function listPermissions(
  { db }: Database | Transaction,
  { limit, cursor }: PageRequest<string>,
): Promise<Page<PermissionRow, string>> {
  const rows = await db
    .select({ name: permissions.name, description: permissions.description })
    .from(permissions)
    .where(cursor === undefined ? undefined : built`${permissions.name} collate "C" > ${cursor}`)
    .orderBy(built`${permissions.name} collate "C"`)
    .limit(limit + 1);
  return page(rows, limit, (last) => last.name);
}

/** Adds a role that gives nothing; false where there is one of that name. */
export async function insertRole({ db }: Database | Transaction, name: string): Promise<boolean> {
  const rows = await db.insert(roles).values({ name }).onConflictDoNothing().returning({ name: roles.name });
  return rows.length > 0;
}

/** Changes a role; false if it does not exist. Run it in a transaction: it may take several statements. */
export async function updateRole(
  { db }: Transaction,
  name: string,
  { description, isActive, permissions: names }: RoleChange,
): Promise<boolean> {
  // The name is written as it was: a change of nothing would be no statement.
  const [role] = await db
    .update(roles)
    .set({ name, description, isActive })
    .where(eq(roles.name, name))
    .returning({ roleId: roles.roleId });
  if (role === undefined) return false;
  if (names === undefined) return true;
  const { roleId } = role;
  const given = db
    .select({ roleId: built<number>`${roleId}::bigint`.as("role_id"), permissionId: permissions.permissionId })
    .from(permissions)
    .where(inArray(permissions.name, [...names]));
  const kept = db
    .select({ permissionId: permissions.permissionId })
    .from(permissions)
    .where(inArray(permissions.name, [...names]));
  await db
    .delete(rolePermissions)
    .where(and(eq(rolePermissions.roleId, roleId), notInArray(rolePermissions.permissionId, kept)));
  await db.insert(rolePermissions).select(given).onConflictDoNothing();
  return true;
}

/** Deletes a role, also from its users; false if it does not exist. */
export async function deleteRole({ db }: Database | Transaction, name: string): Promise<boolean> {
  const rows = await db.delete(roles).where(eq(roles.name, name)).returning({ name: roles.name });
  return rows.length > 0;
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
  { db }: Database | Transaction,
  role: string,
  permissionId: string,
): Promise<boolean> {
  const named = db.select({ roleId: roles.roleId }).from(roles).where(eq(roles.name, role));
  const rows = await db
    .delete(playbookPermissions)
    .where(
      and(
        inArray(playbookPermissions.roleId, named),
        built`${playbookPermissions.playbookPermissionId} = ${permissionId}`,
      ),
    )
    .returning({ roleId: playbookPermissions.roleId });
  return rows.length > 0;
}

const FIELDS = jsonFields(
  playbookPermissions,
  ["playbookPath", "allowPattern", "denyPattern", "canExecute", "canView", "canModify"],
  "p",
);

/** SQL: a row `p` of `auth.playbook_permissions` as the JSON of a `PlaybookPermission`. `role` is the SQL of its role's name. */
export function playbookPermissionJson(role: string): string {
  return `json_build_object('permissionId', p.playbook_permission_id::text, 'role', ${role}, ${FIELDS})`;
}

const part = new QueryBuilder();
const p = alias(playbookPermissions, "p");

const NAMES = part
  .select({ list: built`json_agg(${permissions.name} order by ${permissions.name})` })
  .from(rolePermissions)
  .innerJoin(permissions, eq(permissions.permissionId, rolePermissions.permissionId))
  .where(eq(rolePermissions.roleId, roles.roleId));

const PLAYBOOKS = part
  .select({
    list: built`json_agg(${built.raw(playbookPermissionJson('"auth"."roles".name'))} order by ${p.playbookPermissionId})`,
  })
  .from(p)
  .where(eq(p.roleId, roles.roleId));

const ROLE = {
  name: roles.name,
  description: roles.description,
  isActive: roles.isActive,
  createdAt: roles.createdAt,
  permissions: built<string[]>`coalesce(${NAMES}, '[]')`,
  playbooks: built<PlaybookPermission[]>`coalesce(${PLAYBOOKS}, '[]')`,
};
