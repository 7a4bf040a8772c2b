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
import { uncoveredBy } from "../../schema/rules/access-cover.ts";
import type { ActionFlags, PathRow } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Caller } from "./audit.ts";

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

/** Who changes users and roles: for the audit log, and for what they may give. */
export interface Actor {
  caller: Caller;
  /** Absent: an operator, who may give everything. */
  user?: CallingUser;
}

/**
 * Nobody gives, or takes from others, what they do not have themselves: otherwise whoever may manage users could make
 * themselves an administrator, or log in as one. Throws `FlowError` FORBIDDEN. It is about permissions; {@link checkRows} is
 * about playbooks.
 */
export function checkReach({ user }: Actor, permissions: readonly string[], what: string): void {
  if (user === undefined) return;
  const lacking = permissions.filter((permission) => !user.permissions.includes(permission));
  if (lacking.length === 0) return;
  const why = `it takes ${lacking.join(", ")}, which ${user.email} does not have`;
  throw new FlowError("FORBIDDEN", `${what} was refused: ${why}. Ask an administrator`);
}

/**
 * Nobody gives what rows allow that their own rows do not: a row, a role that has some, or a way to log in as somebody who has
 * such a role. Taking rows away takes none. Throws `FlowError` FORBIDDEN.
 */
export function checkRows({ user }: Actor, rows: readonly (PathRow & ActionFlags)[], what: string): void {
  if (user === undefined) return;
  const found = uncoveredBy(user.playbooks, rows);
  if (found === undefined) return;
  const { action, path } = found;
  const why =
    path === undefined
      ? `its patterns are too intricate to be compared with what ${user.email} may ${action}; give simpler ones`
      : `it would allow to ${action} '${path}', which ${user.email} may not`;
  throw new FlowError("FORBIDDEN", `${what} was refused: ${why}. Ask an administrator`);
}
