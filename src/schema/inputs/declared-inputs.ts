import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../words/json.ts";
import type { DeclaredInput, DeclaredInputs } from "../words/playbook.ts";

/** Most inputs that a playbook declares. */
export const INPUTS_MAX = 200;

/** What an entry of `inputs` says. Its default is one of the workload. */
export function declaredInput(written: JsonObject): DeclaredInput {
  const { required, secret, default: _, ...rest } = written;
  // A list under `required` is JSON Schema's: the fields that a map must have.
  const schema = Array.isArray(required) ? { ...rest, required } : rest;
  return { schema, ...(required === true && { required }), ...(secret === true && { secret }) };
}

/** What a document of the catalog declares, and the defaults of all its inputs; undefined for one that declares nothing. */
export function inputsOfDocument(
  payload: Readonly<Record<string, unknown>>,
): { inputs: DeclaredInputs; defaults: JsonObject } | undefined {
  const written = own(payload, "inputs");
  if (!isJsonObject(written)) return undefined;
  const workload = own(payload, "workload");
  const inputs: Record<string, DeclaredInput> = {};
  const defaults: JsonObject = {};
  for (const [name, entry] of Object.entries(written)) {
    if (!isJsonObject(entry)) continue;
    setOwn(inputs, name, declaredInput(entry));
    const initial = own(entry, "default");
    if (initial !== undefined) setOwn(defaults, name, initial);
  }
  return { inputs, defaults: { ...defaults, ...(isJsonObject(workload) ? workload : {}) } };
}

/**
 * Declared inputs as one JSON Schema of an object, for pages, clients and tools. Defaults stand in it, but no templates: what these give is
 * not known before the run. Inputs that have a default and are not declared are described by that.
 */
export function schemaOfInputs(inputs: DeclaredInputs, defaults: JsonObject): JsonObject {
  const properties: JsonObject = {};
  const required: string[] = [];
  for (const [name, declared] of Object.entries(inputs)) {
    const initial = (own(defaults, name) ?? null) as Json;
    const shown = initial === null || declared.secret ? {} : shownDefault(initial);
    setOwn(properties, name, { ...declared.schema, ...shown, ...(declared.secret && { writeOnly: true }) });
    if (declared.required && initial === null) required.push(name);
  }
  for (const [name, initial] of Object.entries(defaults)) {
    if (!Object.hasOwn(properties, name)) setOwn(properties, name, schemaOfDefault(initial));
  }
  return { type: "object", properties, ...(required.length > 0 && { required }), additionalProperties: false };
}

/** A default that is longer is not shown: it says nothing to a reader. */
const DEFAULT_CHARS_MAX = 1_000;

/** The schema of an input of which only the default is known. */
export function schemaOfDefault(value: Json): JsonObject {
  // What a template will give is not known before the run.
  if (typeof value === "string" && hasTemplate(value)) return { description: "Worked out when left out." };
  const shown = shownDefault(value);
  if (value === null) return shown;
  if (Array.isArray(value)) return { type: "array", items: {}, ...shown };
  return { type: typeof value, ...shown };
}

function shownDefault(value: Json): JsonObject {
  const json = JSON.stringify(value);
  return json.length <= DEFAULT_CHARS_MAX && !hasTemplate(value) ? { default: value } : {};
}

/** Whether some text in it is a template: what that gives is not known before the run. */
export function hasTemplate(value: Json): boolean {
  if (typeof value === "string") return value.includes("{{") || value.includes("{%");
  return typeof value === "object" && value !== null && Object.values(value).some((one) => hasTemplate(one as Json));
}
