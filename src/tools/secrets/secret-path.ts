import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { fieldAt, textField } from "./fields.ts";

/** One secret of a `map`. */
export interface SecretPath {
  /** As the provider calls it. */
  path: string;
  /** Of a secret that is a JSON object, the field that is wanted; absent: the whole text. */
  key?: string;
  /** Absent: the newest. */
  version?: string;
}

/** Fields of one entry at most: a limit on how many requests it makes. */
const FIELDS_MAX = 200;

/**
 * The secrets of an entry's `map`, by field: `path`, `path#key` for one field of a secret that is a JSON object, or
 * `{path, key, version}`. Throws `FlowError` INVALID_INPUT.
 */
export function readSecretMap(definition: JsonObject): [field: string, path: SecretPath][] {
  const map = own(definition, "map");
  if (!isJsonObject(map) || Object.keys(map).length === 0) {
    throw new FlowError("INVALID_INPUT", "The entry has no 'map': which field is which secret.");
  }
  const fields = Object.keys(map);
  if (fields.length > FIELDS_MAX) {
    throw new FlowError("INVALID_INPUT", `The entry's 'map' has ${fields.length} fields; ${FIELDS_MAX} is the most.`);
  }
  return fields.map((field) => [field, secretPath(field, own(map, field) as Json)]);
}

function secretPath(field: string, value: Json): SecretPath {
  const written = isJsonObject(value) ? textField(value, "path", "secret", "name") : value;
  if (typeof written !== "string" || written.trim() === "") {
    throw new FlowError("INVALID_INPUT", `The entry's 'map' has no path for '${field}': text is expected.`);
  }
  const [path = "", fragment] = written.trim().split(/#(.*)/s);
  const key = isJsonObject(value) ? (textField(value, "key") ?? fragment) : fragment;
  const version = isJsonObject(value) ? textField(value, "version") : undefined;
  return {
    path,
    ...(key !== undefined && key !== "" && { key }),
    ...defined({ version }),
  };
}

/** What a path asks of the secret's text: all of it, or one field. Throws `FlowError` NOT_FOUND, naming no value. */
export function selectKey(text: string, { path, key }: SecretPath): Json {
  if (key === undefined) return text;
  let data: Json;
  try {
    data = JSON.parse(text) as Json;
  } catch {
    throw new FlowError("NOT_FOUND", `The secret '${path}' has no field '${key}': it is not JSON.`);
  }
  const value = fieldAt(data, key);
  if (value !== undefined) return value;
  throw new FlowError("NOT_FOUND", `The secret '${path}' has no field '${key}'.`);
}
