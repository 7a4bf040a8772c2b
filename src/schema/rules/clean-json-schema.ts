import { isJsonObject, type Json, type JsonObject, jsonSize } from "../words/json.ts";

/** Schemas within each other that are kept. */
const DEPTH_MAX = 32;

/**
 * The valid part of a JSON Schema that an author wrote: keywords that are unknown, or have an invalid value, are left out.
 * Clients compile the schemas of all tools at once, so that a mistake in one would disable all of them. References are removed
 * too: most models' interfaces accept none. Undefined if it is not the schema of an object.
 */
export function cleanObjectSchema(value: unknown): JsonObject | undefined {
  if (!isJsonObject(value)) return undefined;
  const { type = "object", ...rest } = cleanSchema(value, DEPTH_MAX);
  return type === "object" ? { type, ...rest } : undefined;
}

/** The same for a schema of any value. */
export function cleanAnySchema(value: unknown): JsonObject | undefined {
  return isJsonObject(value) ? cleanSchema(value, DEPTH_MAX) : undefined;
}

/** The value as it is kept, undefined where it is not. */
type Cleaner = (value: Json, depth: number) => Json | undefined;

const TYPES: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

const text: Cleaner = (value) => (typeof value === "string" ? value : undefined);
const number: Cleaner = (value) => (typeof value === "number" ? value : undefined);
const count: Cleaner = (value) => (Number.isInteger(value) && Number(value) >= 0 ? value : undefined);
const flag: Cleaner = (value) => (typeof value === "boolean" ? value : undefined);
const anything: Cleaner = (value) => value;
const schema: Cleaner = (value, depth) =>
  isJsonObject(value) && depth > 0 ? cleanSchema(value, depth - 1) : undefined;
const schemaOrFlag: Cleaner = (value, depth) => flag(value, depth) ?? schema(value, depth);

const schemas: Cleaner = (value, depth) => {
  if (!Array.isArray(value)) return undefined;
  const kept = value.map((one) => schema(one, depth));
  return kept.length > 0 && kept.every((one) => one !== undefined) ? kept : undefined;
};

const schemasByName: Cleaner = (value, depth) => {
  if (!isJsonObject(value)) return undefined;
  // `fromEntries` defines own fields, whatever they are called.
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, schema(one, depth) ?? {}]));
};

const KEYWORDS: Readonly<Record<string, Cleaner>> = {
  type(value) {
    const types = [value].flat();
    return types.length > 0 && new Set(types).size === types.length && types.every((one) => TYPES.has(one))
      ? value
      : undefined;
  },
  title: text,
  description: text,
  format: text,
  default: anything,
  const: anything,
  enum: (value) => (Array.isArray(value) && value.length > 0 ? value : undefined),
  examples: (value) => (Array.isArray(value) ? value : undefined),
  minimum: number,
  maximum: number,
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  multipleOf: (value) => (typeof value === "number" && value > 0 ? value : undefined),
  minLength: count,
  maxLength: count,
  pattern: (value) => (typeof value === "string" && isPattern(value) ? value : undefined),
  minItems: count,
  maxItems: count,
  uniqueItems: flag,
  items: schema,
  required: (value) => (isListOfNames(value) ? value : undefined),
  properties: schemasByName,
  additionalProperties: schemaOrFlag,
  anyOf: schemas,
  oneOf: schemas,
  allOf: schemas,
};

function cleanSchema(value: JsonObject, depth: number): JsonObject {
  const kept: JsonObject = {};
  for (const [keyword, given] of Object.entries(value)) {
    const clean = Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword]?.(given, depth) : undefined;
    if (clean !== undefined) kept[keyword] = clean;
  }
  return kept;
}

function isListOfNames(value: Json): boolean {
  return (
    Array.isArray(value) && value.every((name) => typeof name === "string") && new Set(value).size === value.length
  );
}

/** Only whether it is one: nothing is matched with it here. */
function isPattern(value: string): boolean {
  try {
    return new RegExp(value, "u").source !== "";
  } catch {
    return false;
  }
}

/** Most bytes of a form, as JSON. */
const FORM_BYTES_MAX = 65_536;

/**
 * What is wrong with the schema of a form, as words that follow its name; undefined: nothing. References are refused: what they mean stands
 * elsewhere, and they may lead in circles.
 */
export function formProblem(form: Json): string | undefined {
  if (!isJsonObject(form)) return "must be a JSON Schema, which is a map";
  if (jsonSize(form) > FORM_BYTES_MAX) return `must be at most ${FORM_BYTES_MAX / 1_024} KiB long`;
  return wrongKeyword(form, "", DEPTH_MAX);
}

function wrongKeyword(value: JsonObject, at: string, depth: number): string | undefined {
  if (depth === 0) return `has more than ${DEPTH_MAX} schemas within each other`;
  const place = at === "" ? "" : ` in ${at}`;
  for (const [keyword, given] of Object.entries(value)) {
    if (/^\$(?:ref|dynamicRef|recursiveRef)$/.test(keyword))
      return `has \`${keyword}\`${place}: write out what it stands for`;
    const patterns = keyword === "pattern" ? [given] : keyword === "patternProperties" ? Object.keys(given ?? {}) : [];
    if (patterns.some((pattern) => typeof pattern === "string" && isSlow(pattern)))
      return `has a pattern${place} that may take long: groups that are repeated may hold no alternatives and nothing that is repeated, and at most ${REPEATS_MAX} parts may be repeated without limit`;
    if (keyword === "format" && given === "url")
      return `has the format \`url\`${place}, which may take long to match: write \`uri\``;
    const below = at === "" ? keyword : `${at}.${keyword}`;
    const inner = Object.hasOwn(NESTED, keyword) ? schemasUnder(NESTED[keyword], given) : undefined;
    const isKnown = inner === undefined && Object.hasOwn(KEYWORDS, keyword);
    if (inner === null || (isKnown && KEYWORDS[keyword]?.(given, 1) === undefined))
      return `has no valid \`${keyword}\`${place}`;
    for (const [name, schema] of inner ?? []) {
      const problem = wrongKeyword(schema, name === "" ? below : `${below}.${name}`, depth - 1);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

/** Keywords that hold schemas: one, a list, or one by each name. */
const NESTED: Readonly<Record<string, "one" | "list" | "map">> = {
  ...{ items: "one", additionalProperties: "one", not: "one", if: "one", then: "one", else: "one", contains: "one" },
  ...{ propertyNames: "one", unevaluatedItems: "one", unevaluatedProperties: "one" },
  ...{ anyOf: "list", oneOf: "list", allOf: "list", prefixItems: "list" },
  ...{ properties: "map", patternProperties: "map", dependentSchemas: "map", $defs: "map" },
};

/** The schemas under a keyword, by name; null where there are none of the kind. A schema may be `true` or `false`. */
function schemasUnder(
  kind: "one" | "list" | "map" | undefined,
  given: Json,
): [name: string, schema: JsonObject][] | null {
  const isSchema = (one: Json) => typeof one === "boolean" || isJsonObject(one);
  if (kind === "one") {
    if (isJsonObject(given)) return [["", given]];
    return typeof given === "boolean" ? [] : null;
  }
  if (kind === "list" ? !Array.isArray(given) || given.length === 0 : !isJsonObject(given)) return null;
  const entries = Object.entries(given as JsonObject);
  if (!entries.every(([, one]) => isSchema(one))) return null;
  return entries.flatMap(([name, one]): [string, JsonObject][] => (isJsonObject(one) ? [[name, one]] : []));
}

/** Most parts of a pattern that are repeated without a limit: with each the time to match it may grow by a power. */
const REPEATS_MAX = 4;

/** Whether matching may take long, by the look of the pattern: it is refused then, though it may be harmless. */
function isSlow(pattern: string): boolean {
  // Classes and escapes are one character each; what remains is structure.
  const bare = pattern.replaceAll(/\\[dDwWsSbBnrtfv\\/.*+?()[\]{}|^$-]/g, "x").replaceAll(/\[\^?[^\]]*\]/g, "x");
  if (/\\|\(\?(?!:)/.test(bare)) return true;
  const repeats = bare.match(/[*+]|\{\d*,\}/g)?.length ?? 0;
  if (repeats > REPEATS_MAX) return true;
  // A group within a repeated group counts as repeated itself.
  return /\([^()]*(?:[*+{|][^()]*|\(.*)\)\??(?:[*+]|\{)/.test(bare);
}

/** Whether a form has patterns that texts are matched with. */
export function hasPattern(form: JsonObject): boolean {
  return /"pattern(?:Properties)?":/.test(JSON.stringify(form));
}
