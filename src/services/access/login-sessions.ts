import {
  type LoginSession,
  type LoginSessionFilter,
  type LoginSessionKey,
  listLoginSessions,
  revokeSessions,
} from "../../repositories/access/login-sessions.ts";
import type { Database } from "../../repositories/database/database.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import { encodeCursor, idCursor } from "../pagination-cursor.ts";
import type { Actor } from "./access.ts";
import { type Audit, audited } from "./audit.ts";

/** Sessions of logins. Ending one counts from the next call on. */
export interface LoginSessions {
  /** Newest first. */
  list(filter: LoginSessionFilter, page: PageQuery): Promise<Listed<LoginSession>>;
  /**
   * Ends a session, or all of a user, and gives how many. An unknown or ended session is no error: it cannot be used either
   * way. A user without the permission manage_users ends their own alone.
   */
  revoke(key: LoginSessionKey, actor: Actor): Promise<number>;
}

/** The sessions of a database. */
export function createLoginSessions({
  database,
  audit,
}: {
  database: Database;
  audit: Pick<Audit, "record">;
}): LoginSessions {
  return {
    async list(filter, { limit, cursor }) {
      const key = cursor === undefined ? {} : { cursor: idCursor(cursor) };
      const { items, next } = await listLoginSessions(database, filter, { limit, ...key });
      return { items, nextCursor: next === undefined ? null : encodeCursor(next) };
    },
    async revoke(key, { caller, user }) {
      const own = user === undefined || user.permissions.includes("manage_users") ? undefined : user.userId;
      const ended = await revokeSessions(database, key, own);
      const entries = ended.map(({ sessionId, userId }) =>
        audited(caller, "session.revoke", `session/${sessionId}`, { detail: { user_id: userId } }),
      );
      await audit.record(...entries);
      return ended.length;
    },
  };
}
