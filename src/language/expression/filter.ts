import type { FlowError } from "../../schema/words/errors.ts";
import { spendItems } from "./parsing/budget.ts";
import { textOf } from "./plain.ts";
import type { Run } from "./run.ts";
import { evaluationError } from "./run.ts";
import type { Signature } from "./signature.ts";
import { characters, isMap, isTrue, keysOf, kindOf, numeric, unwrap } from "./values.ts";

/**
 * A filter: `value | name(arguments)`. It gets value and arguments as they are, possibly undefined, possibly views.
 * Undefined is an empty value to every filter and never an error; a value of the wrong type is.
 */
export interface Filter extends Signature {
  apply(value: unknown, args: readonly unknown[], run: Run): unknown;
}

/** The error of a filter (or method) that got a value it cannot take: `takes` says what it can. */
export function wrongType(run: Run, name: string, value: unknown, takes: string): FlowError {
  return evaluationError(run, `${name} takes ${takes}, and got ${kindOf(value)}`);
}

/** The text that a text filter works on: scalars by their text, undefined as empty. Lists and maps are an error. */
export function textFor(run: Run, name: string, value: unknown): string {
  const inner = unwrap(value);
  if (typeof inner === "object" && inner !== null) throw wrongType(run, name, inner, "text");
  return textOf(inner, run.budget);
}

/** The items that a list filter works on: of a list; keys of a map; characters of a text; none of undefined. */
export function itemsFor(run: Run, name: string, value: unknown): readonly unknown[] {
  const items = itemsOf(value, run);
  if (items === undefined) throw wrongType(run, name, value, "a list, map or text");
  return items;
}

/** The items that a loop goes over, or undefined when the value has none. A list is returned as it is. */
export function itemsOf(value: unknown, run: Run): readonly unknown[] | undefined {
  const inner = unwrap(value);
  if (inner === undefined) return [];
  if (Array.isArray(inner)) return inner;
  if (typeof inner === "string") {
    spendItems(run.budget, inner.length);
    return [...characters(inner, run.budget)];
  }
  if (!isMap(inner)) return undefined;
  const keys = keysOf(inner, run.budget);
  spendItems(run.budget, keys.length);
  return keys;
}

/** An argument that is text, or `fallback` when it was not given. */
export function textArgument(run: Run, name: string, value: unknown, fallback: string): string {
  const inner = unwrap(value);
  if (inner === undefined) return fallback;
  return textFor(run, `an argument of ${name}`, inner);
}

/** An argument that is a whole number, or `fallback` when it was not given or null. */
export function countArgument(run: Run, name: string, value: unknown, fallback: number): number {
  const inner = unwrap(value);
  if (inner === undefined || inner === null) return fallback;
  const count = numeric(inner);
  if (count === undefined || !Number.isInteger(count)) {
    throw evaluationError(run, `${name} takes a whole number, and got ${kindOf(inner)}`);
  }
  return count;
}

/** An argument that is a yes or no, or `fallback` when it was not given. */
export function flagArgument(run: Run, value: unknown, fallback: boolean): boolean {
  return value === undefined ? fallback : isTrue(value, run.budget);
}
