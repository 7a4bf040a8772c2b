import { and, asc, sql as built, desc, eq, getTableColumns, inArray, isNull } from "drizzle-orm";
import type { Database, Transaction } from "../database/database.ts";
import { type Page, type PageRequest, page } from "../database/page.ts";
import { sessions, users } from "../tables/auth.ts";

/** A session, without anything that it could be used with. */
export interface LoginSession extends Omit<typeof sessions.$inferSelect, "tokenSha256"> {
  email: string;
  /** Usable: neither revoked nor expired, of an active user. */
  isLive: boolean;
}

/** Which sessions of a list. */
export interface LoginSessionFilter {
  userId?: number;
  isLive?: boolean;
}

/** The key of one session, or of all of a user. */
export type LoginSessionKey = { sessionId: number } | { tokenSha256: string } | { userId: number };

/** Sessions, newest first. The cursor is a session's id. */
export async function listLoginSessions(
  { db }: Database,
  { userId, isLive }: LoginSessionFilter,
  { limit, cursor }: PageRequest<string>,
): Promise<Page<LoginSession, string>> {
  const { tokenSha256: _, ...columns } = getTableColumns(sessions);
  const rows = await db
    .select({ ...columns, email: users.email, isLive: IS_LIVE })
    .from(sessions)
    .innerJoin(users, eq(users.userId, sessions.userId))
    .where(
      and(
        cursor === undefined ? undefined : built`${sessions.sessionId} < ${cursor}`,
        userId === undefined ? undefined : eq(sessions.userId, userId),
        isLive === undefined ? undefined : eq(IS_LIVE, isLive),
      ),
    )
    .orderBy(desc(sessions.sessionId))
    .limit(limit + 1);
  return page(rows, limit, (last) => String(last.sessionId));
}

const IS_LIVE = built<boolean>`(${sessions.revokedAt} is null and ${sessions.expiresAt} > now()
  and ${sessions.idleExpiresAt} > now() and ${users.isActive})`;

/**
 * Ends a session, or all of a user, or with `onlyOf` one of that user alone. Gives those that were not revoked before, with
 * their users.
 */
export async function revokeSessions(
  { db }: Database | Transaction,
  key: LoginSessionKey,
  onlyOf?: number,
): Promise<{ sessionId: number; userId: number }[]> {
  const isMeant =
    "sessionId" in key
      ? eq(sessions.sessionId, key.sessionId)
      : "userId" in key
        ? eq(sessions.userId, key.userId)
        : eq(sessions.tokenSha256, key.tokenSha256);
  return await db
    .update(sessions)
    .set({ revokedAt: built`now()` })
    .where(and(isMeant, isNull(sessions.revokedAt), onlyOf === undefined ? undefined : eq(sessions.userId, onlyOf)))
    .returning({ sessionId: sessions.sessionId, userId: sessions.userId });
}

/** Deletes sessions that ended `days` ago, at most `limit`; gives how many. */
export async function deleteOldSessions({ db }: Database, days: number, limit: number): Promise<number> {
  const old = db
    .select({ sessionId: sessions.sessionId })
    .from(sessions)
    .where(built`${sessions.expiresAt} < now() - ${days}::int * interval '1 day'`)
    .orderBy(asc(sessions.expiresAt))
    .limit(limit);
  const rows = await db
    .delete(sessions)
    .where(inArray(sessions.sessionId, old))
    .returning({ sessionId: sessions.sessionId });
  return rows.length;
}
