import type { JsonObject } from "../../schema/words/json.ts";
import { isJsonObject } from "../../schema/words/json.ts";
import { View } from "../views/view.ts";
import type { Budget } from "./parsing/budget.ts";
import { spendItems, spendKeys, spendScan } from "./parsing/budget.ts";

/*
 * Values inside an expression: undefined, JSON, and views. Anything else that a scope may hold (an instance of a class,
 * a function) has no fields and no text, as if it were undefined.
 */

/** The value itself: what stands behind a view, anything else unchanged. Items inside may still be views. */
export function unwrap(value: unknown): unknown {
  let inner = value;
  while (inner instanceof View) inner = inner.plain();
  return inner;
}

/** True for a map whose own fields may be read. */
export function isMap(value: unknown): value is JsonObject {
  return isJsonObject(value);
}

/** Truth inside an expression (`and`, `or`, `not`, `if`): false are undefined, null, 0, and empty text, list and map. */
export function isTrue(value: unknown, budget: Budget): boolean {
  if (typeof value === "boolean") return value;
  const inner = unwrap(value);
  if (Array.isArray(inner)) return inner.length > 0;
  if (isMap(inner)) return keysOf(inner, budget).length > 0;
  return typeof inner === "object" ? false : Boolean(inner);
}

/** The keys of a map. To list them is what takes time, also where one of them would do. */
export function keysOf(map: object, budget: Budget): string[] {
  const keys = Object.keys(map);
  spendKeys(budget, keys.length);
  return keys;
}

/** What a value is, for messages: "a list". Never the value itself, which may be a secret. */
export function kindOf(value: unknown): string {
  const inner = unwrap(value);
  if (inner === null) return "null";
  if (typeof inner === "string") return "text";
  if (typeof inner === "number") return "a number";
  if (typeof inner === "boolean") return "a boolean";
  if (Array.isArray(inner)) return "a list";
  return isMap(inner) ? "a map" : "undefined";
}

/** The number that arithmetic sees: booleans count as 0 and 1, as in Python. Undefined for anything else. */
export function numeric(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "boolean" ? Number(value) : undefined;
}

/** The characters of a text; a text without surrogate pairs is its own list of characters. */
export function characters(text: string, budget: Budget): string | readonly string[] {
  spendScan(budget, text.length);
  if (!/[\ud800-\udbff]/.test(text)) return text;
  spendItems(budget, text.length);
  return Array.from(text);
}
