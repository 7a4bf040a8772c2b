import type { KeyRing } from "../../platform/crypto/key-ring.ts";
import { findPath } from "../../repositories/access/access.ts";
import {
  type CredentialKey,
  type CredentialRow,
  deleteCredential,
  type EncryptedCredential,
  findCredential,
  findCredentialId,
  insertCredential,
  listCredentials,
  type NewCredential,
  readCredential,
  replaceCredential,
} from "../../repositories/credentials/credentials.ts";
import type { Database } from "../../repositories/database/database.ts";
import { reserveIds } from "../../repositories/database/ids.ts";
import { matchesPattern } from "../../schema/rules/access-rules.ts";
import { type CredentialType, credentialProblems } from "../../schema/rules/credential-types.ts";
import { type SecretSchema, secretRefused } from "../../schema/rules/secret-schema.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type JsonObject, own } from "../../schema/words/json.ts";
import { type Audit, audited, type Caller, inAuditLog } from "../access/audit.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import { encodeCursor, textCursor } from "../pagination-cursor.ts";
import { listCredentialUsers } from "./usages.ts";

/** A credential as it is to be kept. What is left out is empty: a replacement replaces. */
export interface CredentialContent {
  name: string;
  type: CredentialType;
  data: JsonObject;
  description?: string | null;
  tags?: readonly string[] | null;
  schema?: SecretSchema | null;
  meta?: JsonObject | null;
}

/** Named, encrypted, typed credentials (interface specification, Credential). What is done with one is in the audit log. */
export interface Credentials {
  /**
   * Creates, or replaces by name. Throws `FlowError` INVALID_SECRET with every message when the data lack what the type needs,
   * or violate the schema: nothing is kept then.
   */
  save(content: CredentialContent, caller: Caller): Promise<{ record: CredentialRow; created: boolean }>;
  /** By id or name, without data. Throws `FlowError` NOT_FOUND. */
  find(identifier: string): Promise<CredentialRow>;
  /**
   * By id or name, decrypted. Throws `FlowError` NOT_FOUND, ENCRYPTION, and what {@link checkCredentialUse} throws; each call is
   * in the audit log.
   */
  read(identifier: string, caller: Caller, use?: CredentialUse): Promise<{ record: CredentialRow; data: JsonObject }>;
  /** In the order of names, without data. `q` is a text in name, description or a tag. */
  list(page: PageQuery & { type?: string; tag?: string; q?: string }): Promise<Listed<CredentialRow>>;
  /** What names it in the catalog. */
  users: ReturnType<typeof listCredentialUsers>;
  /** Throws `FlowError` NOT_FOUND. */
  remove(name: string, caller: Caller): Promise<void>;
  /** Stores it unless one of that name exists; false if it does. Throws as {@link save} does. */
  addAbsent(content: CredentialContent, caller: Caller): Promise<boolean>;
}

/** What {@link createCredentials} needs. */
export interface CredentialsDeps {
  database: Database;
  keys: KeyRing;
  audit: Pick<Audit, "record">;
}

/** The credentials of a database. */
export function createCredentials(deps: CredentialsDeps): Credentials {
  const { database } = deps;
  return {
    save: (content, caller) => save(deps, content, caller),
    async find(identifier) {
      const row = await findCredential(database, keyOf(identifier));
      if (row === undefined) throw unknownCredential(identifier);
      return row;
    },
    read: (identifier, caller, use = {}) => read(deps, identifier, caller, use),
    async list({ cursor, ...rest }) {
      const after = cursor === undefined ? {} : { cursor: textCursor(cursor) };
      const page = await listCredentials(database, { ...rest, ...after });
      return { items: page.items, nextCursor: page.next === undefined ? null : encodeCursor(page.next) };
    },
    users: listCredentialUsers(database),
    async remove(name, caller) {
      const entry = audited(caller, "credential.delete", resourceOf(name));
      if (isStorable(name) && (await deleteCredential(database, name, entry))) return;
      throw unknownCredential(name);
    },
    addAbsent: (content, caller) => addAbsent(deps, content, caller),
  };
}

/** Associated data of the encryption: it keeps a row's data from being moved to another row. */
export function credentialBound(name: string, id: string): string {
  return `credential:${id}:${name}`;
}

/** A credential that was deleted or made in between sends this round again; more than a few times is a fault. */
const ROUNDS_MAX = 5;

async function save(deps: CredentialsDeps, content: CredentialContent, caller: Caller) {
  checkCredentialContent(content);
  const { database, keys } = deps;
  const { name } = content;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    // The id is part of the associated data, so it is chosen before encryption.
    const known = await findCredentialId(database, name);
    const row = rowOf(content, known ?? (await newId(database)), keys);
    const created = known === undefined;
    const entry = audited(caller, created ? "credential.create" : "credential.replace", resourceOf(name));
    const record = created
      ? await insertCredential(database, row, entry)
      : await replaceCredential(database, row, entry);
    if (record !== undefined) return { record, created };
  }
  throw new FlowError("UNAVAILABLE", `The credential '${name}' is being changed by others all the time. Try again`);
}

async function addAbsent({ database, keys }: CredentialsDeps, content: CredentialContent, caller: Caller) {
  checkCredentialContent(content);
  if ((await findCredentialId(database, content.name)) !== undefined) return false;
  const row = rowOf(content, await newId(database), keys);
  const entry = audited(caller, "credential.create", resourceOf(content.name));
  return (await insertCredential(database, row, entry)) !== undefined;
}

async function read(
  { database, keys, audit }: CredentialsDeps,
  identifier: string,
  caller: Caller,
  use: CredentialUse,
) {
  const row = await readCredential(database, keyOf(identifier));
  // The audit log is searched by a credential's name.
  const resource = resourceOf(row?.name ?? identifier);
  const who = { ...caller, ...defined({ executionId: use.executionId }) };
  // One row, when it is decided: before the data are given out.
  const tell = async (result: AuditEntry["result"], detail?: JsonObject) =>
    await audit.record(audited(who, "credential.read", resource, { result, ...defined({ detail }) }));
  if (row === undefined) {
    await tell("error", { reason: "not found" });
    throw unknownCredential(identifier);
  }
  const { dataEncrypted, ...record } = row;
  try {
    await checkCredentialUse(database, row, use, caller.actorKind === "worker");
  } catch (error) {
    await tell("deny", { reason: "other playbooks", execution_id: use.executionId ?? null });
    throw inAuditLog(error);
  }
  let data: JsonObject;
  try {
    data = decrypted(keys, row);
  } catch (error) {
    await tell("error", { reason: "not decrypted", key_id: keys.keyIdOf(dataEncrypted) ?? null });
    throw error;
  }
  await tell("allow");
  return { record, data };
}

function decrypted(keys: KeyRing, { id, name, dataEncrypted }: EncryptedCredential): JsonObject {
  try {
    const plain = keys.decrypt(dataEncrypted, credentialBound(name, id)).toString("utf8");
    return JSON.parse(plain) as JsonObject;
  } catch (error) {
    if (!(error instanceof FlowError)) throw error;
    throw new FlowError(error.code, `Cannot read the credential '${name}': ${error.message}`, { cause: error });
  }
}

/** Throws `FlowError` INVALID_SECRET, with every message, for data that lack what the type needs or violate the schema. */
export function checkCredentialContent({ type, data, schema }: CredentialContent): void {
  const problems = credentialProblems(type, data, schema ?? {});
  if (problems.length > 0) throw secretRefused(problems);
}

function rowOf(content: CredentialContent, id: string, keys: KeyRing): NewCredential {
  const { name, type, data, description = null, tags, schema, meta = null } = content;
  return {
    id,
    name,
    type,
    description,
    tags: [...new Set(tags ?? [])],
    schema: schema == null ? null : { ...schema },
    meta,
    dataEncrypted: keys.encrypt(JSON.stringify(data), credentialBound(name, id)),
  };
}

async function newId(database: Database): Promise<string> {
  const [id] = await reserveIds(database, 1);
  if (id === undefined) throw new FlowError("INTERNAL", "no id was reserved");
  return id;
}

function keyOf(identifier: string): CredentialKey {
  if (!isStorable(identifier)) throw unknownCredential(identifier);
  const isId = /^[1-9]\d{0,15}$/.test(identifier) && Number(identifier) <= Number.MAX_SAFE_INTEGER;
  return { name: identifier, id: isId ? identifier : undefined };
}

/** PostgreSQL refuses the question whether a name with U+0000 exists. It does not. */
function isStorable(name: string): boolean {
  return !name.includes("\u0000");
}

function resourceOf(identifier: string): string {
  return `credential/${identifier}`;
}

function unknownCredential(identifier: string): FlowError {
  return new FlowError("NOT_FOUND", `There is no credential '${identifier}'`);
}

/** What a credential is asked for. */
export interface CredentialUse {
  /** The execution whose task needs it. */
  executionId?: string;
}

/**
 * Throws `FlowError` FORBIDDEN if a credential is limited to certain playbooks and the execution runs another. `playbooks` in
 * its `meta` lists their paths as patterns, so that the service's own accounts are not available to every author of a playbook.
 * A worker names the execution it asks for; an operator need not.
 */
export async function checkCredentialUse(
  database: Database,
  { name, meta }: { name: string; meta: JsonObject | null },
  { executionId }: CredentialUse,
  isWorker: boolean,
): Promise<void> {
  const patterns = meta === null ? undefined : own(meta, "playbooks");
  if (patterns === undefined || patterns === null || (executionId === undefined && !isWorker)) return;
  const path = executionId === undefined ? undefined : await findPath(database, { executionId });
  // A malformed list allows no playbook, rather than every one.
  const allowed = Array.isArray(patterns) ? patterns.filter((pattern) => typeof pattern === "string") : [];
  if (path !== undefined && allowed.some((pattern) => matchesPattern(pattern, path))) return;
  const who = path === undefined ? "a request without one of their executions" : `playbook '${path}'`;
  throw new FlowError(
    "FORBIDDEN",
    `The credential '${name}' is for the playbooks ${allowed.join(", ")} and not for ${who}`,
    { detail: { path: path ?? null } },
  );
}
