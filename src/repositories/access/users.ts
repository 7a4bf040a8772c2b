import { and, asc, sql as built, eq, exists, inArray } from "drizzle-orm";
import { alias, QueryBuilder } from "drizzle-orm/pg-core";
import type { ISql } from "postgres";
import type { Database, Transaction } from "../database/database.ts";
import { type Page, type PageRequest, page } from "../database/page.ts";
import { permissions, rolePermissions, roles, userRoles, users } from "../tables/auth.ts";

/** A user. */
export interface UserRow
  extends Pick<
    typeof users.$inferSelect,
    "userId" | "email" | "displayName" | "isActive" | "issuer" | "createdAt" | "lastLoginAt"
  > {
  /** All roles that they were given, active or not, by name. */
  roles: GrantedRole[];
}

/** A role of a user. */
export interface GrantedRole {
  role: string;
  isActive: boolean;
  /** The address of the user who granted it; null for an operator or the installation. */
  grantedBy: string | null;
  /** RFC 3339. */
  grantedAt: string;
}

/** Which users of a list. */
export interface UserFilter {
  /** Part of the address or the name, whatever the letters' case. */
  text?: string;
  isActive?: boolean;
  /** Name of a role that they have, active. */
  role?: string;
}

/** A user, by id or by address. */
export type UserKey = { userId: number } | { email: string };

/** A change of a user. */
export type UserChange = Partial<Pick<UserRow, "email" | "displayName" | "isActive">>;

/** Users in the order in which they came. The cursor is a user's id. */
export async function listUsers(
  { db }: Database,
  { text, isActive, role }: UserFilter,
  { limit, cursor }: PageRequest<string>,
): Promise<Page<UserRow, string>> {
  const rows = await db
    .select(USER)
    .from(users)
    .where(
      and(
        built`${users.userId} > ${cursor ?? "0"}`,
        text === undefined
          ? undefined
          : built`position(lower(${text}) in lower(${users.email} || ' ' || ${users.displayName})) > 0`,
        isActive === undefined ? undefined : eq(users.isActive, isActive),
        role === undefined ? undefined : exists(activeGrant(role)),
      ),
    )
    .orderBy(asc(users.userId))
    .limit(limit + 1);
  return page(rows, limit, (last) => String(last.userId));
}

/** One user, or undefined. */
export async function findUser({ db }: Database | Transaction, key: UserKey): Promise<UserRow | undefined> {
  const isMeant = "userId" in key ? eq(users.userId, key.userId) : built`lower(${users.email}) = lower(${key.email})`;
  const [row] = await db.select(USER).from(users).where(isMeant);
  return row;
}

/** Issuers by which users have logged in, by name; `limit` at most. */
export async function listIssuers({ sql }: Database, limit: number): Promise<string[]> {
  const rows = await sql<{ issuer: string }[]>`
    select distinct issuer from auth.users where issuer is not null and subject is not null order by issuer limit ${limit}`;
  return rows.map(({ issuer }) => issuer);
}

/** Addresses of active users with an active role who are bound to no provider and never logged in; `limit` at most. */
export async function listUnboundUsers(sql: ISql, limit: number): Promise<string[]> {
  const rows = await sql<{ email: string }[]>`
    select email from auth.users u
    where is_active and issuer is null and subject is null
      and exists (select from auth.user_roles r where r.user_id = u.user_id and r.is_active)
    order by email limit ${limit}`;
  return rows.map(({ email }) => email);
}

/** Adds a user; undefined where another user has the address. */
export async function insertUser(
  { db }: Database | Transaction,
  user: { email: string; displayName: string; issuer?: string },
): Promise<number | undefined> {
  const [row] = await db.insert(users).values(user).onConflictDoNothing().returning({ userId: users.userId });
  return row?.userId;
}

/** Changes a user; false if they do not exist. Rejects with 23505 (`users_email`) if another user has the address. */
export async function updateUser(
  { db }: Database | Transaction,
  userId: number,
  { email, displayName, isActive }: UserChange,
): Promise<boolean> {
  const rows = await db
    .update(users)
    .set({ email, displayName, isActive, updatedAt: built`now()` })
    .where(eq(users.userId, userId))
    .returning({ userId: users.userId });
  return rows.length > 0;
}

/** Deletes a user with their sessions and roles; false if they do not exist. */
export async function deleteUser({ db }: Database | Transaction, userId: number): Promise<boolean> {
  const rows = await db.delete(users).where(eq(users.userId, userId)).returning({ userId: users.userId });
  return rows.length > 0;
}

/** Grants roles to a user, also ones that were inactive; active grants stay as they are. */
export async function grantRoles(
  { sql }: Database | Transaction,
  userId: number,
  roles: readonly string[],
  grantedBy: number | null,
): Promise<void> {
  await sql`
    insert into auth.user_roles (user_id, role_id, granted_by)
    select ${userId}, role_id, ${grantedBy} from auth.roles where name = any(${[...roles]}::text[])
    on conflict (user_id, role_id) do update set is_active = true, granted_by = excluded.granted_by, granted_at = now()
    where not user_roles.is_active`;
}

/** Takes a role from a user; false where they did not have it. */
export async function revokeRole({ db }: Database | Transaction, userId: number, role: string): Promise<boolean> {
  const named = db.select({ roleId: roles.roleId }).from(roles).where(eq(roles.name, role));
  const rows = await db
    .delete(userRoles)
    .where(and(eq(userRoles.userId, userId), inArray(userRoles.roleId, named)))
    .returning({ roleId: userRoles.roleId });
  return rows.length > 0;
}

/** Whether an active user has this permission. */
export async function someoneHas({ db }: Database | Transaction, permission: string): Promise<boolean> {
  const rows = await db
    .select({ userId: users.userId })
    .from(permissions)
    .innerJoin(rolePermissions, eq(rolePermissions.permissionId, permissions.permissionId))
    .innerJoin(roles, eq(roles.roleId, rolePermissions.roleId))
    .innerJoin(userRoles, eq(userRoles.roleId, roles.roleId))
    .innerJoin(users, eq(users.userId, userRoles.userId))
    .where(
      and(
        eq(permissions.name, permission),
        eq(roles.isActive, true),
        eq(userRoles.isActive, true),
        eq(users.isActive, true),
      ),
    )
    .limit(1);
  return rows.length > 0;
}

const part = new QueryBuilder();
const granter = alias(users, "granter");

/** The grant by which the user of the statement around it has the role now. */
function activeGrant(role: string) {
  return part
    .select({ roleId: userRoles.roleId })
    .from(userRoles)
    .innerJoin(roles, eq(roles.roleId, userRoles.roleId))
    .where(and(eq(userRoles.userId, users.userId), eq(userRoles.isActive, true), eq(roles.name, role)));
}

/** The grants of the user of the statement around it, as a JSON list of {@link GrantedRole}. */
const GRANTS = part
  .select({
    list: built`json_agg(json_build_object(
      'role', ${roles.name}, 'isActive', ${userRoles.isActive} and ${roles.isActive}, 'grantedBy', ${granter.email},
      'grantedAt', to_char(${userRoles.grantedAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
    ) order by ${roles.name})`,
  })
  .from(userRoles)
  .innerJoin(roles, eq(roles.roleId, userRoles.roleId))
  .leftJoin(granter, eq(granter.userId, userRoles.grantedBy))
  .where(eq(userRoles.userId, users.userId));

const USER = {
  userId: users.userId,
  email: users.email,
  displayName: users.displayName,
  isActive: users.isActive,
  issuer: users.issuer,
  createdAt: users.createdAt,
  lastLoginAt: users.lastLoginAt,
  roles: built<GrantedRole[]>`coalesce(${GRANTS}, '[]')`,
};
