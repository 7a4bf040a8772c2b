import type { PlaybookPermission } from "../../schema/rules/access-rules.ts";
import type { Database } from "../database/database.ts";
import { playbookPermissionJson } from "./playbook-permission-json.ts";

/** A user who is active, and all that their roles give. */
export interface UserAccess {
  userId: number;
  email: string;
  displayName: string;
  /** Names of active roles. */
  roles: string[];
  /** Names of what they may do beside playbooks. */
  permissions: string[];
  playbooks: PlaybookPermission[];
}

/** The same, of the user whose session it is. */
export interface SessionAccess extends UserAccess {
  sessionId: number;
  /** When the session ends, whatever happens. */
  expiresAt: Date;
  /** It was not marked as used for a minute: see {@link touchSession}. */
  isUntouched: boolean;
}

/** How long a session's use is not written again. */
const TOUCH_SECONDS = 60;

/**
 * The session of this token, if it is neither revoked nor over and its user is active; and what its user may do. Asked with
 * every call of a user, so that what was taken away counts from the next call on: one statement, by the keys of five small
 * tables (0.3 ms). Takes no lock.
 */
export async function findSessionAccess({ sql }: Database, tokenSha256: string): Promise<SessionAccess | undefined> {
  const [row] = await sql<SessionAccess[]>`
    with who as (
      select s.session_id, s.expires_at, s.last_seen_at, u.user_id, u.email, u.display_name
      from auth.sessions s join auth.users u using (user_id)
      where s.token_sha256 = ${tokenSha256} and s.revoked_at is null and s.expires_at > now()
        and s.idle_expires_at > now() and u.is_active
    ), ${rolesOf(sql)}
    select session_id::float8 as "sessionId", expires_at as "expiresAt",
      last_seen_at < now() - ${TOUCH_SECONDS} * interval '1 second' as "isUntouched", ${givenBy(sql)}
    from who`;
  return row;
}

/** A user by id or, whatever its letters' case, by address; undefined for one who is not active. */
export async function findUserAccess(
  { sql }: Database,
  user: { userId: number | string } | { email: string },
): Promise<UserAccess | undefined> {
  const [row] = await sql<UserAccess[]>`
    with who as (
      select user_id, email, display_name from auth.users
      where is_active and ${"email" in user ? sql`lower(email) = lower(${user.email})` : sql`user_id = ${user.userId}`}
    ), ${rolesOf(sql)}
    select ${givenBy(sql)} from who`;
  return row;
}

function rolesOf(sql: Database["sql"]) {
  return sql`role as (
    select r.role_id, r.name
    from who join auth.user_roles g using (user_id) join auth.roles r using (role_id)
    where g.is_active and r.is_active
  )`;
}

function givenBy(sql: Database["sql"]) {
  return sql`
    user_id::float8 as "userId", email, display_name as "displayName",
    coalesce((select json_agg(name order by name) from role), '[]') as roles,
    coalesce((
      select json_agg(distinct p.name) from role join auth.role_permissions using (role_id)
        join auth.permissions p using (permission_id)
    ), '[]') as permissions,
    coalesce((
      select json_agg(${playbookPermissionJson(sql, sql`role.name`)} order by p.playbook_permission_id)
      from role join auth.playbook_permissions p using (role_id)
    ), '[]') as playbooks`;
}

/** Moves the idle end of a session that is used: as far from now as it was from its last use, no further than its end. */
export async function touchSession({ sql }: Database, sessionId: number): Promise<void> {
  await sql`
    update auth.sessions set
      idle_expires_at = least(expires_at, now() + (idle_expires_at - last_seen_at)),
      last_seen_at = now()
    where session_id = ${sessionId} and revoked_at is null and idle_expires_at > now() and last_seen_at < now()`;
}

/** What a call is about, where its address names no path. */
export type Subject = { executionId: string } | { catalogId: string };

/** The catalog path of an execution or of a version; undefined where there is none. */
export async function findPath({ sql }: Database, subject: Subject): Promise<string | undefined> {
  const [row] =
    "executionId" in subject
      ? await sql<{ path: string }[]>`select path from flow.execution where execution_id = ${subject.executionId}`
      : await sql<{ path: string }[]>`select path from flow.catalog where catalog_id = ${subject.catalogId}`;
  return row?.path;
}

/** An execution that reads what another one has stored. */
export interface Reading {
  /** The user who started the reader; null: nobody whose access is limited. */
  startedBy: number | null;
  /** Both are of one tree of executions. */
  isOneTree: boolean;
  /** Catalog path of the one that is read. */
  path: string;
}

/** Undefined where one of the two is not there. */
export async function findReading({ sql }: Database, reader: string, about: string): Promise<Reading | undefined> {
  const [row] = await sql<Reading[]>`
    select reader.started_by::float8 as "startedBy", reader.root_execution_id = about.root_execution_id as "isOneTree",
      about.path
    from flow.execution reader, flow.execution about
    where reader.execution_id = ${reader} and about.execution_id = ${about}`;
  return row;
}
