import { View } from "../views/view.ts";
import { isEqual, isIn, order } from "./equality.ts";
import { wrongType } from "./filter.ts";
import { spendSteps } from "./parsing/budget.ts";
import type { Run } from "./run.ts";
import { evaluationError } from "./run.ts";
import type { Signature } from "./signature.ts";
import { isMap, numeric, unwrap } from "./values.ts";

/** A test: `value is name(arguments)`. */
export interface Predicate extends Signature {
  holds(value: unknown, args: readonly unknown[], run: Run): boolean;
}

const EQUAL = binary((value, other, run) => isEqual(value, other, run.budget));
const NOT_EQUAL = binary((value, other, run) => !isEqual(value, other, run.budget));
const LESS = binary((value, other, run) => (order(value, other, run) ?? 1) < 0);
const LESS_OR_EQUAL = binary((value, other, run) => (order(value, other, run) ?? 1) <= 0);
const GREATER = binary((value, other, run) => (order(value, other, run) ?? -1) > 0);
const GREATER_OR_EQUAL = binary((value, other, run) => (order(value, other, run) ?? -1) >= 0);
const LIST = of((value) => Array.isArray(value));
const NULL = of((value) => value === null);

/** Every test of the language, by name. A test of undefined is false, except `undefined`. */
export const PREDICATES: ReadonlyMap<string, Predicate> = new Map<string, Predicate>([
  ["defined", { holds: (value) => value !== undefined }],
  ["undefined", { holds: (value) => value === undefined }],
  ["none", NULL],
  ["null", NULL],
  ["string", of((value) => typeof value === "string")],
  ["number", of((value) => numeric(value) !== undefined)],
  ["integer", of((value) => Number.isInteger(value))],
  ["float", of((value) => typeof value === "number" && !Number.isInteger(value))],
  ["boolean", of((value) => typeof value === "boolean")],
  ["true", of((value) => value === true)],
  ["false", of((value) => value === false)],
  ["mapping", of(isMap)],
  ["list", LIST],
  ["sequence", of((value) => isIterable(value))],
  ["iterable", of((value) => isIterable(value))],
  ["odd", { holds: (value, _, run) => Math.abs(integer("odd", value, run) % 2) === 1 }],
  ["even", { holds: (value, _, run) => integer("even", value, run) % 2 === 0 }],
  ["divisibleby", { parameters: ["number"], required: 1, holds: isDivisible }],
  ["lower", cased("lower", (text) => text.toLowerCase())],
  ["upper", cased("upper", (text) => text.toUpperCase())],
  ["in", binary((value, other, run) => isIn(value, other, run))],
  ["sameas", binary((value, other) => unwrap(value) === unwrap(other))],
  ["equalto", EQUAL],
  ["eq", EQUAL],
  ["==", EQUAL],
  ["ne", NOT_EQUAL],
  ["!=", NOT_EQUAL],
  ["lt", LESS],
  ["lessthan", LESS],
  ["<", LESS],
  ["le", LESS_OR_EQUAL],
  ["<=", LESS_OR_EQUAL],
  ["gt", GREATER],
  ["greaterthan", GREATER],
  [">", GREATER],
  ["ge", GREATER_OR_EQUAL],
  [">=", GREATER_OR_EQUAL],
]);

function of(holds: (value: unknown) => boolean): Predicate {
  return { holds: (value) => holds(value instanceof View ? unwrap(value) : value) };
}

function binary(holds: (value: unknown, other: unknown, run: Run) => boolean): Predicate {
  return { parameters: ["other"], required: 1, holds: (value, [other], run) => holds(value, other, run) };
}

function cased(name: string, change: (text: string) => string): Predicate {
  return {
    holds: (value, _, run) => {
      const inner = unwrap(value);
      if (inner === undefined) return false;
      if (typeof inner !== "string") throw wrongType(run, `the test "${name}"`, inner, "text");
      // Two copies, as for a text that is written.
      spendSteps(run.budget, inner.length >>> 4);
      return inner === change(inner) && inner.toLowerCase() !== inner.toUpperCase();
    },
  };
}

function isIterable(value: unknown): boolean {
  return typeof value === "string" || Array.isArray(value) || isMap(value);
}

/** The whole number that `odd`, `even` and `divisibleby` ask about; NaN, which is neither, for undefined. */
function integer(name: string, value: unknown, run: Run): number {
  const inner = unwrap(value);
  if (inner === undefined) return Number.NaN;
  const x = numeric(inner);
  if (x === undefined) throw wrongType(run, `the test "${name}"`, inner, "a number");
  return x;
}

function isDivisible(value: unknown, [by]: readonly unknown[], run: Run): boolean {
  const divisor = integer("divisibleby", by, run);
  if (divisor === 0) throw evaluationError(run, "it divides by zero");
  return integer("divisibleby", value, run) % divisor === 0;
}
