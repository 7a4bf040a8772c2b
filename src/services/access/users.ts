import { insertAudit } from "../../repositories/access/audit.ts";
import { revokeSessions } from "../../repositories/access/login-sessions.ts";
import { findRoles } from "../../repositories/access/roles.ts";
import {
  deleteUser,
  findUser,
  grantRoles,
  insertUser,
  listIssuers,
  listUsers,
  revokeRole,
  someoneHas,
  type UserChange,
  type UserFilter,
  type UserKey,
  type UserRow,
  updateUser,
} from "../../repositories/access/users.ts";
import type { Database, Transaction } from "../../repositories/database/database.ts";
import { violatedConstraint } from "../../repositories/database/error-codes.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import { encodeCursor, idCursor } from "../pagination-cursor.ts";
import { type Actor, administer, checkReach, checkRows } from "./access.ts";
import { audited } from "./audit.ts";

/**
 * Users who may log in, and their roles. Changes are recorded in the audit log, in the same transaction. Throws `FlowError`
 * NOT_FOUND for an unknown user, FORBIDDEN if the target user has permissions that the actor lacks.
 */
export interface Users {
  list(filter: UserFilter, page: PageQuery): Promise<Listed<UserRow>>;
  find(key: UserKey): Promise<UserRow>;
  /**
   * Without `issuer` the user is bound to the only identity provider that is known. Throws `FlowError` INVALID_INPUT where there are
   * several and neither `issuer` nor `anyIssuer` is given; CONFLICT for an address in use, NOT_FOUND for an unknown role.
   */
  add(user: AddedUser, actor: Actor): Promise<UserRow>;
  /** Deactivation ends the user's sessions. Throws `FlowError` CONFLICT for an address, or for the last administrator. */
  change(key: UserKey, change: UserChange, actor: Actor): Promise<UserRow>;
  /** With sessions and roles; what they did stays in the audit log. Throws `FlowError` CONFLICT for the last administrator. */
  remove(key: UserKey, actor: Actor): Promise<UserRow>;
  /** Throws `FlowError` NOT_FOUND for an unknown role. */
  grant(key: UserKey, role: string, actor: Actor): Promise<UserRow>;
  /** A role that the user does not have is no error. Throws `FlowError` CONFLICT for the last administrator. */
  revoke(key: UserKey, role: string, actor: Actor): Promise<UserRow>;
}

/** A user before their first login. */
export interface AddedUser {
  email: string;
  displayName: string;
  roles: readonly string[];
  /** Who alone may vouch for the address. */
  issuer?: string;
  /** The first provider that vouches for the address gets the user. */
  anyIssuer?: boolean;
}

/** The users of a database. `issuers`: of the identity providers in the settings; those of earlier logins where there are none. */
export function createUsers({ database, issuers }: { database: Database; issuers: readonly string[] }): Users {
  const find = async (key: UserKey) => {
    const user = await findUser(database, key);
    if (user === undefined) throw unknownUser(key);
    return user;
  };
  const again = async ({ userId }: UserRow) => await find({ userId });

  return {
    async list(filter, { limit, cursor }) {
      const key = cursor === undefined ? {} : { cursor: idCursor(cursor) };
      const { items, next } = await listUsers(database, filter, { limit, ...key });
      return { items, nextCursor: next === undefined ? null : encodeCursor(next) };
    },
    find,
    async add({ email, displayName, roles, ...given }, asking) {
      const issuer = await issuerFor(database, email, given, issuers);
      const userId = await administer(database, asking, "manage_users", async (tx, actor) => {
        await checkRoles(tx, roles, actor);
        const id = await insertUser(tx, { email, displayName, ...defined({ issuer }) });
        if (id === undefined) throw taken(email);
        await grantRoles(tx, id, roles, actor.user?.userId ?? null);
        const detail = { user_id: id, roles: [...roles], ...defined({ issuer }) };
        await insertAudit(tx, [audited(actor.caller, "user.create", `user/${email}`, { detail })]);
        return id;
      });
      return await find({ userId });
    },
    async change(key, change, actor) {
      const detail = { ...change };
      try {
        const update = async (tx: Transaction, { userId }: UserRow) => {
          await updateUser(tx, userId, change);
          if (change.isActive === false) await revokeSessions(tx, { userId });
        };
        const opens = change.email !== undefined || change.isActive === true;
        return await again(await changeUser(database, key, actor, ["user.update", detail], update, opens));
      } catch (error) {
        if (violatedConstraint(error) === "users_email") throw taken(change.email ?? "");
        throw error;
      }
    },
    remove: async (key, actor) =>
      await changeUser(database, key, actor, ["user.delete", {}], (tx, { userId }) => deleteUser(tx, userId)),
    async grant(key, role, asking) {
      const give = async (tx: Transaction, { userId }: UserRow, actor: Actor) => {
        await checkRoles(tx, [role], actor);
        await grantRoles(tx, userId, [role], actor.user?.userId ?? null);
      };
      return await again(await changeUser(database, key, asking, ["user.grant", { role }], give));
    },
    revoke: async (key, role, actor) =>
      await again(
        await changeUser(database, key, actor, ["user.revoke", { role }], (tx, { userId }) =>
          revokeRole(tx, userId, role),
        ),
      ),
  };
}

/** Most providers that an error names. */
const ISSUERS_NAMED_MAX = 10;

/** The provider that the user is bound to: another one that vouches for the address does not give their roles. */
async function issuerFor(
  database: Database,
  email: string,
  { issuer, anyIssuer = false }: Pick<AddedUser, "issuer" | "anyIssuer">,
  configured: readonly string[],
): Promise<string | undefined> {
  if (issuer !== undefined && anyIssuer)
    throw new FlowError(
      "INVALID_INPUT",
      `${email} is bound to one identity provider or to none: issuer, or any_issuer`,
    );
  if (issuer !== undefined || anyIssuer) return issuer;
  const known = configured.length > 0 ? configured : await listIssuers(database, ISSUERS_NAMED_MAX);
  if (known.length <= 1) return known[0];
  const named = known.slice(0, ISSUERS_NAMED_MAX).join(", ");
  const remedy = "issuer (--issuer) names it, any_issuer (--any-issuer) takes the first one that does";
  throw new FlowError(
    "INVALID_INPUT",
    `Which identity provider may vouch for ${email}? It is one of ${named}: ${remedy}`,
  );
}

/**
 * One change of a user that the actor may reach, and its row in the audit log, or neither. `opens`: it may let a person log in
 * who could not before.
 */
async function changeUser(
  database: Database,
  key: UserKey,
  asking: Actor,
  [action, detail]: readonly [action: string, detail: JsonObject],
  work: (tx: Transaction, user: UserRow, actor: Actor) => Promise<unknown>,
  opens = false,
): Promise<UserRow> {
  return await administer(database, asking, "manage_users", async (tx, actor) => {
    const user = await findUser(tx, key);
    if (user === undefined) throw unknownUser(key);
    const roles = await findRoles(
      tx,
      user.roles.map(({ role }) => role),
    );
    const active = new Set(user.roles.filter(({ isActive }) => isActive).map(({ role }) => role));
    const held = roles.filter(({ name }) => active.has(name)).flatMap(({ permissions }) => permissions);
    checkReach(actor, held, `To change ${user.email}`);
    // The owner of an address logs in as its user, and a reactivated user has their old rights; inactive roles may be switched on.
    const rows = opens ? roles.flatMap(({ playbooks }) => playbooks) : [];
    checkRows(actor, rows, `To change ${user.email}`);
    await work(tx, user, actor);
    await checkAdministrated(tx, user, held);
    const about = { detail: { user_id: user.userId, ...detail } };
    await insertAudit(tx, [audited(actor.caller, action, `user/${user.email}`, about)]);
    return user;
  });
}

async function checkRoles(tx: Transaction, names: readonly string[], actor: Actor): Promise<void> {
  const roles = await findRoles(tx, names);
  const unknown = names.find((name) => !roles.some((role) => role.name === name));
  if (unknown !== undefined) throw new FlowError("NOT_FOUND", `There is no role '${unknown}'`);
  for (const { name, permissions, playbooks } of roles) {
    checkReach(actor, permissions, `To give the role '${name}'`);
    checkRows(actor, playbooks, `To give the role '${name}'`);
  }
}

/** At least one user must keep the right to manage users: otherwise only an operator could give it again. */
async function checkAdministrated(tx: Transaction, { email }: UserRow, held: readonly string[]): Promise<void> {
  if (!held.includes(ADMINISTRATES) || (await someoneHas(tx, ADMINISTRATES))) return;
  const message = `${email} is the last user who may manage users. Give another user a role with ${ADMINISTRATES} first`;
  throw new FlowError("CONFLICT", message);
}

const ADMINISTRATES = "manage_users";

function unknownUser(key: UserKey): FlowError {
  return new FlowError("NOT_FOUND", `There is no user ${"userId" in key ? key.userId : key.email}`);
}

function taken(email: string): FlowError {
  return new FlowError("CONFLICT", `A user with the address ${email} already exists`);
}
