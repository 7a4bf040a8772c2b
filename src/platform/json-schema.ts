import { type OutputUnit, Validator } from "@cfworker/json-schema";
import { formProblem, hasPattern } from "../schema/rules/clean-json-schema.ts";
import { messageOf } from "../schema/words/errors.ts";
import type { Json, JsonObject } from "../schema/words/json.ts";

/** One thing that is wrong with data: where, as `windows.0.from`, empty for the whole. */
export interface DataProblem {
  path: string;
  message: string;
}

/** Most problems that are listed: the first few are the ones to mend. */
const PROBLEMS_MAX = 20;
/** Longest text that is matched with a `pattern`: the time grows with a power of it. */
const MATCHED_CHARS_MAX = 256;
/** Longest list of a schema that has `uniqueItems`: to find items that are there twice, all are compared with each other. */
const UNIQUE_ITEMS_MAX = 2_000;
/** Most values of the data times maps of the schema, each of which may be checked with each: 2 µs for one, if it is wrong. */
const CHECKS_MAX = 250_000;

/**
 * What is wrong with data by a JSON Schema (2020-12) of an author; empty: nothing. Nothing is compiled. Never throws, and takes no time to
 * speak of: `formProblem` refuses schemas whose patterns could take long.
 */
export function problemsWithData(schema: JsonObject, data: Json): DataProblem[] {
  const unusable = formProblem(schema);
  if (unusable !== undefined) return [{ path: "", message: `cannot be checked: its schema ${unusable}` }];
  const large = tooLarge(data, "", {
    chars: hasPattern(schema) ? MATCHED_CHARS_MAX : Number.POSITIVE_INFINITY,
    items: /"uniqueItems":/.test(JSON.stringify(schema)) ? UNIQUE_ITEMS_MAX : Number.POSITIVE_INFINITY,
  });
  if (large !== undefined) return [large];
  if (valuesIn(data) * mapsIn(schema) > CHECKS_MAX) return [{ path: "", message: "has too many values to be checked" }];
  const { $schema: _, $id: _id, ...rest } = schema;
  try {
    const { errors } = new Validator(rest, "2020-12", false).validate(data);
    const told = new Map<string, DataProblem>();
    for (const one of errors) {
      if (PARTS.has(one.keyword)) continue;
      const problem = problemOf(one);
      if (!told.has(problem.path)) told.set(problem.path, problem);
      if (told.size === PROBLEMS_MAX) break;
    }
    return [...told.values()];
  } catch (error) {
    return [{ path: "", message: `cannot be checked: its schema is not valid (${messageOf(error)})` }];
  }
}

/** Keywords of which what is below them is told. */
const PARTS: ReadonlySet<string> = new Set([
  ...["properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "dependentSchemas"],
  ...["items", "prefixItems", "unevaluatedItems", "allOf", "if"],
]);

/** What is said of the formats that people write most. */
const FORMATS: Readonly<Record<string, string>> = {
  date: "must be a date such as 2026-01-31",
  "date-time": "must be a date and time such as 2026-01-31T06:00:00Z",
};

function problemOf({ keyword, instanceLocation, error }: OutputUnit): DataProblem {
  const keys = instanceLocation
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  const path = keys.join(".");
  const [, name = ""] = /^Instance does not have required property "(.*)"\.$/s.exec(error) ?? [];
  if (keyword === "required") return { path: [...keys, name].join("."), message: "is required" };
  if (keyword === "false") return { path, message: "is not a known field" };
  const [, allowed] = /^Instance does not match any of (\[.*\])\.$/s.exec(error) ?? [];
  if (allowed !== undefined) return { path, message: `must be one of ${allowed.slice(0, 200)}` };
  const [, format] = /^String does not match format "(.*)"\.$/.exec(error) ?? [];
  if (keyword === "format" && format !== undefined)
    return { path, message: FORMATS[format] ?? `must be of format ${format}` };
  const [, type] = /Expected "(.*)"\.$/.exec(error) ?? [];
  if (keyword === "type" && type !== undefined) return { path, message: `must be ${type}` };
  return { path, message: error.replace(/\.$/, "").slice(0, 200) };
}

function tooLarge(data: Json, path: string, max: { chars: number; items: number }): DataProblem | undefined {
  if (typeof data === "string" && data.length > max.chars)
    return { path, message: `must have ${max.chars} characters at most, as its schema has patterns` };
  if (Array.isArray(data) && data.length > max.items) return { path, message: `must have ${max.items} items at most` };
  if (typeof data !== "object" || data === null) return undefined;
  for (const [key, value] of Object.entries(data)) {
    const problem = tooLarge(value as Json, path === "" ? key : `${path}.${key}`, max);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function valuesIn(data: Json): number {
  if (typeof data !== "object" || data === null) return 1;
  return Object.values(data).reduce<number>((count, value) => count + valuesIn(value as Json), 1);
}

function mapsIn(schema: Json): number {
  if (typeof schema !== "object" || schema === null) return 0;
  const own = Array.isArray(schema) ? 0 : 1;
  return Object.values(schema).reduce<number>((count, value) => count + mapsIn(value as Json), own);
}
