import { spendItems, spendText } from "./parsing/budget.ts";
import type { BinaryOperator } from "./parsing/syntax.ts";
import { textOf } from "./plain.ts";
import type { Run } from "./run.ts";
import { evaluationError } from "./run.ts";
import { kindOf, numeric, unwrap } from "./values.ts";

/**
 * Arithmetic on numbers, `+` and `*` also on texts and lists (language document, section 4.6). With an undefined operand
 * the result is undefined. Division and remainder round down, as in Python. Other types, division by zero, and results
 * that are no finite number are errors.
 */
export function arithmetic(op: BinaryOperator, left: unknown, right: unknown, run: Run): unknown {
  if (typeof left === "number" && typeof right === "number") return calculate(op, left, right, run);
  const a = unwrap(left);
  const b = unwrap(right);
  if (a === undefined || b === undefined) return undefined;
  const first = numeric(a);
  const second = numeric(b);
  if (first !== undefined && second !== undefined) return calculate(op, first, second, run);
  if (op === "+") {
    if (typeof a === "string" && typeof b === "string") {
      spendText(run.budget, a.length + b.length);
      return a + b;
    }
    if (Array.isArray(a) && Array.isArray(b)) {
      spendItems(run.budget, a.length + b.length);
      return [...(a as unknown[]), ...(b as unknown[])];
    }
  }
  if (op === "*") {
    if (isRepeatable(a) && second !== undefined) return repeat(a, second, run);
    if (isRepeatable(b) && first !== undefined) return repeat(b, first, run);
  }
  const advice = op === "+" ? "; write ~ to join texts, or convert with |int" : "";
  throw evaluationError(run, `"${op}" cannot take ${kindOf(a)} and ${kindOf(b)}${advice}`);
}

function calculate(op: BinaryOperator, a: number, b: number, run: Run): number {
  if (b === 0 && (op === "/" || op === "//" || op === "%")) throw evaluationError(run, "it divides by zero");
  const result = compute(op, a, b);
  if (Number.isFinite(result)) return result;
  throw evaluationError(run, `the result of "${op}" is too large, or no number`);
}

function compute(op: BinaryOperator, a: number, b: number): number {
  switch (op) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return a / b;
    case "//":
      return Math.floor(a / b);
    case "%": {
      const rest = a % b;
      return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
    }
    case "**":
      return a ** b;
  }
}

function isRepeatable(value: unknown): value is string | readonly unknown[] {
  return typeof value === "string" || Array.isArray(value);
}

function repeat(value: string | readonly unknown[], times: number, run: Run): unknown {
  if (!Number.isInteger(times)) throw evaluationError(run, '"*" repeats a text or list a whole number of times');
  const count = Math.max(0, times);
  if (typeof value === "string") {
    // The engine builds a repeated text lazily, so that the check has to come before.
    spendText(run.budget, value.length * count);
    return value === "" ? "" : value.repeat(count);
  }
  spendItems(run.budget, value.length * count);
  const items: unknown[] = [];
  if (value.length > 0) for (let i = 0; i < count; i++) for (const item of value) items.push(item);
  return items;
}

/** `-x` and `+x`. */
export function signed(op: "-" | "+", value: unknown, run: Run): unknown {
  const inner = unwrap(value);
  if (inner === undefined) return undefined;
  const number = numeric(inner);
  if (number === undefined) throw evaluationError(run, `"${op}" needs a number, and got ${kindOf(inner)}`);
  // 0 - x, so that -0 is 0.
  return op === "-" ? 0 - number : number;
}

/** `a ~ b ~ c`: the texts of all of them, one after the other. */
export function concatenate(values: readonly unknown[], run: Run): string {
  let text = "";
  for (const value of values) {
    const part = textOf(value, run.budget);
    spendText(run.budget, part.length);
    text += part;
  }
  return text;
}
