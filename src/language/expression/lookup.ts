import { View } from "../views/view.ts";
import { spendItems, spendSteps, spendText } from "./parsing/budget.ts";
import type { Run } from "./run.ts";
import { evaluationError } from "./run.ts";
import { characters, isMap, kindOf, numeric, unwrap } from "./values.ts";

/**
 * `value.key` and `value[key]` (language document, sections 4.4 and 4.5): own fields of maps, items of lists and
 * characters of texts (negative indexes count from the end), whatever a view answers. Everything else, and everything
 * that comes from the host language, is undefined.
 */
export function memberOf(value: unknown, key: unknown, run: Run): unknown {
  const name = typeof key === "object" ? unwrap(key) : key;
  if (typeof value === "string") return typeof name === "number" ? characterAt(value, name, run) : undefined;
  if (typeof value !== "object") return undefined;
  if (value instanceof View) {
    if (typeof name === "string") return value.get(name);
    if (typeof name !== "number") return undefined;
    return name >= 0 ? value.get(name) : memberOf(unwrap(value), name, run);
  }
  if (Array.isArray(value)) return Number.isInteger(name) ? value.at(name as number) : undefined;
  if (typeof name !== "string" && typeof name !== "number") return undefined;
  return isMap(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function characterAt(text: string, index: number, run: Run): string | undefined {
  if (!Number.isInteger(index)) return undefined;
  // A character has at most two units, so that the rest of a long text need not be looked at.
  const near = index >= 0 ? text.slice(0, 2 * index + 2) : text.slice(2 * index);
  return characters(near, run.budget).at(index);
}

/** `value[start:stop:step]` of a list or text, with Python's rules. A slice of undefined is undefined. */
export function sliceOf(value: unknown, start: unknown, stop: unknown, step: unknown, run: Run): unknown {
  const inner = unwrap(value);
  if (inner === undefined) return undefined;
  if (typeof inner !== "string" && !Array.isArray(inner)) {
    throw evaluationError(run, `a slice needs text or a list, and got ${kindOf(inner)}`);
  }
  const all: string | readonly unknown[] = typeof inner === "string" ? characters(inner, run.budget) : inner;
  const stride = bound(step, run) ?? 1;
  if (stride === 0) throw evaluationError(run, "the step of a slice is 0");
  const [from, to] = sliceBounds(bound(start, run), bound(stop, run), stride, all.length);
  const count = Math.max(0, Math.ceil((to - from) / stride));
  if (typeof inner === "string") {
    spendText(run.budget, count);
  } else {
    spendItems(run.budget, count);
  }
  if (stride === 1) {
    const part = all.slice(from, Math.max(from, to));
    return typeof inner === "string" && typeof part !== "string" ? part.join("") : part;
  }
  // One by one is ten times as much work as at once.
  spendSteps(run.budget, count >>> 1);
  const picked: unknown[] = [];
  for (let i = 0; i < count; i++) picked.push(all[from + i * stride]);
  return typeof inner === "string" ? picked.join("") : picked;
}

/** First index and the index before which to stop, both inside the list; for a negative step, -1 is before the start. */
function sliceBounds(
  start: number | undefined,
  stop: number | undefined,
  step: number,
  length: number,
): [number, number] {
  const lowest = step > 0 ? 0 : -1;
  const highest = step > 0 ? length : length - 1;
  const inside = (index: number): number => Math.min(highest, Math.max(lowest, index < 0 ? index + length : index));
  const from = start === undefined ? (step > 0 ? lowest : highest) : inside(start);
  const to = stop === undefined ? (step > 0 ? highest : lowest) : inside(stop);
  return [from, to];
}

function bound(value: unknown, run: Run): number | undefined {
  const inner = unwrap(value);
  if (inner === undefined || inner === null) return undefined;
  const index = numeric(inner);
  if (index === undefined || !Number.isInteger(index)) {
    throw evaluationError(run, `a slice takes whole numbers, and got ${kindOf(inner)}`);
  }
  return index;
}
