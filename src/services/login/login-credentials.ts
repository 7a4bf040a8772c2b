import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { CALLBACK_CREDENTIAL } from "../../platform/crypto/callback-token.ts";
import { scramVerifier } from "../../platform/crypto/scram-verifier.ts";
import {
  authAccountName,
  findAuthAccount,
  grantAuthSchema,
  lacksRight,
  lockAuthAccount,
  writeAuthAccount,
} from "../../repositories/access/auth-database-account.ts";
import { type Database, transaction } from "../../repositories/database/database.ts";
import type { CredentialType } from "../../schema/rules/credential-types.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type JsonObject, own } from "../../schema/words/json.ts";
import { SYSTEM } from "../access/audit.ts";
import type { Credentials } from "../credentials/credentials.ts";

/** Playbooks that the credentials of logins are given to, and no others. */
const META: JsonObject = { managed_by: "flow", playbooks: ["api_integration/**"] };
const SECRET_BYTES = 32;

/** The address of the service's database, as tasks get it. */
export interface DatabaseAddress {
  host: string;
  port: number;
  database: string;
  sslmode?: string;
}

/**
 * What became of a credential: `made` now, or made anew for another address; `kept`; an administrator's `own`, which is left
 * alone; or no account, because the database has one of that name which is not ours (`foreign`), or the service may
 * make none (`refused`).
 */
export type LoginCredential = "made" | "kept" | "own" | "foreign" | "refused";

/** What the functions here need. */
export interface LoginCredentialsDeps {
  database: Database;
  credentials: Pick<Credentials, "find" | "read" | "save">;
}

/** An existing account for the playbooks of logins: the embedded PostgreSQL has one from the start. */
export interface GivenAccount {
  user: string;
  password: string;
}

/**
 * The credential `pg_auth` for an account that is there: it is stored, and the account may touch schema `auth`. Throws what the
 * database throws.
 */
export async function storeAuthCredential(
  deps: LoginCredentialsDeps,
  address: DatabaseAddress,
  account: GivenAccount,
): Promise<LoginCredential> {
  return await transaction(deps.database, async (tx) => {
    await lockAuthAccount(tx);
    const known = await readManaged(deps, "pg_auth");
    if (known === "own") return "own";
    if ((await findAuthAccount(tx, account.user)) !== "ours") return "foreign";
    await grantAuthSchema(tx, account.user);
    const data: JsonObject = { ...address, ...account };
    if (known !== undefined && isDeepStrictEqual({ ...known }, data)) return "kept";
    await saveAuthCredential(deps, data);
    return "made";
  });
}

/**
 * The credential `pg_auth` (interface specification, Credential): an account of the service's database that may touch schema
 * `auth` alone. Its password is random, and known to the credential only.
 */
export async function ensureAuthCredential(
  deps: LoginCredentialsDeps,
  address: DatabaseAddress,
): Promise<LoginCredential> {
  const stored = await readManaged(deps, "pg_auth");
  if (stored === "own") return "own";
  try {
    return await transaction(deps.database, async (tx) => {
      await lockAuthAccount(tx);
      const user = await authAccountName(tx);
      const state = await findAuthAccount(tx, user);
      if (state === "foreign") return "foreign";
      // Again under the lock: another server may have made it meanwhile.
      const known = await readManaged(deps, "pg_auth");
      if (known === "own") return "own";
      const isSame = known !== undefined && own(known, "user") === user && typeof own(known, "password") === "string";
      const password = isSame ? String(own(known, "password")) : randomBytes(SECRET_BYTES).toString("base64url");
      const data: JsonObject = { ...address, user, password };
      const isKept = known !== undefined && isDeepStrictEqual({ ...known }, data);
      if (!isKept || state === "absent") {
        await writeAuthAccount(tx, { name: user, verifier: scramVerifier(password) }, state);
      }
      await grantAuthSchema(tx, user);
      if (isKept) return "kept";
      // By another connection: if this transaction comes to nothing, the next start finds a password without an account.
      await saveAuthCredential(deps, data);
      return "made";
    });
  } catch (error) {
    if (lacksRight(error)) return "refused";
    throw error;
  }
}

/** The credential `nats_credential`: the broker at this address, where sessions are cached. */
export async function ensureBrokerCredential(deps: LoginCredentialsDeps, url: string): Promise<LoginCredential> {
  const stored = await readManaged(deps, "nats_credential");
  if (stored === "own") return "own";
  if (stored !== undefined && own(stored, "url") === url) return "kept";
  await save(deps, "nats_credential", "broker", { url }, "The broker, for the cache of sessions");
  return "made";
}

/** The credential by which the gateway knows that an answer comes from a playbook of logins. */
export async function ensureCallbackCredential(deps: LoginCredentialsDeps, token: string): Promise<LoginCredential> {
  const stored = await readManaged(deps, CALLBACK_CREDENTIAL);
  if (stored === "own") return "own";
  if (stored !== undefined && own(stored, "token") === token) return "kept";
  await save(deps, CALLBACK_CREDENTIAL, "bearer", { token }, "Answers of playbooks of logins to the gateway");
  return "made";
}

/** The data of a credential that this program made; undefined if it does not exist or can no longer be decrypted. */
async function readManaged(
  { credentials }: LoginCredentialsDeps,
  name: string,
): Promise<JsonObject | "own" | undefined> {
  try {
    const { meta } = await credentials.find(name);
    if (meta === null || own(meta, "managed_by") !== META["managed_by"]) return "own";
    return (await credentials.read(name, SYSTEM)).data;
  } catch (error) {
    if (error instanceof FlowError && (error.code === "NOT_FOUND" || error.code === "ENCRYPTION")) return undefined;
    throw error;
  }
}

function saveAuthCredential(deps: LoginCredentialsDeps, data: JsonObject): Promise<void> {
  return save(deps, "pg_auth", "sqldb", data, "Rows of schema auth, for the playbooks of logins");
}

async function save(
  { credentials }: LoginCredentialsDeps,
  name: string,
  type: CredentialType,
  data: JsonObject,
  description: string,
): Promise<void> {
  await credentials.save({ name, type, data, description, meta: META }, SYSTEM);
}
