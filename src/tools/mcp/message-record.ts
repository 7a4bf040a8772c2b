import type { Json, JsonObject } from "../../schema/words/json.ts";

/** One message between client and server, as it is in a result. */
export interface RecordedMessage extends JsonObject {
  /** Who sent it. */
  from: "client" | "server";
  /** Milliseconds after the first one. */
  after_ms: number;
  /** JSON-RPC; of one that was too long, `{omitted: characters}` with its `id` and `method`. */
  message: Json;
}

/** The messages of a call, as far as they are kept. */
export interface MessageRecord {
  take(from: RecordedMessage["from"], message: object): void;
  list(): RecordedMessage[];
}

/** Messages of one call that are kept: a server may report progress a thousand times. */
const MESSAGES_MAX = 200;
/** A longer message is left out: its answer stands in the result. */
const MESSAGE_CHARS_MAX = 64 * 1024;
/** All of them together. */
const CHARS_MAX = 256 * 1024;

/**
 * Keeps JSON-RPC messages for people. Headers are no part of them, so no login is; other secrets are sealed with the result that they
 * stand in.
 */
export function createMessageRecord(now: () => number): MessageRecord {
  const messages: RecordedMessage[] = [];
  const first = { at: Number.NaN };
  let chars = 0;
  return {
    take(from, message) {
      if (messages.length >= MESSAGES_MAX) return;
      if (messages.length === 0) first.at = now();
      const text = JSON.stringify(message);
      const isKept = text.length <= MESSAGE_CHARS_MAX && chars + text.length <= CHARS_MAX;
      if (isKept) chars += text.length;
      const after_ms = Math.max(0, Math.round(now() - first.at));
      messages.push({ from, after_ms, message: isKept ? (JSON.parse(text) as Json) : outlineOf(message, text.length) });
    },
    list: () => messages,
  };
}

function outlineOf(message: object, omitted: number): JsonObject {
  const { id, method } = message as { id?: Json; method?: Json };
  return { ...(id !== undefined && { id }), ...(method !== undefined && { method }), omitted };
}
