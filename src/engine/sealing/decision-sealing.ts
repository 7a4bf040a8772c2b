import { ValueNeeded } from "../../language/views/references.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import { type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { mayHoldSealed, type Opened, type Sealer } from "../../schema/words/sealed.ts";
import { lostSecret } from "./lost-secret.ts";
import { mayBeSealed, openSealed } from "./open-sealed.ts";
import { sealEvent } from "./seal-event.ts";
import { createSecrets } from "./secrets.ts";

/**
 * Lets decisions read sealed values and keeps these out of events. Each function returns its argument if nothing changes; a
 * value without secrets is scanned once, however often it is read.
 */
export interface DecisionSealing {
  /**
   * The value with what was sealed in it opened; that is a secret of this execution's decisions from here on. It is remembered:
   * an object that is given must never change. What is sealed with a key that is not there throws when it is read. Throws
   * `ValueNeeded` where the keys must be fetched first.
   */
  open<T>(value: T): T;
  /** What was decided, with every secret in it sealed, or hidden where people read it. */
  event<T extends FlowEvent>(event: T): T;
  value(value: Json): Json;
  /** The value with `[secret]` for each, for messages. */
  hideIn(value: Json): Json;
  /** It contains a secret. */
  isIn(value: Json): boolean;
}

/** A store as decisions read it, and its values without secrets. */
export interface SealedDecisions {
  store: { load(ref: string): Promise<Json> };
  /** Undefined where nothing is sealed. */
  sealing: DecisionSealing | undefined;
  /** The JSON text of a payload to be stored, as a whole sealed where it is sensitive. */
  payload(value: Json, isSensitive: boolean): Promise<string>;
  /**
   * The input of a start with its `access_token` sealed: callers of agents pass one to be used for them (interface
   * specification, Execution), and the log must not contain it.
   */
  input(given: JsonObject): Promise<JsonObject>;
}

/** Nothing is sealed: payloads and decisions are what they are, also where a text looks sealed. */
export function openDecisions(store: SealedDecisions["store"]): SealedDecisions {
  return {
    store,
    sealing: undefined,
    payload: (value) => Promise.resolve(JSON.stringify(value)),
    input: (given) => Promise.resolve(given),
  };
}

/** Opened texts that an execution remembers. */
const OPENED_KEPT_MAX = 256;

/**
 * Opens what workers sealed for decisions: texts as they are looked up, payloads sealed as a whole as they are loaded. What the
 * engine then writes into events, arguments and assignments above all, is sealed again text by text before it is folded, so
 * that nothing that is stored, shown or given to a worker contains a secret in plain text.
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
    // All waiting callers get the error.
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
        // Made of JSON all through, whatever its type says.
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
    async input(given) {
      const token = own(given, "access_token");
      if (typeof token !== "string" || token === "" || mayHoldSealed(token)) return given;
      sealer ??= await sealerOf();
      return { ...given, access_token: sealer.seal(token) };
    },
  };
}

/** Opens what is sealed in a value, and notes each secret. A text is decrypted once. */
function openerOf(secrets: ReturnType<typeof createSecrets>): (json: Json, keys: Sealer) => Json {
  const openWith = (json: Json, keys: Sealer): Json =>
    openSealed(json, { open: (sealed) => openOnce(sealed, keys) }, secrets, (sealed) =>
      lostSecret(keys.lostKeyOf(sealed)),
    );
  // One token in each of a thousand rows is one secret, and decrypting it takes ten microseconds.
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
