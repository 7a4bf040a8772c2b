import { isJsonObject, type Json, type JsonObject } from "../words/json.ts";

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
