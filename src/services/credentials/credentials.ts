import type { KeyRing } from "../../platform/crypto/key-ring.ts";
import {
  type CredentialKey,
  deleteCredential,
  type EncryptedCredential,
  findCredential,
  findCredentialId,
  insertCredential,
  listCredentials,
  type NewCredential,
  readCredential,
  replaceCredential,
  replaceCredentialMeta,
} from "../../repositories/credentials/credentials.ts";
import type { Database } from "../../repositories/database/database.ts";
import { reserveIds } from "../../repositories/database/ids.ts";
import { type CredentialDefault, PLAYBOOKS_KEY } from "../../schema/rules/credential-playbooks.ts";
import { type CredentialType, credentialProblems } from "../../schema/rules/credential-types.ts";
import { type SecretSchema, secretRefused } from "../../schema/rules/secret-schema.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { type Audit, audited, type Caller, inAuditLog } from "../access/audit.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import { encodeCursor, textCursor } from "../pagination-cursor.ts";
import {
  type CredentialUse,
  checkCredentialUse,
  defaultOf,
  type KnownCredential,
  withPlaybooks,
} from "./credential-paths.ts";
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
  save(content: CredentialContent, caller: Caller): Promise<{ record: KnownCredential; created: boolean }>;
  /** By id or name, without data. Throws `FlowError` NOT_FOUND. */
  find(identifier: string): Promise<KnownCredential>;
  /**
   * By id or name, decrypted. Throws `FlowError` NOT_FOUND, ENCRYPTION, and what {@link checkCredentialUse} throws; each call is
   * in the audit log.
   */
  read(identifier: string, caller: Caller, use?: CredentialUse): Promise<{ record: KnownCredential; data: JsonObject }>;
  /** In the order of names, without data. `q` is a text in name, description or a tag. */
  list(page: PageQuery & { type?: string; tag?: string; q?: string }): Promise<Listed<KnownCredential>>;
  /** Says which playbooks may use it, in place of those from before; its data stay. Throws `FlowError` NOT_FOUND. */
  setPlaybooks(name: string, playbooks: readonly string[], caller: Caller): Promise<KnownCredential>;
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
  /** Instead of what the database says (FLOW_CREDENTIALS_DEFAULT). */
  byDefault?: CredentialDefault | undefined;
}

/** The credentials of a database. */
export function createCredentials(given: CredentialsDeps): Credentials {
  const { database } = given;
  const deps = { ...given, defaultNow: defaultOf(database, given.byDefault) };
  return {
    save: (content, caller) => save(deps, content, caller),
    async find(identifier) {
      const row = await findCredential(database, keyOf(identifier));
      if (row === undefined) throw unknownCredential(identifier);
      return withPlaybooks(row, await deps.defaultNow());
    },
    read: (identifier, caller, use = {}) => read(deps, identifier, caller, use),
    async list({ cursor, ...rest }) {
      const after = cursor === undefined ? {} : { cursor: textCursor(cursor) };
      const page = await listCredentials(database, { ...rest, ...after });
      const byDefault = await deps.defaultNow();
      const items = page.items.map((row) => withPlaybooks(row, byDefault));
      return { items, nextCursor: page.next === undefined ? null : encodeCursor(page.next) };
    },
    async setPlaybooks(name, playbooks, caller) {
      const entry = audited(caller, "credential.paths", resourceOf(name), { detail: { playbooks: [...playbooks] } });
      const meta = { [PLAYBOOKS_KEY]: [...playbooks] };
      const row = isStorable(name) ? await replaceCredentialMeta(database, name, meta, entry) : undefined;
      if (row === undefined) throw unknownCredential(name);
      return withPlaybooks(row, await deps.defaultNow());
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

type Deps = CredentialsDeps & { defaultNow: ReturnType<typeof defaultOf> };

async function save(deps: Deps, content: CredentialContent, caller: Caller) {
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
    if (record !== undefined) return { record: withPlaybooks(record, await deps.defaultNow()), created };
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

async function read(deps: Deps, identifier: string, caller: Caller, use: CredentialUse) {
  const { database, keys, audit } = deps;
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
  const { dataEncrypted, ...record } = withPlaybooks(row, await deps.defaultNow());
  try {
    const rule = { isWorker: caller.actorKind === "worker", byDefault: await deps.defaultNow() };
    await checkCredentialUse(database, row, use, rule);
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
