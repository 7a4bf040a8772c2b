import { inputsOfDocument, schemaOfInputs } from "../../../../src/schema/inputs/declared-inputs.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../../../src/schema/words/json.ts";

/** A document whose inputs a form is for. */
export interface RunSubject {
  path: string;
  payload: Readonly<Record<string, unknown>>;
  /** Its text: the order of its inputs. */
  content: string;
}

/** A field of a form whose fields come from a document or a schema. */
export interface InputField {
  name: string;
  /** `data` is a list or a map, `any` may be everything: both are written as YAML. */
  kind: "text" | "number" | "boolean" | "data" | "any";
  /** Its default; undefined without one. */
  initial: Json | undefined;
  required: boolean;
  description: string;
  /** The values that it can have, where there are few. */
  choices: readonly Json[] | undefined;
  /** Shown as dots and never remembered. */
  secret: boolean;
  /** What its value is held to. */
  schema: JsonObject;
}

/**
 * The inputs of a playbook: those that it declares; the keys of its workload with the types of their defaults, and what
 * `metadata.exposes_as_mcp` says of them, where an agent describes its inputs.
 */
export function fieldsOf(payload: Readonly<Record<string, unknown>>): InputField[] {
  const declaring = inputsOfDocument(payload);
  if (declaring !== undefined) {
    const { inputs, defaults } = declaring;
    return fieldsOfSchema(schemaOfInputs(inputs, defaults)).map((field) => {
      const initial = own(defaults, field.name) as Json | undefined;
      return Object.hasOwn(inputs, field.name) ? { ...field, initial } : fieldOfDefault(field.name, initial ?? null);
    });
  }
  const workload = own(payload, "workload");
  const metadata = own(payload, "metadata");
  const exposed = isJsonObject(metadata) ? own(metadata, "exposes_as_mcp") : undefined;
  const declared = isJsonObject(exposed) ? own(exposed, "input_schema") : undefined;
  const described = isJsonObject(declared) ? fieldsOfSchema(declared) : [];
  const defaults = isJsonObject(workload) ? workload : {};
  const named = new Set(described.map(({ name }) => name));
  return [
    ...described.map((field) => {
      const initial = (own(defaults, field.name) as Json | undefined) ?? field.initial;
      return initial === undefined ? field : { ...field, initial };
    }),
    ...Object.entries(defaults).flatMap(([name, initial]) => (named.has(name) ? [] : [fieldOfDefault(name, initial)])),
  ];
}

/** The fields in the order in which the document names them: the database's JSON has lost it. */
export function inTextOrder(fields: readonly InputField[], text: string): InputField[] {
  const section = text.slice(Math.max(0, text.search(/^["']?(inputs|workload)["']?\s*:/m)));
  const placed = fields.map((field) => {
    const name = field.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const at = section.search(new RegExp(`(^|[\\s{,])["']?${name}["']?\\s*:`, "m"));
    return { field, at: at === -1 ? section.length : at };
  });
  return placed.sort((one, other) => one.at - other.at).map(({ field }) => field);
}

/** Fields for the properties of a JSON Schema of an object. */
export function fieldsOfSchema(schema: Readonly<Record<string, unknown>>): InputField[] {
  const properties = own(schema, "properties");
  if (!isJsonObject(properties)) return [];
  const required = own(schema, "required");
  return Object.entries(properties).map(([name, written]) => {
    const property = isJsonObject(written) ? written : {};
    const choices = own(property, "enum");
    const description = own(property, "description");
    return {
      name,
      kind: kindOfType(own(property, "type")),
      initial: own(property, "default") as Json | undefined,
      required: Array.isArray(required) && required.includes(name),
      description: typeof description === "string" ? description : "",
      choices: Array.isArray(choices) && choices.length > 0 ? (choices as Json[]) : undefined,
      secret: isSecret(name) || own(property, "format") === "password" || own(property, "writeOnly") === true,
      schema: property,
    };
  });
}

function fieldOfDefault(name: string, initial: Json): InputField {
  const kind = kindOf(initial);
  const secret = isSecret(name) && (kind === "text" || kind === "any");
  return { name, kind, initial, required: false, description: "", choices: undefined, secret, schema: {} };
}

function kindOf(value: Json): InputField["kind"] {
  if (value === null) return "any";
  if (typeof value === "string") return "text";
  if (typeof value === "number") return "number";
  return typeof value === "boolean" ? "boolean" : "data";
}

function kindOfType(type: unknown): InputField["kind"] {
  const types = [type].flat().filter((one) => one !== "null");
  const [only] = types;
  if (types.length !== 1) return "any";
  if (only === "string") return "text";
  if (only === "number" || only === "integer") return "number";
  if (only === "boolean") return "boolean";
  return only === "array" || only === "object" ? "data" : "any";
}

/** Common names of secrets; the server seals `access_token` too. */
const SECRET_NAME = /(^|[_-])(pass(word|wd|phrase)?|secret|token|api_?key|private_?key)$/i;

/** Whether a name is a common name of a secret. */
export function isSecret(name: string): boolean {
  return SECRET_NAME.test(name);
}
