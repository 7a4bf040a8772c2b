import {
  findPath,
  findSessionAccess,
  findUserAccess,
  lockAccess,
  type SessionAccess,
  type Subject,
  touchSession,
  type UserAccess,
} from "../../repositories/access/access.ts";
import { type Database, type Transaction, transaction } from "../../repositories/database/database.ts";
import { uncoveredBy } from "../../schema/rules/access-cover.ts";
import type { ActionFlags, PathRow, Permission } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Caller } from "./audit.ts";

/** A user whose session a call came with. */
export type CallingUser = SessionAccess;

/** Users, roles and permissions. Each call queries the database; nothing is cached. */
export interface Access {
  /**
   * The user of the session with this token hash (SHA-256, hex) and their permissions; undefined if there is no such session,
   * it has expired or been revoked, or the user is inactive. A use extends the session's idle end shortly afterwards.
   */
  session(tokenSha256: string): Promise<CallingUser | undefined>;
  /** The same for a user without a session, by id or address; undefined if the user is inactive. */
  user(user: { userId: number | string } | { email: string }): Promise<UserAccess | undefined>;
  /** The catalog path that an id is about; undefined for an id of nothing. */
  pathOf(subject: Subject): Promise<string | undefined>;
}

/** What {@link createAccess} needs. */
export interface AccessDeps {
  database: Database;
  /** Called when the use of a session could not be written. */
  onFault(error: unknown): void;
}

/** Access by the users and roles of a database. */
export function createAccess({ database, onFault }: AccessDeps): Access {
  return {
    async session(tokenSha256) {
      const found = await findSessionAccess(database, tokenSha256);
      // Not awaited: if it is lost, the session's idle end comes a minute early at worst.
      if (found?.isUntouched === true) void touchSession(database, found.sessionId).catch(onFault);
      return found;
    },
    user: (user) => findUserAccess(database, user),
    pathOf: (subject) => findPath(database, subject),
  };
}

/** The caller who changes users and roles: recorded in the audit log, and limited to granting what they have. */
export interface Actor {
  caller: Caller;
  /** Absent: an operator, who may grant everything. */
  user?: CallingUser;
}

/**
 * Runs a change of users or roles while no other one runs, with the actor's rights as they are then: of two administrators who
 * take each other's rights at the same moment one succeeds. Throws `FlowError` FORBIDDEN if the actor has lost the permission
 * that the change takes.
 */
export async function administer<T>(
  database: Database,
  { caller, user }: Actor,
  permission: Permission,
  work: (tx: Transaction, actor: Actor) => Promise<T>,
): Promise<T> {
  return await transaction(database, async (tx) => {
    await lockAccess(tx);
    if (user === undefined) return await work(tx, { caller });
    const now = await findUserAccess(tx, user);
    if (now?.permissions.includes(permission) !== true) {
      throw new FlowError(
        "FORBIDDEN",
        `${user.email} no longer has the permission ${permission}. Ask an administrator`,
      );
    }
    return await work(tx, { caller, user: { ...user, ...now } });
  });
}

/**
 * A user can give, or take from others, only permissions that they have: otherwise a manager of users could make
 * themselves an administrator, or log in as one. Throws `FlowError` FORBIDDEN. {@link checkRows} is the same check for
 * playbooks.
 */
export function checkReach({ user }: Actor, permissions: readonly string[], what: string): void {
  if (user === undefined) return;
  const lacking = permissions.filter((permission) => !user.permissions.includes(permission));
  if (lacking.length === 0) return;
  const why = `it takes ${lacking.join(", ")}, which ${user.email} does not have`;
  throw new FlowError("FORBIDDEN", `${what} was refused: ${why}. Ask an administrator`);
}

/**
 * A user may grant only permissions that their own cover: directly, by a role with permissions, or by letting a person log in
 * as a user with such a role. Revoking needs none. Throws `FlowError` FORBIDDEN.
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
