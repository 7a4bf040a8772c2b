import { and, sql as built, eq, gt, isNull, lt } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { PlaybookPermission } from "../../schema/rules/access-rules.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database, Transaction } from "../database/database.ts";
import { sessions } from "../tables/auth.ts";
import { catalog } from "../tables/catalog.ts";
import { execution } from "../tables/execution.ts";
import { playbookPermissionJson } from "./roles.ts";

/** An active user, and all permissions of their roles. */
export interface UserAccess {
  userId: number;
  email: string;
  displayName: string;
  /** Whom the identity provider vouched for; null before the first login. */
  issuer: string | null;
  subject: string | null;
  /** Names of active roles. */
  roles: string[];
  /** Names of the user's permissions other than those on playbooks. */
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
 * every call of a user, so that a right that was taken away is gone with the next call: one statement, by the keys of five small
 * tables (0.3 ms), tagged: built, it took 0.55 ms of this process's time instead of 0.11 ms. Takes no lock.
 */
export async function findSessionAccess({ sql }: Database, tokenSha256: string): Promise<SessionAccess | undefined> {
  const [row] = await sql<SessionAccess[]>`
    with who as (
      select s.session_id, s.expires_at, s.last_seen_at, u.user_id, u.email, u.display_name, u.issuer, u.subject
      from auth.sessions s join auth.users u using (user_id)
      where s.token_sha256 = ${tokenSha256} and s.revoked_at is null and s.expires_at > now()
        and s.idle_expires_at > now() and u.is_active
    ), ${rolesOf(sql)}
    select session_id::float8 as "sessionId", expires_at as "expiresAt",
      last_seen_at < now() - ${TOUCH_SECONDS} * interval '1 second' as "isUntouched", ${givenBy(sql)}
    from who`;
  return row;
}

/** A user by id or by address (in any case); undefined for an inactive user. */
export async function findUserAccess(
  { sql }: Pick<Database | Transaction, "sql">,
  user: { userId: number | string } | { email: string },
): Promise<UserAccess | undefined> {
  const [row] = await sql<UserAccess[]>`
    with who as (
      select user_id, email, display_name, issuer, subject from auth.users
      where is_active and ${"email" in user ? sql`lower(email) = lower(${user.email})` : sql`user_id = ${user.userId}`}
    ), ${rolesOf(sql)}
    select ${givenBy(sql)} from who`;
  return row;
}

/** Key of the advisory lock of changes of users and roles. */
const ACCESS_LOCK = 7_203_116;

/** Waits until no other transaction changes users or roles; held until this one ends. Reading takes no lock. */
export async function lockAccess({ sql }: Transaction): Promise<void> {
  await sql`select pg_advisory_xact_lock(${ACCESS_LOCK})`;
}

function rolesOf(sql: Database["sql"] | Transaction["sql"]) {
  return sql`role as (
    select r.role_id, r.name
    from who join auth.user_roles g using (user_id) join auth.roles r using (role_id)
    where g.is_active and r.is_active
  )`;
}

function givenBy(sql: Database["sql"] | Transaction["sql"]) {
  return sql`
    user_id::float8 as "userId", email, display_name as "displayName", issuer, subject,
    coalesce((select json_agg(name order by name) from role), '[]') as roles,
    coalesce((
      select json_agg(distinct p.name) from role join auth.role_permissions using (role_id)
        join auth.permissions p using (permission_id)
    ), '[]') as permissions,
    coalesce((
      select json_agg(${sql.unsafe(PERMISSION)} order by p.playbook_permission_id)
      from role join auth.playbook_permissions p using (role_id)
    ), '[]') as playbooks`;
}

const PERMISSION = playbookPermissionJson("role.name");

/** Moves the idle end of a session that is used: as far from now as it was from its last use, no further than its end. */
export async function touchSession({ db }: Database, sessionId: number): Promise<void> {
  await db
    .update(sessions)
    .set({
      idleExpiresAt: built`least(${sessions.expiresAt}, now() + (${sessions.idleExpiresAt} - ${sessions.lastSeenAt}))`,
      lastSeenAt: NOW,
    })
    .where(
      and(
        eq(sessions.sessionId, sessionId),
        isNull(sessions.revokedAt),
        gt(sessions.idleExpiresAt, NOW),
        lt(sessions.lastSeenAt, NOW),
      ),
    );
}

const NOW = built`now()`;

/** The subject of a call whose address names no path. */
export type Subject = { executionId: string } | { catalogId: string };

/**
 * The catalog path of an execution, of a deleted one whose results others may still refer to, of a catalog version or of a draft; undefined if there is
 * no such row. Runs with most calls of a user,
 * hence tagged SQL: the builder would take 0.06 ms more of this process.
 */
export async function findPath({ sql }: Database, subject: Subject): Promise<string | undefined> {
  const [row] =
    "executionId" in subject
      ? await sql<RowOf<typeof EXECUTION_PATH>[]>`
          select ${EXECUTION_PATH(sql)} from flow.execution where execution_id = ${subject.executionId}
          union all
          select path from flow.deleted_execution where execution_id = ${subject.executionId}
          limit 1`
      : await sql<RowOf<typeof CATALOG_PATH>[]>`
          select ${CATALOG_PATH(sql)} from flow.catalog where catalog_id = ${subject.catalogId}
          union all
          select path from flow.draft where catalog_id = ${subject.catalogId}`;
  return row?.path;
}

const EXECUTION_PATH = columnsOf(execution, ["path"]);
const CATALOG_PATH = columnsOf(catalog, ["path"]);

/** The execution that reads a result stored by another execution. */
export interface Reading {
  /** The user who started the reader; null: its access is not limited. */
  startedBy: number | null;
  /** Both are of one tree of executions, or the reader's tree is a rerun that refers to results of the other. */
  isOneTree: boolean;
  /** Catalog path of the execution whose result is read; null once that is deleted. */
  path: string | null;
}

/** Undefined where the reader is not there. */
export async function findReading({ db }: Database, readerId: string, aboutId: string): Promise<Reading | undefined> {
  const about = alias(execution, "about");
  const root = alias(execution, "root");
  const [row] = await db
    .select({
      startedBy: built<number | null>`${execution.startedBy}::float8`,
      isOneTree: built<boolean>`coalesce(${execution.rootExecutionId} = ${about.rootExecutionId}, false)
        or coalesce(${aboutId}::bigint = any(${root.refersTo}), false)`,
      path: about.path,
    })
    .from(execution)
    .leftJoin(root, eq(root.executionId, execution.rootExecutionId))
    .leftJoin(about, eq(about.executionId, aboutId))
    .where(eq(execution.executionId, readerId));
  return row;
}
