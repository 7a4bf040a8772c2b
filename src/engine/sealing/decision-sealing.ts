import { ValueNeeded } from "../../language/views/references.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import { type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import type { DeclaredInput, DeclaredInputs } from "../../schema/words/playbook.ts";
import { mayHoldSealed, type Opened, type Sealer } from "../../schema/words/sealed.ts";
import { lostSecret } from "./lost-secret.ts";
import { sealEvent } from "./seal-event.ts";
import { createSecrets, mayBeSealed, openSealed } from "./secrets.ts";

/**
 * Lets decisions read sealed values, and keeps the opened values out of events. Each function returns its argument if nothing
 * changes; a value without secrets is scanned once, however often it is read.
 */
export interface DecisionSealing {
  /**
   * The value with sealed parts opened; from here on these are secrets of this execution's decisions. It is remembered: an
   * object that is passed in must never change. Text sealed with a missing key throws when it is read. Throws `ValueNeeded` if
   * the keys must be fetched first.
   */
  open<T>(value: T): T;
  /** A decided event, with every secret in it sealed, or hidden in fields that people read. */
  event<T extends FlowEvent>(event: T): T;
  value(value: Json): Json;
  /** The value with `[secret]` in place of each secret, for messages. */
  hideIn(value: Json): Json;
  /** True if the value contains a secret. */
  isIn(value: Json): boolean;
}

/** The store for decisions, which seals and opens values. */
export interface SealedDecisions {
  store: { load(ref: string): Promise<Json> };
  /** Undefined if nothing is sealed. */
  sealing: DecisionSealing | undefined;
  /** The JSON text of a payload to be stored, sealed as a whole if it is sensitive. */
  payload(value: Json, isSensitive: boolean): Promise<string>;
  /**
   * The input of a start with its secrets sealed: those that the playbook declares, and `access_token`. Callers of agents pass a token for the
   * agent to use (interface specification, Execution), and the log must not contain it.
   */
  input(given: JsonObject, declared?: DeclaredInputs): Promise<JsonObject>;
}

/** For stores without sealing: payloads and decisions stay unchanged, even if a text looks sealed. */
export function openDecisions(store: SealedDecisions["store"]): SealedDecisions {
  return {
    store,
    sealing: undefined,
    payload: (value) => Promise.resolve(JSON.stringify(value)),
    input: (given) => Promise.resolve(given),
  };
}

/** Opened texts remembered for an execution. */
const OPENED_KEPT_MAX = 256;

/**
 * Opens values that workers sealed for decisions: texts when they are looked up, payloads sealed as a whole when they are
 * loaded. The values that the engine then writes into events, above all arguments and assignments, are sealed again text by
 * text before the event is folded, so that nothing that is stored, shown or sent to a worker contains a secret in plain text.
 */
export function sealedDecisions(
  store: { load(ref: string): Promise<Json> },
  sealerOf: () => Sealer | Promise<Sealer>,
): SealedDecisions {
  const secrets = createSecrets();
  let sealer: Sealer | undefined;
  const sealerNow = (): Sealer => {
    const chosen = sealer ?? sealerOf();
    if ("seal" in chosen) {
      sealer = chosen;
      return chosen;
    }
    // All waiting callers receive the error.
    chosen.catch(() => undefined);
    throw new ValueNeeded("the keys of sealed values", async () => {
      sealer = await chosen;
    });
  };
  const openWith = openerOf(secrets);
  const known = new WeakMap<object, Json>();
  const openObject = (json: Json & object): Json => {
    const before = known.get(json);
    if (before !== undefined) return before;
    const opened = mayBeSealed(json) ? openWith(json, sealerNow()) : json;
    known.set(json, opened);
    if (typeof opened === "object" && opened !== null) known.set(opened, opened);
    return opened;
  };
  const value = (plain: Json): Json => (sealer === undefined || secrets.isEmpty ? plain : secrets.seal(plain, sealer));
  return {
    store: {
      async load(ref) {
        const payload = await store.load(ref);
        if (!mayBeSealed(payload)) return payload;
        sealer ??= await sealerOf();
        return openWith(payload, sealer);
      },
    },
    sealing: {
      open<T>(given: T): T {
        // JSON throughout, whatever its static type.
        const json = given as Json;
        if (typeof json === "string") return mayHoldSealed(json) ? (openWith(json, sealerNow()) as T) : given;
        return typeof json === "object" && json !== null ? (openObject(json) as T) : given;
      },
      event: <T extends FlowEvent>(event: T): T =>
        secrets.isEmpty ? event : (sealEvent(event, { ...secrets, seal: value }) as T),
      value,
      hideIn: secrets.hideIn,
      isIn: secrets.isIn,
    },
    async payload(plain, isSensitive) {
      const json = JSON.stringify(plain);
      if (!isSensitive) return json;
      sealer ??= await sealerOf();
      return JSON.stringify(sealer.sealResult(json));
    },
    input: (given, declared = {}) => sealInput(given, declared, async () => (sealer ??= await sealerOf())),
  };
}

async function sealInput(
  given: JsonObject,
  declared: DeclaredInputs,
  sealerOf: () => Promise<Sealer>,
): Promise<JsonObject> {
  let sealed = given;
  for (const name of ["access_token", ...secretInputs(declared)]) {
    const text = own(given, name);
    if (typeof text !== "string" || text === "") continue;
    // What a caller of ours passes on is sealed already. Of what is declared a text that only looks so is a secret like others.
    if (mayHoldSealed(text) && (name === "access_token" || isSealed(text, await sealerOf()))) continue;
    if (sealed === given) sealed = { ...given };
    setOwn(sealed, name, (await sealerOf()).seal(text));
  }
  return sealed;
}

function isSealed(text: string, sealer: Sealer): boolean {
  return sealer.open(text) !== undefined || sealer.lostKeyOf(text) !== undefined;
}

function secretInputs(declared: DeclaredInputs): string[] {
  return Object.keys(declared).filter((name) => (own(declared, name) as DeclaredInput).secret === true);
}

/** Opens sealed parts of a value, and notes each secret. A text is decrypted once. */
function openerOf(secrets: ReturnType<typeof createSecrets>): (json: Json, keys: Sealer) => Json {
  const openWith = (json: Json, keys: Sealer): Json =>
    openSealed(json, { open: (sealed) => openOnce(sealed, keys) }, secrets, (sealed) =>
      lostSecret(keys.lostKeyOf(sealed)),
    );
  // The same token in each of a thousand rows is one secret, and decrypting it takes ten microseconds.
  const openedBefore = new Map<string, Opened>();
  const openOnce = (sealed: string, keys: Sealer): Opened | undefined => {
    const before = openedBefore.get(sealed);
    if (before !== undefined) return before;
    const opened = keys.open(sealed);
    if (opened?.kind !== "value") return opened;
    if (openedBefore.size >= OPENED_KEPT_MAX) openedBefore.clear();
    openedBefore.set(sealed, opened);
    return opened;
  };
  return openWith;
}
