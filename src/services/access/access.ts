import {
  findPath,
  findSessionAccess,
  findUserAccess,
  type SessionAccess,
  type Subject,
  touchSession,
  type UserAccess,
} from "../../repositories/access/access.ts";
import type { Database } from "../../repositories/database/database.ts";

/** A user whose session a call came with. */
export type CallingUser = SessionAccess;

/** Who may do what, asked of the database each time: nothing here is remembered. */
export interface Access {
  /**
   * Whose session the token with this SHA-256 (hex) is, and what they may do; undefined where it is none, is over or revoked,
   * or its user is not active. Its use moves its idle end, soon.
   */
  session(tokenSha256: string): Promise<CallingUser | undefined>;
  /** The same for a user without a session, by id or address; undefined for one who is not active. */
  user(user: { userId: number | string } | { email: string }): Promise<UserAccess | undefined>;
  /** The catalog path that an id is about; undefined for an id of nothing. */
  pathOf(subject: Subject): Promise<string | undefined>;
}

/** What {@link createAccess} needs. */
export interface AccessDeps {
  database: Database;
  /** Told when the use of a session could not be written. */
  onFault(error: unknown): void;
}

/** Access by the users and roles of a database. */
export function createAccess({ database, onFault }: AccessDeps): Access {
  return {
    async session(tokenSha256) {
      const found = await findSessionAccess(database, tokenSha256);
      // Nobody waits for it: the worst that comes of losing it is an idle end that is a minute early.
      if (found?.isUntouched === true) void touchSession(database, found.sessionId).catch(onFault);
      return found;
    },
    user: (user) => findUserAccess(database, user),
    pathOf: (subject) => findPath(database, subject),
  };
}
