import { isJsonObject, type Json, type JsonObject } from "../../schema/words/json.ts";

/**
 * A value of format JSONCompact as JSON, by its type's name (`Nullable(Int64)`, `Array(Decimal(9, 2))`): wide integers and
 * decimals come as text and become numbers, integers only while they are exact. Times come as ISO texts already.
 */
export function clickhouseJson(value: Json, type: string): Json {
  if (value === null) return null;
  const [name, inner] = splitType(type);
  if (WRAPPERS.has(name)) return clickhouseJson(value, inner);
  if (Array.isArray(value)) {
    if (name === "Tuple") {
      const types = parts(inner);
      return value.map((item, index) => clickhouseJson(item, withoutName(types[index] ?? "")));
    }
    return value.map((item) => clickhouseJson(item, inner));
  }
  if (isJsonObject(value)) {
    const of = name === "Map" ? (parts(inner)[1] ?? "") : "";
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clickhouseJson(item, of)]));
  }
  if (typeof value !== "string") return value;
  if (/^U?Int(8|16|32|64|128|256)$/.test(name)) return exact(value);
  if (name.startsWith("Decimal")) return finite(value);
  // The default format of servers whose user may not change settings.
  if (name.startsWith("DateTime")) return value.replace(" ", "T");
  return value;
}

/** Types that wrap another type. */
const WRAPPERS: ReadonlySet<string> = new Set(["Nullable", "LowCardinality"]);

/** A parameter: the type that it has in the statement (`{p1:Int64}`), and its text in the address. */
export function clickhouseParameter(value: Json): { type: string; text: string } {
  if (value === null) return { type: "Nullable(String)", text: "\\N" };
  return { type: typeOf(value), text: parameterText(value, false) };
}

/** The text of a parameter whose type the statement itself names. */
export function parameterText(value: Json, quoted: boolean): string {
  if (value === null) return quoted ? "NULL" : "\\N";
  if (typeof value === "number") return String(value);
  if (typeof value === "boolean") return value ? "true" : "false";
  if (Array.isArray(value)) return `[${value.map((item) => parameterText(item, true)).join(",")}]`;
  const escaped = (typeof value === "string" ? value : JSON.stringify(value)).replace(
    /[\\\t\n\r']/g,
    (char) => ESCAPES[char]!,
  );
  return quoted ? `'${escaped}'` : escaped;
}

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "'": "\\'" };

function typeOf(value: Json): string {
  if (typeof value === "number") return Number.isSafeInteger(value) ? "Int64" : "Float64";
  if (typeof value === "boolean") return "Bool";
  if (!Array.isArray(value)) return "String";
  const types = [...new Set(value.filter((item) => item !== null).map(typeOf))];
  const isNumeric = types.every((type) => type === "Int64" || type === "Float64");
  const inner = types.length === 1 ? types[0]! : isNumeric && types.length > 0 ? "Float64" : "String";
  return `Array(${value.includes(null) ? `Nullable(${inner})` : inner})`;
}

/** `Array(Int64)` → `Array`, `Int64`. */
function splitType(type: string): [string, string] {
  const open = type.indexOf("(");
  return open === -1 ? [type.trim(), ""] : [type.slice(0, open).trim(), type.slice(open + 1, type.lastIndexOf(")"))];
}

/** The parts between commas that stand in no parentheses. */
function parts(text: string): string[] {
  const found: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at <= text.length; at += 1) {
    const char = text[at];
    if (char === "(") depth += 1;
    if (char === ")") depth -= 1;
    if (char === undefined || (char === "," && depth === 0)) {
      found.push(text.slice(start, at).trim());
      start = at + 1;
    }
  }
  return found;
}

/** A field of a tuple may have a name before its type. */
function withoutName(field: string): string {
  return /^[`\w]+ (.*)$/s.exec(field)?.[1] ?? field;
}

function exact(text: string): Json {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : text;
}

function finite(text: string): Json {
  const number = Number(text);
  return Number.isFinite(number) ? number : text;
}

/** A row of a result as a map. */
export function clickhouseRow(cells: readonly Json[], columns: readonly { name: string; type: string }[]): JsonObject {
  return Object.fromEntries(columns.map(({ name, type }, index) => [name, clickhouseJson(cells[index] ?? null, type)]));
}
