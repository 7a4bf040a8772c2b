import type { FlowEvent } from "../../schema/words/event.ts";
import { type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { mayHoldSealed, type Sealer } from "../../schema/words/sealed.ts";
import { isOneSealed, openResult } from "./open-sealed.ts";
import { sealEvent } from "./seal-event.ts";
import { createSecrets } from "./secrets.ts";

/** What keeps secrets out of what the engine decides. Each gives its argument back where nothing changes. */
export interface DecisionSealing {
  event(event: FlowEvent): FlowEvent;
  value(value: Json): Json;
}

/** A store as decisions read it, and what they may tell of it. */
export interface SealedDecisions {
  store: { load(ref: string): Promise<Json> };
  sealing: DecisionSealing;
  /** The JSON text of a payload to be stored, as a whole sealed where it is sensitive. */
  payload(value: Json, isSensitive: boolean): Promise<string>;
  /**
   * The input of a start with its `access_token` sealed: callers of agents pass one to be used for them (interface
   * specification, Execution), and it must not stand in the log.
   */
  input(given: JsonObject): Promise<JsonObject>;
}

/** Nothing is sealed: payloads and decisions are what they are. */
export function openDecisions(store: SealedDecisions["store"]): SealedDecisions {
  return {
    store,
    sealing: { event: (event) => event, value: (value) => value },
    payload: (value) => Promise.resolve(JSON.stringify(value)),
    input: (given) => Promise.resolve(given),
  };
}

/**
 * Lets arcs read sensitive results: payloads that were sealed as a whole are opened as they are loaded, and what the engine
 * then writes into events, arguments and assignments above all, is sealed text by text. What was sealed by itself within a
 * value stays closed to the engine, here as in the log: it passes through.
 */
export function sealedDecisions(
  store: { load(ref: string): Promise<Json> },
  sealerOf: () => Sealer | Promise<Sealer>,
): SealedDecisions {
  const secrets = createSecrets();
  let sealer: Sealer | undefined;
  const value = (plain: Json): Json => (sealer === undefined || secrets.isEmpty ? plain : secrets.seal(plain, sealer));
  return {
    store: {
      async load(ref) {
        const payload = await store.load(ref);
        if (typeof payload !== "string" || !isOneSealed(payload)) return payload;
        sealer ??= await sealerOf();
        return openResult(payload, sealer, secrets);
      },
    },
    sealing: {
      event: (event) => (secrets.isEmpty ? event : sealEvent(event, { ...secrets, seal: value })),
      value,
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
