import { isJsonObject, type Json, type JsonObject, own } from "../../../../src/schema/words/json.ts";
import { ITEM, type YamlPlace } from "./yaml-place.ts";

/** A key that may be written, or a value. */
export interface Offer {
  name: string;
  description: string;
}

/** Schemas that one place may have in the end: a document has some ten. */
const SCHEMAS_MAX = 100;

/** The keys that the map at a place may have. */
export function keysAt(root: JsonObject, { path, siblings }: Pick<YamlPlace, "path" | "siblings">): Offer[] {
  const found = new Map<string, string>();
  for (const schema of schemasAt(root, path, siblings)) {
    for (const [name, inner] of entriesOf(schema, "properties")) {
      if (!found.get(name)) found.set(name, descriptionOf(root, inner));
    }
  }
  return [...found].map(([name, description]) => ({ name, description }));
}

/** The values that a key at a place may have, where they are few. */
export function valuesAt(
  root: JsonObject,
  { path, siblings }: Pick<YamlPlace, "path" | "siblings">,
  key: string,
): string[] {
  const found = new Set<string>();
  for (const schema of schemasAt(root, path, undefined)) {
    // Which keys a task takes depends on its kind: these are the kinds.
    const cases = own(schema, "if");
    const tested = isJsonObject(cases) ? new Map(entriesOf(cases, "properties")).get(key) : undefined;
    for (const value of enumOf(tested)) found.add(value);
  }
  for (const schema of schemasAt(root, [...path, key], siblings)) {
    for (const value of enumOf(schema)) found.add(value);
    if ([own(schema, "type")].flat().includes("boolean")) for (const value of ["true", "false"]) found.add(value);
  }
  return [...found];
}

/** What a key at a place is for. */
export function describeAt(root: JsonObject, place: Pick<YamlPlace, "path" | "siblings">, key: string): string {
  return keysAt(root, place).find(({ name }) => name === key)?.description ?? "";
}

function enumOf(schema: Json | undefined): string[] {
  const values = isJsonObject(schema) ? (own(schema, "enum") as Json | undefined) : undefined;
  const only = isJsonObject(schema) ? (own(schema, "const") as Json | undefined) : undefined;
  return [values, only].flat().filter((value) => typeof value === "string");
}

/** Everything that may be said of a place. `siblings` undefined: whatever the keys beside it are. */
function schemasAt(
  root: JsonObject,
  path: YamlPlace["path"],
  siblings: ReadonlyMap<string, string> | undefined,
): JsonObject[] {
  let at = expanded(root, [root], path.length === 0 ? siblings : undefined);
  for (const [index, key] of path.entries()) {
    const inner = at.flatMap((schema) => within(schema, key));
    at = expanded(root, inner, index === path.length - 1 ? siblings : undefined);
  }
  return at;
}

function within(schema: JsonObject, key: string | typeof ITEM): JsonObject[] {
  const named = key === ITEM ? own(schema, "items") : new Map(entriesOf(schema, "properties")).get(key);
  const inner = named ?? (key === ITEM ? undefined : own(schema, "additionalProperties"));
  return isJsonObject(inner) ? [inner] : [];
}

function expanded(root: JsonObject, from: readonly JsonObject[], siblings: ReadonlyMap<string, string> | undefined) {
  const found = new Set<JsonObject>();
  const add = (schema: Json | undefined) => {
    if (!isJsonObject(schema) || found.has(schema) || found.size >= SCHEMAS_MAX) return;
    found.add(schema);
    add(referenced(root, schema));
    for (const word of ["anyOf", "oneOf", "allOf"]) {
      const choices = own(schema, word);
      if (Array.isArray(choices)) for (const choice of choices) add(choice as Json);
    }
    if (applies(schema, siblings)) add(own(schema, "then") as Json | undefined);
  };
  for (const schema of from) add(schema);
  return [...found];
}

function applies(schema: JsonObject, siblings: ReadonlyMap<string, string> | undefined): boolean {
  const condition = own(schema, "if");
  if (!isJsonObject(condition)) return false;
  if (siblings === undefined) return true;
  return entriesOf(condition, "properties").every(([key, allowed]) => {
    const written = siblings.get(key)?.replace(/#.*/, "").trim();
    return written !== undefined && enumOf(allowed).includes(written);
  });
}

function referenced(root: JsonObject, schema: JsonObject): Json | undefined {
  const ref = own(schema, "$ref");
  const name = typeof ref === "string" ? /^#\/\$defs\/(.+)$/.exec(ref)?.[1] : undefined;
  const definitions = own(root, "$defs");
  return name !== undefined && isJsonObject(definitions) ? (own(definitions, name) as Json | undefined) : undefined;
}

function descriptionOf(root: JsonObject, schema: Json): string {
  const own_ = (one: Json | undefined) => (isJsonObject(one) ? own(one, "description") : undefined);
  const description = own_(schema) ?? (isJsonObject(schema) ? own_(referenced(root, schema)) : undefined);
  return typeof description === "string" ? description : "";
}

function entriesOf(schema: JsonObject, key: string): [string, Json][] {
  const value = own(schema, key);
  return isJsonObject(value) ? Object.entries(value) : [];
}
