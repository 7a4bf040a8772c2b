import { isJsonObject, type Json, type JsonObject } from "../../../../src/schema/words/json.ts";
import { type InputField, isSecret } from "./inputs.ts";

const KEY = "flow.inputs.";
/** Longest set of inputs that is remembered, characters. */
const KEPT_MAX = 20_000;

/** The inputs of the last run of a path from this browser. */
export function lastInputs(path: string): JsonObject {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY + path) ?? "{}");
    return isJsonObject(kept) ? kept : {};
  } catch {
    return {};
  }
}

/** Inputs without those of fields that are secret, and without values whose names say that they are. */
export function withoutSecrets(fields: readonly InputField[], inputs: JsonObject): JsonObject {
  const secret = new Set(fields.flatMap((field) => (field.secret ? [field.name] : [])));
  const kept = Object.entries(inputs).filter(([name, value]) => !secret.has(name) && !holdsSecret(name, value));
  return Object.fromEntries(kept);
}

/** Remembers the inputs of a run, without secrets. What is too long is not remembered. */
export function keepInputs(path: string, fields: readonly InputField[], inputs: JsonObject): void {
  const text = JSON.stringify(withoutSecrets(fields, inputs));
  if (text.length > KEPT_MAX) return;
  try {
    localStorage.setItem(KEY + path, text);
  } catch {
    // The browser's store is full: the form begins with the defaults next time.
  }
}

function holdsSecret(name: string, value: Json): boolean {
  if (typeof value === "string") return isSecret(name) && value !== "";
  if (Array.isArray(value)) return value.some((item) => holdsSecret(name, item));
  return isJsonObject(value) && Object.entries(value).some(([key, inner]) => holdsSecret(key, inner));
}
