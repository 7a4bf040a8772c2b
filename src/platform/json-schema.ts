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
/** Longest list: to find items that are there twice, all are compared with each other. */
const ITEMS_MAX = 2_000;

/**
 * What is wrong with data by a JSON Schema (2020-12) of an author; empty: nothing. Nothing is compiled. Never throws, and takes no time to
 * speak of: `formProblem` refuses schemas whose patterns could take long.
 */
export function problemsWithData(schema: JsonObject, data: Json): DataProblem[] {
  const unusable = formProblem(schema);
  if (unusable !== undefined) return [{ path: "", message: `cannot be checked: its schema ${unusable}` }];
  const large = tooLarge(data, "", hasPattern(schema) ? MATCHED_CHARS_MAX : Number.POSITIVE_INFINITY);
  if (large !== undefined) return [large];
  const { $schema: _, $id: _id, ...rest } = schema;
  try {
    const { errors } = new Validator(rest, "2020-12", false).validate(data);
    const told = errors.filter(({ keyword }) => !PARTS.has(keyword)).map(problemOf);
    return told
      .filter(({ path }, index) => told.findIndex((one) => one.path === path) === index)
      .slice(0, PROBLEMS_MAX);
  } catch (error) {
    return [{ path: "", message: `cannot be checked: its schema is not valid (${messageOf(error)})` }];
  }
}

/** Keywords of which what is below them is told. */
const PARTS: ReadonlySet<string> = new Set([
  ...["properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "dependentSchemas"],
  ...["items", "prefixItems", "unevaluatedItems", "allOf", "if"],
]);

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
  const [, type] = /Expected "(.*)"\.$/.exec(error) ?? [];
  if (keyword === "type" && type !== undefined) return { path, message: `must be ${type}` };
  return { path, message: error.replace(/\.$/, "").slice(0, 200) };
}

function tooLarge(data: Json, path: string, charsMax: number): DataProblem | undefined {
  if (typeof data === "string" && data.length > charsMax)
    return { path, message: `must have ${charsMax} characters at most, as the form has patterns` };
  if (Array.isArray(data) && data.length > ITEMS_MAX) return { path, message: `must have ${ITEMS_MAX} items at most` };
  if (typeof data !== "object" || data === null) return undefined;
  for (const [key, value] of Object.entries(data)) {
    const problem = tooLarge(value as Json, path === "" ? key : `${path}.${key}`, charsMax);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
