import * as v from "valibot";
import { FlowError } from "../words/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../words/json.ts";
import { isStorable, storableText } from "../words/wire.ts";

/** Type names of a secret's schema (interface specification, Credential schema object). */
export const SECRET_TYPES = ["string", "integer", "boolean", "number", "array", "object"] as const;
/** One of {@link SECRET_TYPES}. */
export type SecretType = (typeof SECRET_TYPES)[number];

const NAME_MAX = 255;
const FIELDS_MAX = 256;

const isTypes = (value: unknown): value is Record<string, SecretType> =>
  isJsonObject(value) &&
  Object.keys(value).length <= FIELDS_MAX &&
  Object.keys(value).every((name) => name.length <= NAME_MAX && isStorable(name)) &&
  Object.values(value).every((type) => (SECRET_TYPES as readonly Json[]).includes(type));

const names = v.pipe(v.array(storableText(NAME_MAX)), v.maxLength(FIELDS_MAX));

/** What the data of a credential or keychain entry must look like (interface specification, Credential schema object). */
export const SecretSchema = v.strictObject({
  fields: v.exactOptional(v.pipe(names, v.description("The names that are allowed; any, when empty or absent."))),
  required: v.exactOptional(v.pipe(names, v.description("The names that must be there."))),
  types: v.exactOptional(
    v.pipe(
      v.custom<Record<string, SecretType>>(isTypes, `must map names to ${SECRET_TYPES.join(", ")}`),
      v.metadata({ type: "object" }),
      v.description("The types of fields, by name."),
    ),
  ),
  description: v.exactOptional(storableText(4_000)),
});
export type SecretSchema = v.InferOutput<typeof SecretSchema>;

/**
 * Everything in which data violate a schema, in the specification's words: missing fields, then wrong types, then fields that
 * are not allowed. No message holds a value.
 */
export function secretProblems(schema: SecretSchema, data: JsonObject): string[] {
  const { fields = [], required = [], types = {} } = schema;
  const missing = [...new Set(required)].filter((field) => !Object.hasOwn(data, field));
  const unexpected = fields.length === 0 ? [] : Object.keys(data).filter((field) => !fields.includes(field));
  return [
    ...missing.map((field) => `Missing required field: ${field}`),
    ...Object.entries(types).flatMap(([field, type]) =>
      Object.hasOwn(data, field) ? wrongType(field, type, data[field]) : [],
    ),
    ...(unexpected.length === 0 ? [] : [`Unexpected fields: ${unexpected.join(", ")}`]),
  ];
}

/** The refusal of data with these problems (interface specification, Errors). */
export function secretRefused(problems: readonly string[]): FlowError {
  const message = "Credential validation failed";
  const detail = { message, errors: [...problems] };
  return new FlowError("INVALID_SECRET", `${message}: ${problems.join("; ")}`, { detail });
}

function wrongType(field: string, type: SecretType, value: Json | undefined): string[] {
  if (value === undefined) return [];
  const actual = typeOf(value);
  if (actual === type || (type === "number" && actual === "integer")) return [];
  return [`Field '${field}' must be ${type}, got ${actual}`];
}

function typeOf(value: Json): SecretType | "null" {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  if (typeof value === "object") return "object";
  return typeof value === "boolean" ? "boolean" : "string";
}
