import { isJsonObject, type Json, type JsonObject } from "../../../src/schema/words/json.ts";

/** A map that is written as YAML; nothing written is an empty one. Throws an `Error` that says what is wrong. */
export async function readMap(text: string): Promise<JsonObject> {
  if (text.trim() === "") return {};
  const value = await readYaml(text);
  if (!isJsonObject(value)) throw new Error("must be a map, as `name: value`");
  return value;
}

/** True for a text that is rendered when it is used. */
export function isTemplate(value: Json): boolean {
  return typeof value === "string" && value.includes("{{");
}

/** Reads YAML. JSON is read as it is; the parser for the rest of YAML is loaded when something else is written. */
export async function readYaml(text: string): Promise<Json> {
  try {
    return JSON.parse(text) as Json;
  } catch {
    if (isTemplate(text)) return text;
    const { parseDocument } = await import("yaml");
    const document = parseDocument(text);
    const [problem] = document.errors;
    if (problem !== undefined) throw new Error(`is no YAML: ${problem.message.split("\n")[0]}`);
    return document.toJS({ maxAliasCount: 100 }) as Json;
  }
}
