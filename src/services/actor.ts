import { FlowError } from "../schema/errors.ts";
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
 * themselves an administrator, or log in as one. Throws `FlowError` FORBIDDEN. It is about permissions; which playbooks a role
 * is for is in the hands of whoever may manage roles.
 */
export function checkReach({ user }: Actor, permissions: readonly string[], what: string): void {
  if (user === undefined) return;
  const lacking = permissions.filter((permission) => !user.permissions.includes(permission));
  if (lacking.length === 0) return;
  const why = `it takes ${lacking.join(", ")}, which ${user.email} does not have`;
  throw new FlowError("FORBIDDEN", `${what} was refused: ${why}. Ask an administrator`);
}
