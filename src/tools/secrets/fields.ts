import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";

/** The first of these keys that holds text (numbers as their text); empty text counts as absent. */
export function textField(data: JsonObject, ...keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const value = own(data, key);
    if (typeof value === "string" && value.trim() !== "") return value;
    if (typeof value === "number") return String(value);
  }
  return undefined;
}

/** The same, or `FlowError` INVALID_INPUT that names the first spelling. `where` names the subject: "Credential 'x'". */
export function requiredText(where: string, data: JsonObject, ...keys: readonly string[]): string {
  const value = textField(data, ...keys);
  if (value !== undefined) return value;
  throw new FlowError("INVALID_INPUT", `${where} has no '${keys[0]}'.`);
}

/** A list of words, written as a list or as text with spaces or commas between them. */
export function wordsField(data: JsonObject, ...keys: readonly string[]): string[] | undefined {
  for (const key of keys) {
    const value = own(data, key);
    if (Array.isArray(value)) return value.map(String);
    if (typeof value === "string" && value.trim() !== "") return value.split(/[\s,]+/).filter((word) => word !== "");
  }
  return undefined;
}

/** A field by its name, else by its path with dots: `data.token`. */
export function fieldAt(data: Json, path: string): Json | undefined {
  const direct = isJsonObject(data) ? (own(data, path) as Json | undefined) : undefined;
  if (direct !== undefined || !path.includes(".")) return direct;
  let value: Json | undefined = data;
  for (const key of path.split(".")) {
    value = isJsonObject(value) ? (own(value, key) as Json | undefined) : undefined;
  }
  return value;
}

/** An address of http or https. Throws `FlowError` INVALID_INPUT that says where it stands, without its query. */
export function addressOf(where: string, text: string): URL {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return url;
  const shown = text.split("?")[0]?.slice(0, 200);
  throw new FlowError("INVALID_INPUT", `${where} is '${shown}': an address that begins with https:// is expected.`);
}

/** Seconds of a lifetime given as a number or a numeric text; undefined for anything else. */
export function secondsOf(value: Json | undefined): number | undefined {
  const seconds = typeof value === "number" || (typeof value === "string" && value !== "") ? Number(value) : Number.NaN;
  return Number.isFinite(seconds) && seconds >= 1 ? Math.floor(seconds) : undefined;
}
