import type { FlowEvent } from "../schema/words/event.ts";
import { isJsonObject, type Json, own } from "../schema/words/json.ts";

/** The ids of a replay: the engine makes fresh ones, and each is replaced by that of the record in its place. */
export interface ReplayIds {
  fresh(): string;
  /** A decided event with the ids of the recorded one where the replay made its own. */
  adopt(decided: FlowEvent, recorded: FlowEvent): FlowEvent;
  /** A text with the ids of the record. */
  replaced(text: string): string;
}

/** No id of a record is so large. */
const FIRST = 9_000_000_000_000_000;
const FRESH = /9\d{15}/g;

/** Ids for one replay. */
export function createReplayIds(): ReplayIds {
  const known = new Map<string, string>();
  let made = 0;

  const bind = (text: string, recorded: string) => {
    const fresh = [...new Set(text.match(FRESH) ?? [])].filter((id) => !known.has(id));
    if (fresh.length === 0) return;
    const parts = text.split(FRESH).map(escaped);
    const found = new RegExp(`^${parts.join("(\\d+)")}$`).exec(recorded);
    for (const [index, id] of (text.match(FRESH) ?? []).entries()) {
      const value = found?.[index + 1];
      if (value !== undefined && !known.has(id)) known.set(id, value);
    }
  };
  const walk = (value: Json | undefined, recorded: Json | undefined): Json | undefined => {
    if (typeof value === "string") {
      if (typeof recorded === "string") bind(value, recorded);
      return replaced(value);
    }
    if (Array.isArray(value)) {
      return value.map((item, index) => walk(item, Array.isArray(recorded) ? recorded[index] : undefined) ?? null);
    }
    if (!isJsonObject(value)) return value;
    const of = (key: string) => (isJsonObject(recorded) ? (own(recorded, key) as Json | undefined) : undefined);
    return Object.fromEntries(
      Object.entries(value).flatMap(([key, item]) => (item === undefined ? [] : [[key, walk(item, of(key)) as Json]])),
    );
  };
  const replaced = (text: string) => text.replace(FRESH, (id) => known.get(id) ?? id);
  return {
    fresh: () => String(FIRST + ++made),
    adopt: (decided, recorded) =>
      hasFresh(decided)
        ? (walk(decided as unknown as Json, recorded as unknown as Json) as unknown as FlowEvent)
        : decided,
    replaced,
  };
}

function hasFresh(event: FlowEvent): boolean {
  return JSON.stringify(event).search(FRESH) >= 0;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
