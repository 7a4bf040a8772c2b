import type { Database, Transaction } from "../database/database.ts";
import { type Page, type PageRequest, page } from "../database/page.ts";

/** A person who may log in. */
export interface UserRow {
  userId: number;
  email: string;
  displayName: string;
  isActive: boolean;
  /** Who vouches for them; null until they have logged in. */
  issuer: string | null;
  createdAt: Date;
  lastLoginAt: Date | null;
  /** What they have been given, active roles and others, by name. */
  roles: GrantedRole[];
}

/** A role of a user. */
export interface GrantedRole {
  role: string;
  isActive: boolean;
  /** The address of the user who gave it; null where that was an operator or the installation. */
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

/** What of a user can be changed. */
export type UserChange = Partial<Pick<UserRow, "email" | "displayName" | "isActive">>;

/** Users in the order in which they came. The cursor is a user's id. */
export async function listUsers(
  { sql }: Database,
  { text, isActive, role }: UserFilter,
  { limit, cursor }: PageRequest<string>,
): Promise<Page<UserRow, string>> {
  const rows = await sql<UserRow[]>`
    select ${columns(sql)} from auth.users u
    where user_id > ${cursor ?? "0"}
      ${text === undefined ? sql`` : sql`and position(lower(${text}) in lower(email || ' ' || display_name)) > 0`}
      ${isActive === undefined ? sql`` : sql`and is_active = ${isActive}`}
      ${
        role === undefined
          ? sql``
          : sql`and exists (
              select from auth.user_roles g join auth.roles r using (role_id)
              where g.user_id = u.user_id and g.is_active and r.name = ${role})`
      }
    order by user_id
    limit ${limit + 1}`;
  return page(rows, limit, (last) => String(last.userId));
}

/** One user, or undefined. */
export async function findUser({ sql }: Database, key: UserKey): Promise<UserRow | undefined> {
  const [row] = await sql<UserRow[]>`select ${columns(sql)} from auth.users u where ${isUser(sql, key)}`;
  return row;
}

/** Adds a user; undefined where the address is somebody's. */
export async function insertUser(
  { sql }: Database | Transaction,
  { email, displayName }: { email: string; displayName: string },
): Promise<number | undefined> {
  const [row] = await sql<{ userId: number }[]>`
    insert into auth.users (email, display_name) values (${email}, ${displayName})
    on conflict (lower(email)) do nothing
    returning user_id::float8 as "userId"`;
  return row?.userId;
}

/** Changes a user; false where there is none. Rejects with 23505 (`users_email`) for an address that is somebody's. */
export async function updateUser(
  { sql }: Database | Transaction,
  userId: number,
  { email, displayName, isActive }: UserChange,
): Promise<boolean> {
  const rows = await sql`
    update auth.users set
      email = coalesce(${email ?? null}, email),
      display_name = coalesce(${displayName ?? null}, display_name),
      is_active = coalesce(${isActive ?? null}, is_active),
      updated_at = now()
    where user_id = ${userId}
    returning 1`;
  return rows.length > 0;
}

/** Deletes a user with their sessions and roles; false where there is none. */
export async function deleteUser({ sql }: Database | Transaction, userId: number): Promise<boolean> {
  return (await sql`delete from auth.users where user_id = ${userId} returning 1`).length > 0;
}

/** Gives roles to a user, also ones that they had and have not any more; those that they have stay as they are. */
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
export async function revokeRole({ sql }: Database | Transaction, userId: number, role: string): Promise<boolean> {
  const rows = await sql`
    delete from auth.user_roles g using auth.roles r
    where g.role_id = r.role_id and r.name = ${role} and g.user_id = ${userId}
    returning 1`;
  return rows.length > 0;
}

/** Whether anybody who is active has this permission. */
export async function someoneHas({ sql }: Database | Transaction, permission: string): Promise<boolean> {
  const rows = await sql`
    select from auth.permissions p join auth.role_permissions using (permission_id) join auth.roles r using (role_id)
      join auth.user_roles g using (role_id) join auth.users u using (user_id)
    where p.name = ${permission} and r.is_active and g.is_active and u.is_active
    limit 1`;
  return rows.length > 0;
}

function isUser(sql: Database["sql"], key: UserKey) {
  return "userId" in key ? sql`user_id = ${key.userId}` : sql`lower(email) = lower(${key.email})`;
}

function columns(sql: Database["sql"]) {
  return sql`
    u.user_id::float8 as "userId", u.email, u.display_name as "displayName", u.is_active as "isActive", u.issuer,
    u.created_at as "createdAt", u.last_login_at as "lastLoginAt",
    coalesce((
      select json_agg(json_build_object('role', r.name, 'isActive', g.is_active and r.is_active, 'grantedBy', by.email,
        'grantedAt', to_char(g.granted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) order by r.name)
      from auth.user_roles g join auth.roles r using (role_id) left join auth.users by on by.user_id = g.granted_by
      where g.user_id = u.user_id
    ), '[]') as roles`;
}
