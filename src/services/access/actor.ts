import { uncoveredBy } from "../../schema/rules/access-cover.ts";
import type { ActionFlags, PathRow } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { CallingUser } from "./access.ts";
import type { Caller } from "./audit.ts";

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
