import {
  type CredentialType,
  credentialFields,
  credentialProblems,
} from "../../../src/schema/rules/credential-types.ts";
import { isJsonObject, type Json, type JsonObject, setOwn } from "../../../src/schema/words/json.ts";

/** A field of the data as it is typed in. */
export interface DataField {
  /** Of this form, not of the data: names change while they are typed. */
  id: string;
  name: string;
  type: "string" | "integer" | "number" | "boolean" | "array" | "object";
  required: boolean;
  /** The type speaks of it: its name cannot be changed. */
  isFixed: boolean;
  text: string;
}

/** Fields whose values may be visible while they are typed. Unknown fields are hidden. */
const OPEN =
  /^(host|port|user|username|database|account|warehouse|url|token_url|token_uri|scope|header|query|client_email|client_id)$/;

/** Whether a field's text is shown as dots. */
export function isMasked({ name, isFixed }: DataField): boolean {
  return !(isFixed && OPEN.test(name));
}

/** The empty fields of a type. What was typed under the same name stays. */
export function startFields(type: CredentialType, before: readonly DataField[]): DataField[] {
  const texts = new Map(before.map(({ name, text }) => [name, text]));
  const fixed = credentialFields(type).map(({ name, type: of, required }) => ({
    id: `fixed-${name}`,
    name,
    type: of,
    required,
    isFixed: true,
    text: texts.get(name) ?? "",
  }));
  return [...fixed, ...before.filter(({ name, isFixed, text }) => !isFixed && (name !== "" || text !== ""))];
}

/** A field of a name that the type does not speak of. */
export function moreField(id: string): DataField {
  return { id, name: "", type: "string", required: false, isFixed: false, text: "" };
}

/** The data of the fields. A field of the type that is left empty is left out. Throws an `Error` that names no value. */
export function dataOf(fields: readonly DataField[]): JsonObject {
  const data: JsonObject = {};
  for (const { name, type, text, isFixed } of fields) {
    if (text === "" && (isFixed || name.trim() === "")) continue;
    if (name.trim() === "") throw new Error("A field has a value and no name");
    setOwn(data, name.trim(), typedValue(name, type, text));
  }
  return data;
}

/** The data that are written as JSON. Throws an `Error` that names no value. */
export function dataOfJson(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("The data is not valid JSON");
  }
  if (!isJsonObject(value)) throw new Error("The data must be a JSON object");
  return value;
}

/** What the server would refuse of the data, by the rules of the type. */
export function problemsOf(type: CredentialType, data: JsonObject): string[] {
  return credentialProblems(type, data);
}

function typedValue(name: string, type: DataField["type"], text: string): Json {
  if (type === "string") return text;
  if (type === "boolean") return text.trim() === "true";
  if (type === "integer" || type === "number") {
    const value = Number(text);
    if (text.trim() === "" || !Number.isFinite(value)) throw new Error(`${name} must be a number`);
    return value;
  }
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new Error(`${name} must be JSON`);
  }
}
