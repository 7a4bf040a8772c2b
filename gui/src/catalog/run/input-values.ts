import { problemsBySchema } from "../../../../src/schema/rules/json-schema.ts";
import { type Json, type JsonObject, setOwn } from "../../../../src/schema/words/json.ts";
import { isTemplate, readYaml } from "../../parts/read-yaml.ts";
import type { InputField } from "./inputs.ts";

/** What stands in a form, by the names of its fields. */
export type Texts = Readonly<Record<string, string>>;

/** What a form comes to: its values, or what is wrong by the names of its fields. */
export interface ReadInputs {
  values: JsonObject;
  problems: Readonly<Record<string, string>>;
}

/** What stands in a field for a value. */
export function textOf({ kind, choices }: InputField, value: Json | undefined): string {
  if (value === undefined) return "";
  if (choices !== undefined || kind === "data") return typeof value === "string" ? value : jsonOf(value);
  if (kind === "any") return value === null ? "" : yamlOf(value);
  return value === null ? "" : String(value);
}

/** Short ones in one line. */
const LINE_MAX = 60;

function jsonOf(value: Json): string {
  const line = JSON.stringify(value);
  return line.length <= LINE_MAX ? line : JSON.stringify(value, null, 2);
}

/** A text that parses as this value again: quoted if it would parse as another type. */
function yamlOf(value: Json): string {
  if (typeof value !== "string") return jsonOf(value);
  return /^[\p{L}/][\p{L}\p{N} ./_-]*$/u.test(value) && !/^(true|false|null|yes|no|on|off|~)$/i.test(value)
    ? value
    : JSON.stringify(value);
}

/** The values of a form. A field that is not required and left empty without having a default is not among them. */
export async function readInputs(fields: readonly InputField[], texts: Texts): Promise<ReadInputs> {
  const values: JsonObject = {};
  const problems: Record<string, string> = {};
  for (const field of fields) {
    const text = texts[field.name] ?? "";
    // A template gives its value where the default stands, and not where an input does.
    if (field.initial !== undefined && isTemplate(field.initial) && text === textOf(field, field.initial)) continue;
    try {
      const value = await readValue(field, text);
      if (value === undefined) {
        if (field.required) setOwn(problems, field.name, "is required");
        continue;
      }
      setOwn(values, field.name, value);
      const wrong = isTemplate(value) ? [] : problemsBySchema(field.schema, value, "");
      if (wrong.length > 0) setOwn(problems, field.name, wrong.map((one) => one.trim()).join("; "));
    } catch (error) {
      setOwn(problems, field.name, error instanceof Error ? error.message : String(error));
    }
  }
  return { values, problems };
}

async function readValue(field: InputField, text: string): Promise<Json | undefined> {
  const { kind, choices, initial } = field;
  if (choices !== undefined) {
    return choices.find((choice) => (typeof choice === "string" ? choice : JSON.stringify(choice)) === text);
  }
  // An empty text is a text where the default is one; elsewhere nothing was written.
  if (kind === "text") return text === "" && typeof initial !== "string" ? undefined : text;
  if (kind === "boolean") return text === "" ? undefined : text === "true";
  if (text.trim() === "") {
    if (kind === "any" && initial === null) return null;
    if (initial === undefined) return undefined;
    throw new Error(kind === "number" ? "must be a number" : "must not be empty: write null, [] or {}");
  }
  if (kind === "any" && field.secret) return text;
  if (kind !== "number") return await readYaml(text);
  // A template may stand where a number is: it is text then.
  if (isTemplate(text)) return text;
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error("must be a number");
  return value;
}
