import { own } from "../../schema/words/json.ts";
import { View } from "../views/view.ts";
import type { Budget } from "./parsing/budget.ts";
import { spendKeys, spendScan, spendSearch, spendSteps, tooDeep, VALUE_DEPTH_MAX } from "./parsing/budget.ts";
import type { Run } from "./run.ts";
import { evaluationError } from "./run.ts";
import { isMap, keysOf, kindOf, numeric, unwrap } from "./values.ts";

/**
 * `==`: deep on lists and maps, by value on numbers (true is 1 and false is 0, as in Python), never between text and
 * number. Undefined equals nothing, itself included (language document, section 4.4). A view that compares itself is
 * asked first.
 */
export function isEqual(left: unknown, right: unknown, budget: Budget, depth = 0): boolean {
  if (left instanceof View && left.equals !== undefined) return left.equals(unwrap(right));
  if (right instanceof View && right.equals !== undefined) return right.equals(unwrap(left));
  const a = unwrap(left);
  const b = unwrap(right);
  if (typeof a === "string" || typeof b === "string") return isSameText(a, b, budget);
  const first = numeric(a);
  if (first !== undefined) return first === numeric(b);
  if (a === null || b === null || a === undefined || b === undefined) return a === null && b === null;
  if (depth > VALUE_DEPTH_MAX) throw tooDeep();
  if (Array.isArray(a)) return Array.isArray(b) && isSameList(a, b, budget, depth);
  return isMap(a) && isMap(b) && isSameMap(a, b, budget, depth);
}

function isSameText(a: unknown, b: unknown, budget: Budget): boolean {
  if (typeof a !== "string" || typeof b !== "string" || a.length !== b.length) return false;
  spendScan(budget, a.length);
  return a === b;
}

function isSameList(a: readonly unknown[], b: readonly unknown[], budget: Budget, depth: number): boolean {
  if (a.length !== b.length) return false;
  spendSteps(budget, 1 + a.length);
  for (let i = 0; i < a.length; i++) if (!isEqual(a[i], b[i], budget, depth + 1)) return false;
  return true;
}

function isSameMap(a: object, b: object, budget: Budget, depth: number): boolean {
  const keys = keysOf(a, budget);
  if (keys.length !== keysOf(b, budget).length) return false;
  spendSteps(budget, 1 + keys.length);
  spendKeys(budget, keys.length);
  for (const key of keys) {
    if (!Object.hasOwn(b, key) || !isEqual(own(a, key), own(b, key), budget, depth + 1)) return false;
  }
  return true;
}

/** `needle in haystack`: part of a text, item of a list, key of a map. False when either is undefined. */
export function isIn(needle: unknown, haystack: unknown, run: Run): boolean {
  const inner = unwrap(haystack);
  if (inner === undefined || needle === undefined) return false;
  if (Array.isArray(inner)) {
    spendSteps(run.budget, inner.length);
    for (const item of inner) if (isEqual(needle, item, run.budget)) return true;
    return false;
  }
  const key = unwrap(needle);
  if (typeof inner === "string") {
    if (key === undefined) return false;
    if (typeof key !== "string") throw evaluationError(run, `"in" looks for text in text, and got ${kindOf(key)}`);
    spendSearch(run.budget, inner.length, key.length);
    return inner.includes(key);
  }
  if (isMap(inner)) return (typeof key === "string" || typeof key === "number") && Object.hasOwn(inner, String(key));
  throw evaluationError(run, `"in" needs text, a list or a map on its right side, and got ${kindOf(inner)}`);
}

/**
 * Order of two values: negative, 0, positive; undefined when one of them is undefined, which makes every comparison
 * false. Texts and lists compare item by item, numbers and booleans by value; any other pair is an error.
 */
export function order(left: unknown, right: unknown, run: Run, depth = 0): number | undefined {
  const a = unwrap(left);
  const b = unwrap(right);
  if (a === undefined || b === undefined) return undefined;
  const first = numeric(a);
  const second = numeric(b);
  if (first !== undefined && second !== undefined) return first - second;
  if (typeof a === "string" && typeof b === "string") {
    spendScan(run.budget, Math.min(a.length, b.length));
    return a < b ? -1 : a > b ? 1 : 0;
  }
  if (Array.isArray(a) && Array.isArray(b)) return orderLists(a, b, run, depth);
  throw evaluationError(run, `${kindOf(a)} and ${kindOf(b)} have no order; convert them first, with |int or |string`);
}

function orderLists(a: readonly unknown[], b: readonly unknown[], run: Run, depth: number): number | undefined {
  if (depth > VALUE_DEPTH_MAX) throw tooDeep();
  const shared = Math.min(a.length, b.length);
  spendSteps(run.budget, 1 + shared);
  for (let i = 0; i < shared; i++) {
    if (!isEqual(a[i], b[i], run.budget, depth + 1)) return order(a[i], b[i], run, depth + 1);
  }
  return a.length - b.length;
}
