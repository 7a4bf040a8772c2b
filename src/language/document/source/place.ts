import { isJsonObject, type Json } from "../../../schema/words/json.ts";

/** A value of a document together with where it stands, so that every rule can point at what it is about. */
export interface Place {
  readonly value: Json;
  readonly parent: Place | undefined;
  /** Key in the parent map, or index in the parent list; empty for the root. */
  readonly key: string | number;
  /** Offset in the text of the key; of the value itself for list items and the root. */
  readonly start: number;
  /** Offset in the text of the value. */
  readonly valueStart: number;
  /** Entries of a map in document order; empty for everything else. */
  readonly fields: ReadonlyMap<string, Place>;
  /** Items of a list; empty for everything else. */
  readonly items: readonly Place[];
  /** How a text is written, to find its characters in the document again. */
  readonly style: "plain" | "quoted" | "literal" | "folded" | "none";
  /** Offset in the text where the value ends. */
  readonly valueEnd: number;
}

/** The place that a path of keys leads to; the last existing one where the path leaves the document. */
export function placeAt(root: Place, keys: readonly (string | number)[]): Place {
  let place = root;
  for (const key of keys) {
    const next = typeof key === "number" ? place.items[key] : place.fields.get(key);
    if (next === undefined) return place;
    place = next;
  }
  return place;
}

/** `step` for a value under a key, `item 3 of workflow` for a list's item, `the document` for the whole. */
export function nameOf(place: Place): string {
  if (place.parent === undefined) return "the document";
  if (typeof place.key === "string") return `\`${place.key}\``;
  return `item ${place.key + 1} of \`${place.parent.key}\``;
}

/** The entry `key` of a map, unless it is absent or empty (`key:` alone, which counts as absent everywhere). */
export function field(place: Place | undefined, key: string): Place | undefined {
  const found = place?.fields.get(key);
  return found === undefined || found.value === null ? undefined : found;
}

/** The first of `keys` that the map has, for keys with other spellings. */
export function firstField(place: Place | undefined, ...keys: string[]): Place | undefined {
  for (const key of keys) {
    const found = field(place, key);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** True for a value that is no template. Parts of a map or of a list may be. */
export function isConstant({ value }: Place): boolean {
  return typeof value !== "string" || !/\{[{%]/.test(value);
}

/** The value, where it is text. */
export function textOf(place: Place | undefined): string | undefined {
  return typeof place?.value === "string" ? place.value : undefined;
}

/** True when the place holds a map. */
export function isMap(place: Place | undefined): place is Place {
  return place !== undefined && isJsonObject(place.value);
}

/** `workflow[2].tool.url`; a key that is no plain word is quoted. */
export function pathOf(place: Place): string {
  const parts: string[] = [];
  for (let at: Place | undefined = place; at?.parent !== undefined; at = at.parent) {
    if (typeof at.key === "number") parts.push(`[${at.key}]`);
    else if (/^[\w-]+$/.test(at.key)) parts.push(at.parent.parent === undefined ? at.key : `.${at.key}`);
    else parts.push(`[${JSON.stringify(at.key)}]`);
  }
  return parts.reverse().join("");
}

/** What kind of value this is, in the words of messages. */
export function describe(value: Json | undefined): string {
  if (value === undefined || value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  switch (typeof value) {
    case "string":
      return "text";
    case "number":
      return "a number";
    case "boolean":
      return "true or false";
    default:
      return "a map";
  }
}
