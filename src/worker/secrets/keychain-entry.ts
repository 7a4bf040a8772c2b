import type { Clock } from "../../ports/clock.ts";
import type { KeychainForm, KeychainKey, KeychainLookup, KeychainStore, KeychainWrite } from "../../ports/keychain.ts";
import type { ObtainedSecret, SecretSource } from "../../ports/secret-source.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { type JsonObject, own } from "../../schema/words/json.ts";
import { definedTtl, entryWrite, isKept, renewalOf } from "./keychain-definition.ts";
import { entryExpired, entryNotFound, renewalFailed, renewalText } from "./keychain-errors.ts";

/** An entry of the store, as one command reads it. */
export interface StoredEntry {
  store: KeychainStore;
  clock: Clock;
  key: KeychainKey;
  /** Unique among all that may ask for this entry at once. */
  holder: string;
  /** What expired before was not used by this execution, and is resolved afresh. */
  executionStartedAt: number;
  secretSource: SecretSource | undefined;
  /** The playbook's definition, rendered; undefined if the playbook has none and the entry was set elsewhere. */
  definition: (() => Promise<JsonObject>) | undefined;
  /** Resolves it afresh. */
  resolve(definition: JsonObject, signal: AbortSignal): Promise<ObtainedSecret>;
  /** Removes secrets from an error that other workers will see. */
  hide(text: string): string;
  log(text: string): void;
  /** No caller waits for it any more. Work that has started is completed nevertheless: other workers wait for it. */
  signal: AbortSignal;
}

/** The fields of an entry, and until when they may be used, milliseconds since 1970. */
export interface ResolvedEntry {
  fields: JsonObject;
  until: number;
}

/** Longest time that resolving or renewing takes, all its requests together. */
const WORK_MS = 60_000;
/** The right to do it lasts a little longer. */
const LEASE_MS = WORK_MS + 15_000;
/** Longest wait of one question whether another worker has done it. */
const WAIT_MS = 20_000;
/** Longest wait for others in all: two of them may die over it. */
const PATIENCE_MS = 2 * LEASE_MS + WAIT_MS;

/** What has to be done with an entry that is not live. */
type Task = { do: "resolve" } | { do: "renew"; config: JsonObject | undefined; form: KeychainForm | undefined };

/**
 * Reads an entry and acts on its state (interface specification, States, Keychain entry): uses a live one; resolves one that is
 * absent, or expired before this execution began; renews one that expires during the run if that is allowed, and fails
 * otherwise. One worker does it while all others wait for its outcome. Undefined: there is no such entry and none is defined.
 * Throws `FlowError`.
 */
export async function readStored(entry: StoredEntry): Promise<ResolvedEntry | undefined> {
  const { store, key, clock } = entry;
  const givenUpAt = clock.now() + PATIENCE_MS;
  for (;;) {
    entry.signal.throwIfAborted();
    const found = await store.get(key);
    if (found.status === "success") return { fields: found.data, until: found.expiresAt };
    if (found.status === "not_found" && entry.definition === undefined) return undefined;
    const task = taskOf(entry, found);
    const definition = await entry.definition?.();
    if (task.do === "resolve" && definition !== undefined && !isKept(definition)) {
      return await unkept(entry, definition);
    }
    const answer = await store.lease(key, { holder: entry.holder, leaseMs: LEASE_MS, waitMs: WAIT_MS });
    switch (answer.status) {
      case "granted":
        return await carryOut(entry, task, definition);
      case "failed":
        throw failure(entry, task, answer.message);
      case "set":
      case "held":
        if (clock.now() < givenUpAt) break;
        throw failure(entry, task, `other workers have not come to an end of it in ${PATIENCE_MS / 1_000} s`);
    }
  }
}

function taskOf({ key, definition, executionStartedAt }: StoredEntry, found: KeychainLookup): Task {
  if (found.status !== "expired") return { do: "resolve" };
  if (found.autoRenew) return { do: "renew", config: found.renewConfig, form: found.form };
  if (definition !== undefined && found.expiredAt <= executionStartedAt) return { do: "resolve" };
  throw entryExpired(key.name, found.expiredAt);
}

async function unkept(entry: StoredEntry, definition: JsonObject): Promise<ResolvedEntry> {
  try {
    const { fields } = await entry.resolve(definition, AbortSignal.timeout(WORK_MS));
    return { fields, until: Number.POSITIVE_INFINITY };
  } catch (error) {
    throw failure(entry, { do: "resolve" }, messageOf(error));
  }
}

/** The holder's work. However it ends, the waiting workers learn the outcome. */
async function carryOut(entry: StoredEntry, task: Task, definition: JsonObject | undefined): Promise<ResolvedEntry> {
  const { store, key, holder } = entry;
  try {
    const obtained = task.do === "renew" ? await renew(entry, task, definition) : await resolve(entry, definition);
    const { expiresAt } = await store.set(key, writeOf(task, definition, obtained));
    return { fields: obtained.fields, until: expiresAt };
  } catch (error) {
    const why = entry.hide(messageOf(error)).slice(0, MESSAGE_CHARS_MAX);
    // The lease's end releases the waiting workers at the latest.
    await store.fail(key, holder, why).catch(() => undefined);
    throw failure(entry, task, why);
  }
}

/** Longest error message shown to other workers. */
const MESSAGE_CHARS_MAX = 2_000;

async function resolve(entry: StoredEntry, definition: JsonObject | undefined): Promise<ObtainedSecret> {
  if (definition === undefined) throw new FlowError("NOT_FOUND", "the playbook does not define it");
  const { fields, ttlSeconds } = await entry.resolve(definition, AbortSignal.timeout(WORK_MS));
  const ttl = definedTtl(definition) ?? ttlSeconds;
  return { fields, ...(ttl !== undefined && { ttlSeconds: ttl }) };
}

async function renew(
  entry: StoredEntry,
  task: Extract<Task, { do: "renew" }>,
  definition: JsonObject | undefined,
): Promise<ObtainedSecret> {
  const config = renewalConfig(task.config, definition);
  if (config === undefined && definition !== undefined) return await resolve(entry, definition);
  if (config === undefined) throw new FlowError("INVALID_INPUT", "it has no renew_config");
  if (entry.secretSource === undefined) throw new FlowError("INVALID_INPUT", "nothing here makes the request");
  return await entry.secretSource.renew(config, AbortSignal.timeout(WORK_MS));
}

/**
 * The renewal that stands with the entry; the playbook's own where it is the same endpoint, since the secrets in it may have
 * changed meanwhile.
 */
function renewalConfig(stored: JsonObject | undefined, definition: JsonObject | undefined): JsonObject | undefined {
  const defined = definition === undefined ? undefined : renewalOf(definition);
  if (stored === undefined || defined === undefined) return stored ?? defined;
  return own(stored, "endpoint") === own(defined, "endpoint") ? defined : stored;
}

function writeOf(task: Task, definition: JsonObject | undefined, obtained: ObtainedSecret): KeychainWrite {
  const config = task.do === "renew" ? renewalConfig(task.config, definition) : undefined;
  const write = entryWrite(definition ?? { kind: "oauth2" }, obtained);
  if (task.do !== "renew") return write;
  // An entry that was renewed once is renewed again with the same settings, regardless of who set it. A newer schema in the
  // playbook takes precedence.
  return {
    ...{ ...write, ...task.form, autoRenew: true },
    ...(write.schema !== undefined && { schema: write.schema }),
    ...(config !== undefined && { renewConfig: config }),
  };
}

/** The error of a template that reads the entry. A failed renewal is logged as well (interface specification, States). */
function failure(entry: StoredEntry, task: Task, why: string): FlowError {
  const { name } = entry.key;
  if (task.do === "resolve") return entryNotFound(name, why);
  entry.log(`${renewalText(name)}: ${entry.hide(why)}`);
  return renewalFailed(name, why);
}
