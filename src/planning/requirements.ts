import { credentialNames } from "../language/load/credential-names.ts";
import type { LocalPlaybook } from "../local/catalog.ts";
import { defined } from "../schema/words/defined.ts";
import { isJsonObject, type Json, own } from "../schema/words/json.ts";
import type { KeychainDefinition } from "../schema/words/playbook.ts";
import { isRequested } from "../worker/secrets/keychain-definition.ts";
import type { CredentialAnswer, KindAnswer, PlannedStep, PlaybookAnswer, Requirements } from "./planned.ts";

/** What exists on this machine. It is only looked up: no value of a credential is shown, no tool is called. */
export interface Machine {
  credential(name: string): Promise<CredentialAnswer>;
  kind(kind: string): Promise<KindAnswer>;
  /** A sub-playbook, by the path that a task gives. */
  playbook(path: string): Promise<PlaybookAnswer>;
}

/** Collects what the steps that may run need, and asks the machine whether it is there. */
export async function requirements(
  playbook: LocalPlaybook,
  steps: readonly PlannedStep[],
  machine: Machine,
): Promise<Requirements> {
  const credentials = new Map<string, string[]>();
  const kinds = new Map<string, string[]>();
  const playbooks = new Map<string, string[]>();
  const keychain = new Map<KeychainDefinition, string[]>();
  for (const { name, tasks, loop } of steps.filter(({ reached }) => reached === "yes")) {
    if (loop?.cursor !== undefined) note(kinds, loop.cursor.kind, name);
    for (const credential of loop?.cursor?.auth ?? []) note(credentials, credential, name);
    for (const task of tasks) {
      note(kinds, task.kind, name);
      for (const credential of task.auth ?? []) note(credentials, credential, name);
      if (task.kind === "python") {
        for (const credential of scriptCredentials(task.config.value)) note(credentials, credential, name);
      }
      const path = isJsonObject(task.config.value) ? task.config.value["path"] : undefined;
      const isKnown = !(task.config.unknown ?? []).some((entry) => entry.path === "path");
      if (task.kind === "playbook" && typeof path === "string" && isKnown) note(playbooks, path, name);
    }
    for (const entry of keychainOf(playbook, name)) note(keychain, entry, name);
  }
  for (const [entry, users] of keychain) {
    const credential = keychainCredential(entry);
    if (credential !== undefined) for (const user of users) note(credentials, credential, user);
  }
  const ask = async <K, A extends object>(map: Map<K, string[]>, answer: (key: K) => Promise<A>) =>
    await Promise.all([...map].map(async ([key, used_by]) => ({ key, used_by, ...(await answer(key)) })));
  return {
    credentials: (await ask(credentials, machine.credential)).map(({ key, ...rest }) => ({ name: key, ...rest })),
    keychain: [...keychain].map(([entry, used_by]) => {
      const credential = keychainCredential(entry);
      return { name: entry.name, kind: entry.kind, ...defined({ credential }), used_by };
    }),
    kinds: (await ask(kinds, machine.kind)).map(({ key, ...rest }) => ({ kind: key, ...rest })),
    playbooks: (await ask(playbooks, machine.playbook)).map(({ key, ...rest }) => ({ path: key, ...rest })),
  };
}

function note<K>(map: Map<K, string[]>, key: K, user: string): void {
  // A name that is known only during the run cannot be looked up.
  if (typeof key === "string" && /\{[{%]/.test(key)) return;
  const users = map.get(key) ?? [];
  if (!users.includes(user)) map.set(key, [...users, user]);
}

/** Keychain entries that the templates of a step read. */
function keychainOf({ program }: LocalPlaybook, step: string): KeychainDefinition[] {
  const wanted = program.steps.get(step)?.needs.members.get("keychain");
  if (wanted === undefined) return [];
  return program.playbook.keychain.filter(({ name }) => wanted === "all" || wanted.has(name));
}

/**
 * The credential that an entry reads: the one it names, else for an entry with a credential's fields the one with its own name.
 * An entry with values in the playbook, or with a request that needs no credential, reads none.
 */
function keychainCredential(entry: KeychainDefinition): string | undefined {
  const { name, kind } = entry;
  if (kind === "static" || (kind === "bearer" && own(entry, "token") !== undefined)) return undefined;
  const auth = own(entry, "auth") as Json | undefined;
  const credential = own(entry, "credential") as Json | undefined;
  if (isRequested(kind)) return credentialNames(auth ?? credential)[0];
  const isCredential = kind === "credential" || kind === "bearer" || kind.endsWith("_credential");
  return credentialNames(credential ?? (isCredential ? auth : undefined))[0] ?? name;
}

/** Names of the credentials with which a python task fetches its script (language document, section 8). */
function scriptCredentials(config: Json): string[] {
  const script = isJsonObject(config) ? (own(config, "script") as Json | undefined) : undefined;
  const source = isJsonObject(script) ? (own(script, "source") as Json | undefined) : undefined;
  return isJsonObject(source) ? credentialNames(own(source, "auth") as Json | undefined) : [];
}
