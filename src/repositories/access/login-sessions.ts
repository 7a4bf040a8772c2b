import type { Database, Transaction } from "../database/database.ts";
import { type Page, type PageRequest, page } from "../database/page.ts";

/** A session, without anything that it could be used with. */
export interface LoginSession {
  sessionId: number;
  userId: number;
  email: string;
  createdAt: Date;
  lastSeenAt: Date;
  idleExpiresAt: Date;
  expiresAt: Date;
  revokedAt: Date | null;
  address: string | null;
  userAgent: string | null;
  /** It can be used: neither revoked nor over, of a user who is active. */
  isLive: boolean;
}

/** Which sessions of a list. */
export interface LoginSessionFilter {
  userId?: number;
  isLive?: boolean;
}

/** What a session is known by. */
export type LoginSessionKey = { sessionId: number } | { tokenSha256: string } | { userId: number };

/** Sessions, newest first. The cursor is a session's id. */
export async function listLoginSessions(
  { sql }: Database,
  { userId, isLive }: LoginSessionFilter,
  { limit, cursor }: PageRequest<string>,
): Promise<Page<LoginSession, string>> {
  const live = sql`(revoked_at is null and expires_at > now() and idle_expires_at > now() and u.is_active)`;
  const rows = await sql<LoginSession[]>`
    select session_id::float8 as "sessionId", user_id::float8 as "userId", u.email, s.created_at as "createdAt",
      last_seen_at as "lastSeenAt", idle_expires_at as "idleExpiresAt", expires_at as "expiresAt",
      revoked_at as "revokedAt", address, user_agent as "userAgent", ${live} as "isLive"
    from auth.sessions s join auth.users u using (user_id)
    where true
      ${cursor === undefined ? sql`` : sql`and session_id < ${cursor}`}
      ${userId === undefined ? sql`` : sql`and user_id = ${userId}`}
      ${isLive === undefined ? sql`` : sql`and ${live} = ${isLive}`}
    order by session_id desc
    limit ${limit + 1}`;
  return page(rows, limit, (last) => String(last.sessionId));
}

/**
 * Ends a session, or all of a user, or with `onlyOf` one of that user alone. Gives those that were not revoked before, with
 * whose they are.
 */
export async function revokeSessions(
  { sql }: Database | Transaction,
  key: LoginSessionKey,
  onlyOf?: number,
): Promise<{ sessionId: number; userId: number }[]> {
  const which =
    "sessionId" in key
      ? sql`session_id = ${key.sessionId}`
      : "userId" in key
        ? sql`user_id = ${key.userId}`
        : sql`token_sha256 = ${key.tokenSha256}`;
  return await sql<{ sessionId: number; userId: number }[]>`
    update auth.sessions set revoked_at = now()
    where ${which} and revoked_at is null ${onlyOf === undefined ? sql`` : sql`and user_id = ${onlyOf}`}
    returning session_id::float8 as "sessionId", user_id::float8 as "userId"`;
}

/** Deletes sessions whose end is `days` ago, at most `limit`; gives how many. */
export async function deleteOldSessions({ sql }: Database, days: number, limit: number): Promise<number> {
  const rows = await sql`
    delete from auth.sessions where session_id in (
      select session_id from auth.sessions
      where expires_at < now() - ${days}::int * interval '1 day'
      order by expires_at
      limit ${limit}
    )
    returning 1`;
  return rows.length;
}
