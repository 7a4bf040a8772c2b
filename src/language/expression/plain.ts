import type { Json, JsonObject } from "../../schema/words/json.ts";
import { setOwn } from "../../schema/words/json.ts";
import type { Budget } from "./parsing/budget.ts";
import { spendKeys, spendSteps, spendText, tooDeep, VALUE_DEPTH_MAX } from "./parsing/budget.ts";
import { isMap, keysOf, unwrap } from "./values.ts";

/**
 * The value as JSON: views become what stands behind them, undefined becomes null, what is not JSON becomes null. A part
 * without any of these is returned as it is, not copied: a template that hands on ten megabytes copies nothing.
 */
export function toJson(value: unknown, budget: Budget, depth = 0): Json {
  const inner = unwrap(value);
  switch (typeof inner) {
    case "string":
    case "boolean":
      return inner;
    case "number":
      return Number.isFinite(inner) ? inner : null;
    case "object":
      if (depth > VALUE_DEPTH_MAX) throw tooDeep();
      if (Array.isArray(inner)) return listToJson(inner, budget, depth);
      return isMap(inner) ? mapToJson(inner, budget, depth) : null;
    default:
      return null;
  }
}

// Shared parts of a value count each time they are met: `[a, a]` nested forty times is a trillion items to the reader of
// the result, and has to run out of steps here.
function listToJson(list: readonly unknown[], budget: Budget, depth: number): Json[] {
  spendSteps(budget, 1 + (list.length >>> 3));
  let copy: Json[] | undefined;
  for (let i = 0; i < list.length; i++) {
    const item = toJson(list[i], budget, depth + 1);
    if (copy === undefined && item !== list[i]) copy = list.slice(0, i) as Json[];
    copy?.push(item);
  }
  return copy ?? (list as Json[]);
}

function mapToJson(map: JsonObject, budget: Budget, depth: number): JsonObject {
  spendSteps(budget, 1);
  const keys = keysOf(map, budget);
  let copy: JsonObject | undefined;
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i]!;
    const value = map[key];
    const item = toJson(value, budget, depth + 1);
    if (copy === undefined && item !== value) {
      copy = {};
      for (let j = 0; j < i; j++) setOwn(copy, keys[j]!, map[keys[j]!]);
    }
    if (copy !== undefined) setOwn(copy, key, item);
  }
  return copy ?? map;
}

/** The value as JSON text on one line, or indented by `indent` spaces. Its length is taken from the budget first. */
export function jsonText(value: unknown, budget: Budget, indent = 0): string {
  const json = toJson(value, budget);
  const expected = jsonLength(json, indent, 0, budget);
  spendText(budget, expected);
  const text = JSON.stringify(json, null, indent);
  spendText(budget, Math.max(0, text.length - expected));
  return text;
}

/** A lower bound of the length of a value's JSON text: escapes are not counted. Takes the keys of maps from the budget. */
function jsonLength(json: Json, indent: number, depth: number, budget: Budget): number {
  if (typeof json === "string") return json.length + 2;
  if (typeof json !== "object") return typeof json === "number" ? 1 : 4;
  if (json === null) return 4;
  const perItem = 1 + indent * (depth + 1);
  let length = 1;
  if (Array.isArray(json)) {
    for (const item of json) length += perItem + jsonLength(item, indent, depth + 1, budget);
  } else {
    const keys = keysOf(json, budget);
    // Once more for writing it.
    spendKeys(budget, keys.length);
    for (const key of keys) length += key.length + 3 + perItem + jsonLength(json[key]!, indent, depth + 1, budget);
  }
  return length;
}

/**
 * A value as it stands in text (language document, section 4.2): undefined is empty, null is `null`, lists and maps are
 * one-line JSON, numbers are plain.
 */
export function textOf(value: unknown, budget: Budget): string {
  if (typeof value === "string") return value;
  const inner = unwrap(value);
  switch (typeof inner) {
    case "string":
      return inner;
    case "number":
    case "boolean":
      return String(inner);
    case "object":
      if (inner === null) return "null";
      return Array.isArray(inner) || isMap(inner) ? jsonText(inner, budget) : "";
    default:
      return "";
  }
}
