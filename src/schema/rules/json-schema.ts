import { isJsonObject, type Json, type JsonObject, own } from "../words/json.ts";

/** Most problems that are reported: the first few are the ones to fix. */
const PROBLEMS_MAX = 20;
/** Values within each other that are looked at. Arguments of a tool are flat; a schema cannot make this one go on for long. */
const DEPTH_MAX = 32;

/**
 * What is wrong with a value by a JSON Schema of an author: `arguments.city is required`. Understands `type`, `enum`, `const`,
 * `required`, `properties`, `additionalProperties`, `items`, and the limits of numbers, texts and lists. Everything else is
 * a hint for the caller; `pattern` too, since an author's regular expression could keep the process busy. Takes time
 * in proportion to value and schema, compiles nothing, and never throws.
 */
export function problemsBySchema(schema: JsonObject, value: Json, name: string): string[] {
  const problems: string[] = [];
  visit(schema, value, name, DEPTH_MAX, problems);
  return problems;
}

function visit(schema: JsonObject, value: Json, name: string, depth: number, problems: string[]): void {
  if (problems.length >= PROBLEMS_MAX) return;
  const wrong = wrongWith(schema, value);
  if (wrong !== undefined) {
    problems.push(`${name} ${wrong}`);
    return;
  }
  if (depth === 0) return;
  if (isJsonObject(value)) visitFields(schema, value, name, depth, problems);
  const items = own(schema, "items");
  if (!Array.isArray(value) || !isJsonObject(items)) return;
  for (const [index, item] of value.entries()) visit(items, item, `${name}[${index}]`, depth - 1, problems);
}

function visitFields(schema: JsonObject, value: JsonObject, name: string, depth: number, problems: string[]): void {
  const required = own(schema, "required");
  if (Array.isArray(required)) {
    for (const key of required) {
      if (typeof key === "string" && !Object.hasOwn(value, key)) problems.push(`${name}.${key} is required`);
    }
  }
  const properties = own(schema, "properties");
  const others = own(schema, "additionalProperties");
  for (const [key, field] of Object.entries(value)) {
    const known = isJsonObject(properties) ? own(properties, key) : undefined;
    const inner = known ?? others;
    if (inner === false) problems.push(`${name}.${key} is not a known field`);
    else if (isJsonObject(inner)) visit(inner, field, `${name}.${key}`, depth - 1, problems);
    if (problems.length >= PROBLEMS_MAX) return;
  }
}

/** What the value itself is, its parts left out. */
function wrongWith(schema: JsonObject, value: Json): string | undefined {
  const types = [own(schema, "type")].flat().filter((type) => typeof type === "string");
  if (types.length > 0 && !types.some((type) => isOfType(type, value))) return `must be ${types.join(" or ")}`;
  const allowed = own(schema, "enum");
  if (Array.isArray(allowed) && !allowed.some((one) => isSame(one as Json, value))) {
    return `must be one of ${JSON.stringify(allowed).slice(0, SHOWN_CHARS_MAX)}`;
  }
  const only = own(schema, "const");
  if (only !== undefined && !isSame(only as Json, value)) {
    return `must be ${JSON.stringify(only).slice(0, SHOWN_CHARS_MAX)}`;
  }
  return wrongSize(schema, value);
}

/** Lists of allowed values are shown to people. */
const SHOWN_CHARS_MAX = 200;

function wrongSize(schema: JsonObject, value: Json): string | undefined {
  const limit = (key: string) => {
    const found = own(schema, key);
    return typeof found === "number" ? found : undefined;
  };
  const outside = (size: number, least: string, most: string, what: string) => {
    const from = limit(least);
    const to = limit(most);
    if (from !== undefined && size < from) return `must ${what} ${from} at least`;
    return to !== undefined && size > to ? `must ${what} ${to} at most` : undefined;
  };
  if (typeof value === "number") {
    const above = limit("exclusiveMinimum");
    const below = limit("exclusiveMaximum");
    if (above !== undefined && value <= above) return `must be more than ${above}`;
    if (below !== undefined && value >= below) return `must be less than ${below}`;
    return outside(value, "minimum", "maximum", "be");
  }
  if (typeof value === "string") return outside([...value].length, "minLength", "maxLength", "have characters:");
  return Array.isArray(value) ? outside(value.length, "minItems", "maxItems", "have items:") : undefined;
}

function isOfType(type: string, value: Json): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isJsonObject(value);
  // An unknown type is the author's mistake; a caller could not correct it.
  return KNOWN.has(type) ? typeof value === type : true;
}

const KNOWN: ReadonlySet<string> = new Set(["string", "number", "boolean"]);

/** The order of keys means nothing in JSON Schema, but allowed values are written out as they are meant. */
function isSame(left: Json, right: Json): boolean {
  return left === right || JSON.stringify(left) === JSON.stringify(right);
}
