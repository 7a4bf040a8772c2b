import { insertAudit } from "../../repositories/access/audit.ts";
import {
  deletePlaybookPermission,
  deleteRole,
  findRole,
  insertPlaybookPermission,
  insertRole,
  listPermissions,
  listRoles,
  type NewPlaybookPermission,
  type PermissionRow,
  type RoleChange,
  type RoleRow,
  updateRole,
} from "../../repositories/access/roles.ts";
import type { Database, Transaction } from "../../repositories/database/database.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import { encodeCursor, textCursor } from "../pagination-cursor.ts";
import { type Actor, administer, checkReach, checkRows } from "./access.ts";
import { audited } from "./audit.ts";

/**
 * Roles, and what they give. Changes are recorded in the audit log, in the same transaction, and take effect with each user's
 * next call. Throws `FlowError` NOT_FOUND for an unknown role, FORBIDDEN for a role that gives more than the actor has.
 */
export interface Roles {
  list(page: PageQuery): Promise<Listed<RoleRow>>;
  find(name: string): Promise<RoleRow>;
  /** The global permissions. */
  permissions(page: PageQuery): Promise<Listed<PermissionRow>>;
  /** Throws `FlowError` CONFLICT for a name in use, NOT_FOUND for an unknown permission. */
  add(role: RoleChange & { name: string; playbooks: readonly NewPlaybookPermission[] }, actor: Actor): Promise<RoleRow>;
  /** Throws `FlowError` CONFLICT for {@link KEPT_ROLE}, which stays what it is. */
  change(name: string, change: RoleChange, actor: Actor): Promise<RoleRow>;
  /** Also from its users. Throws `FlowError` CONFLICT for {@link KEPT_ROLE}. */
  remove(name: string, actor: Actor): Promise<void>;
  /** Gives the id of the permission. */
  allow(name: string, permission: NewPlaybookPermission, actor: Actor): Promise<string>;
  /** Throws `FlowError` NOT_FOUND for a permission that the role does not have, CONFLICT for {@link KEPT_ROLE}. */
  disallow(name: string, permissionId: string, actor: Actor): Promise<void>;
}

/** The role that allows everything: it can be given and taken, but not changed. */
export const KEPT_ROLE = "admin";

/** The roles of a database. */
export function createRoles({ database }: { database: Database }): Roles {
  const find = async (name: string) => {
    const role = await findRole(database, name);
    if (role === undefined) throw unknownRole(name);
    return role;
  };
  return {
    async list({ limit, cursor }) {
      const key = cursor === undefined ? {} : { cursor: textCursor(cursor) };
      const { items, next } = await listRoles(database, { limit, ...key });
      return { items, nextCursor: next === undefined ? null : encodeCursor(next) };
    },
    find,
    async permissions({ limit, cursor }) {
      const key = cursor === undefined ? {} : { cursor: textCursor(cursor) };
      const { items, next } = await listPermissions(database, { limit, ...key });
      return { items, nextCursor: next === undefined ? null : encodeCursor(next) };
    },
    async add({ name, playbooks, ...change }, asking) {
      await administer(database, asking, "manage_roles", async (tx, actor) => {
        await checkPermissions(tx, change.permissions ?? [], actor);
        checkRows(actor, playbooks, `To add the role '${name}'`);
        if (!(await insertRole(tx, name))) throw new FlowError("CONFLICT", `A role '${name}' already exists`);
        await updateRole(tx, name, change);
        for (const permission of playbooks) await insertPlaybookPermission(tx, name, permission);
        const detail = detailOf({ ...change, playbooks });
        await insertAudit(tx, [audited(actor.caller, "role.create", `role/${name}`, { detail })]);
      });
      return await find(name);
    },
    async change(name, change, asking) {
      // Switched on, it gives its rows to its users.
      const given = ({ isActive, playbooks }: RoleRow) => (change.isActive === true && !isActive ? playbooks : []);
      const update = async (tx: Transaction, actor: Actor) => {
        await checkPermissions(tx, change.permissions ?? [], actor);
        await updateRole(tx, name, change);
      };
      await changeRole(database, name, asking, ["role.update", detailOf(change)], update, given);
      return await find(name);
    },
    remove: async (name, actor) =>
      void (await changeRole(database, name, actor, ["role.delete", {}], (tx) => deleteRole(tx, name))),
    async allow(name, permission, actor) {
      const insert = (tx: Transaction) => insertPlaybookPermission(tx, name, permission);
      const id = await changeRole(database, name, actor, ["role.allow", detailOf(permission)], insert, () => [
        permission,
      ]);
      if (id === undefined) throw unknownRole(name);
      return id;
    },
    async disallow(name, permissionId, actor) {
      await changeRole(database, name, actor, ["role.disallow", { permission_id: permissionId }], async (tx) => {
        if (await deletePlaybookPermission(tx, name, permissionId)) return;
        throw new FlowError("NOT_FOUND", `The role '${name}' has no permission ${permissionId} on playbooks`);
      });
    },
  };
}

/** One change of a role that the actor may reach, and its row in the audit log, or neither. `given`: rows that it gives. */
async function changeRole<T>(
  database: Database,
  name: string,
  asking: Actor,
  [action, detail]: readonly [action: string, detail: JsonObject],
  work: (tx: Transaction, actor: Actor) => Promise<T>,
  given: (role: RoleRow) => Parameters<typeof checkRows>[1] = () => [],
): Promise<T> {
  return await administer(database, asking, "manage_roles", async (tx, actor) => {
    const role = await findRole(tx, name);
    if (role === undefined) throw unknownRole(name);
    if (name === KEPT_ROLE) throw new FlowError("CONFLICT", `The role '${name}' stays as it is. Add another role`);
    checkReach(actor, role.permissions, `To change the role '${name}'`);
    checkRows(actor, given(role), `To change the role '${name}'`);
    const done = await work(tx, actor);
    await insertAudit(tx, [audited(actor.caller, action, `role/${name}`, { detail })]);
    return done;
  });
}

/** More permissions than a program ever asks for. */
const PERMISSIONS_MAX = 1_000;

async function checkPermissions(tx: Transaction, names: readonly string[], actor: Actor): Promise<void> {
  const { items: known } = await listPermissions(tx, { limit: PERMISSIONS_MAX });
  const unknown = names.find((name) => !known.some((one) => one.name === name));
  if (unknown !== undefined) {
    const those = known.map(({ name }) => name).join(", ");
    throw new FlowError("NOT_FOUND", `There is no permission '${unknown}'; there are ${those}`);
  }
  checkReach(actor, names, "To give these permissions");
}

function unknownRole(name: string): FlowError {
  return new FlowError("NOT_FOUND", `There is no role '${name}'`);
}

/** A role's new rights for the audit log: plain texts, flags and lists. */
function detailOf(change: object): JsonObject {
  return JSON.parse(JSON.stringify(change)) as JsonObject;
}
