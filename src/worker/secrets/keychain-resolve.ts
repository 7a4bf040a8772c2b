import type { ProgramKeychainEntry } from "../../engine/program/program.ts";
import type { Secrets } from "../../engine/sealing/secrets.ts";
import type { Template } from "../../language/template/template.ts";
import type { View } from "../../language/views/view.ts";
import type { KeychainKey } from "../../ports/keychain.ts";
import type { ObtainedSecret } from "../../ports/secret-source.ts";
import type { Command } from "../../schema/words/command.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../schema/words/json.ts";
import type { KeychainDefinition } from "../../schema/words/playbook.ts";
import type { WorkerDeps } from "../deps.ts";
import { entryCredential, fieldsAtHand, isCached, isRequested } from "./keychain-definition.ts";
import { type ResolvedEntry, readStored, type StoredEntry } from "./keychain-entry.ts";
import { entryNotFound, unresolved } from "./keychain-errors.ts";

/** What resolving the entries of one command takes. */
export interface KeychainParts {
  /** The playbook's `keychain` in its order. */
  entries: readonly ProgramKeychainEntry[];
  command: Pick<Command, "command_id" | "catalog_id" | "execution_id" | "step" | "context">;
  /** Credentials whose secrets are noted. */
  deps: Pick<WorkerDeps, "worker" | "clock" | "credentials" | "keychain" | "secretSource" | "usesStandIns" | "log">;
  secrets: Secrets;
  /** Renders an entry's templates; they see `keychain` as given. */
  render(template: Template, keychain: View): Promise<Json>;
  signal: AbortSignal;
}

/** Scopes in which an entry that the playbook does not define may have been set by others, the nearest first. */
const SCOPES = ["local", "shared", "global"] as const;

/**
 * The fields of one entry: those that are at hand, or as the store has them or comes to have them. `viewBefore` is the keychain
 * as an entry at this place of the list reads it. Throws `FlowError`.
 */
export async function resolveEntry(
  parts: KeychainParts,
  name: string,
  viewBefore: (position: number) => View,
): Promise<ResolvedEntry> {
  const { deps, entries, secrets } = parts;
  if (parts.command.catalog_id === "") throw unresolved(name, "the command has no catalog id");
  const position = entries.findIndex(({ definition }) => definition.name === name);
  const entry = entries[position];
  if (entry === undefined) {
    const found = await undefinedEntry(parts, name);
    noteFields(secrets, found.fields);
    return found;
  }
  const { definition, template } = entry;
  const standIn = await standInOf(parts, definition);
  if (standIn !== undefined) return { fields: noteFields(secrets, standIn), until: Number.POSITIVE_INFINITY };
  const render = async () => {
    const rendered = await parts.render(template, viewBefore(position)).catch((error: unknown) => {
      throw entryNotFound(name, messageOf(error));
    });
    return isJsonObject(rendered) ? rendered : {};
  };
  const isAtHand = deps.keychain === undefined && !isRequested(definition.kind);
  if (isAtHand || !isCached(definition)) {
    const fields = await fieldsAtHand(name, await render(), deps.credentials);
    return { fields: noteFields(secrets, fields), until: Number.POSITIVE_INFINITY };
  }
  const found = await readStored(storedEntry(parts, name, definition["scope"], render));
  if (found === undefined) throw entryNotFound(name);
  noteFields(secrets, found.fields);
  return found;
}

/** The credential with the entry's name that replaces the request, unless the entry uses it to make the request. */
async function standInOf(
  { deps }: KeychainParts,
  { name, kind, ...definition }: KeychainDefinition,
): Promise<JsonObject | undefined> {
  if (deps.usesStandIns !== true || !isRequested(kind)) return undefined;
  if (definition["auth"] === name || definition["credential"] === name) return undefined;
  return (await deps.credentials.find(name))?.data;
}

async function undefinedEntry(parts: KeychainParts, name: string): Promise<ResolvedEntry> {
  if (parts.deps.keychain === undefined) throw entryNotFound(name);
  for (const scope of SCOPES) {
    const found = await readStored(storedEntry(parts, name, scope, undefined));
    if (found !== undefined) return found;
  }
  throw entryNotFound(name);
}

function storedEntry(
  { deps, command, secrets, signal }: KeychainParts,
  name: string,
  scope: Json | undefined,
  definition: StoredEntry["definition"],
): StoredEntry {
  const { keychain: store, secretSource, credentials } = deps;
  if (store === undefined) throw unresolved(name, "nothing here resolves keychain entries");
  const { execution_id: executionId, catalog_id: catalogId, command_id, step, context } = command;
  const { keychain } = context;
  const key: KeychainKey = {
    // A tree shares its entries by name, whichever of its playbooks has resolved them.
    catalogId: scope === "shared" ? (keychain?.root_catalog_id ?? catalogId) : catalogId,
    name,
    scope: scope === "local" || scope === "shared" ? scope : "global",
    executionId,
    rootExecutionId: keychain?.root_execution_id ?? executionId,
  };
  return {
    store,
    clock: deps.clock,
    key,
    holder: `${deps.worker}/${command_id}`,
    executionStartedAt: keychain?.execution_started_at ?? 0,
    secretSource,
    definition,
    signal,
    async resolve(rendered, stop): Promise<ObtainedSecret> {
      const kind = String(rendered["kind"] ?? "");
      if (!isRequested(kind)) return { fields: await fieldsAtHand(name, rendered, credentials) };
      if (secretSource === undefined) throw new FlowError("INVALID_INPUT", `nothing here resolves kind '${kind}'`);
      return await secretSource.obtain(kind, rendered, await entryCredential(rendered, credentials), stop);
    },
    hide: secrets.hide,
    log: (text) => deps.log({ executionId, commandId: command_id, step, task: "keychain", text }),
  };
}

/** Token fields that are the same for every caller. */
const OPEN_FIELDS = /^(token_type|scope|issued_token_type)$/;

function noteFields(secrets: Secrets, fields: JsonObject): JsonObject {
  secrets.note(fields, { except: OPEN_FIELDS });
  return fields;
}
