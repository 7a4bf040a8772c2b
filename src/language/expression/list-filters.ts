import { own, setOwn } from "../../schema/words/json.ts";
import { order } from "./equality.ts";
import type { Filter } from "./filter.ts";
import { countArgument, flagArgument, itemsFor, textArgument, wrongType } from "./filter.ts";
import { memberOf } from "./lookup.ts";
import { arithmetic } from "./operators.ts";
import { spendItems, spendKeys, spendScan, spendSteps, spendText } from "./parsing/budget.ts";
import { jsonText, textOf } from "./plain.ts";
import type { Run } from "./run.ts";
import { evaluationError } from "./run.ts";
import { characters, isMap, keysOf, kindOf, unwrap } from "./values.ts";

/** Filters on lists and maps. Where a list is wanted, a map stands for its keys and a text for its characters. */
export const LIST_FILTERS: Readonly<Record<string, Filter>> = {
  first: { apply: (value, _, run) => endOf("first", value, 0, run) },
  last: { apply: (value, _, run) => endOf("last", value, -1, run) },
  list: { apply: (value, _, run) => copyOf("list", value, run) },
  keys: { apply: (value, _, run) => keysIn(mapFor("keys", value, run), run) },
  values: { apply: (value, _, run) => valuesIn(mapFor("values", value, run), run) },
  items: { apply: (value, _, run) => pairsIn(mapFor("items", value, run), run) },
  join: {
    parameters: ["separator", "attribute"],
    apply: (value, [separator, attribute], run) =>
      join(picked("join", value, attribute, run), textArgument(run, "join", separator, ""), run),
  },
  reverse: {
    apply: (value, _, run) => {
      const inner = unwrap(value);
      const all = copyOf("reverse", inner, run).reverse();
      return typeof inner === "string" ? all.join("") : all;
    },
  },
  sort: {
    parameters: ["reverse", "case_sensitive", "attribute"],
    apply: (value, [reverse, sensitive, attribute], run) => sort(value, reverse, sensitive, attribute, run),
  },
  unique: {
    parameters: ["case_sensitive", "attribute"],
    apply: (value, [sensitive, attribute], run) => unique(value, flagArgument(run, sensitive, false), attribute, run),
  },
  min: { parameters: ["case_sensitive", "attribute"], apply: (value, args, run) => extreme("min", value, args, run) },
  max: { parameters: ["case_sensitive", "attribute"], apply: (value, args, run) => extreme("max", value, args, run) },
  sum: {
    parameters: ["attribute", "start"],
    apply: (value, [attribute, start], run) => {
      let total: unknown = start === undefined ? 0 : unwrap(start);
      for (const item of picked("sum", value, attribute, run)) {
        if (typeof unwrap(item) === "string") throw wrongType(run, "sum", item, "numbers");
        total = arithmetic("+", total, item, run);
      }
      return total;
    },
  },
  batch: {
    parameters: ["size"],
    required: 1,
    apply: (value, [size], run) => {
      const count = countArgument(run, "batch", size, 1);
      if (count < 1) throw evaluationError(run, "batch takes a size of at least 1");
      const all = copyOf("batch", value, run);
      const batches: unknown[][] = [];
      for (let i = 0; i < all.length; i += count) batches.push(all.slice(i, i + count));
      return batches;
    },
  },
};

function endOf(name: string, value: unknown, index: 0 | -1, run: Run): unknown {
  const inner = unwrap(value);
  if (typeof inner === "string") return characters(inner, run.budget).at(index);
  return itemsFor(run, name, inner).at(index);
}

function copyOf(name: string, value: unknown, run: Run): unknown[] {
  const items = itemsFor(run, name, value);
  spendItems(run.budget, items.length);
  return [...items];
}

function mapFor(name: string, value: unknown, run: Run): object {
  const inner = unwrap(value);
  if (inner === undefined) return {};
  if (!isMap(inner)) throw wrongType(run, name, inner, "a map");
  return inner;
}

/** The keys of a map as items. */
export function keysIn(map: object, run: Run): string[] {
  const keys = keysOf(map, run.budget);
  spendItems(run.budget, keys.length);
  return keys;
}

/** The values of a map. */
export function valuesIn(map: object, run: Run): unknown[] {
  const keys = keysIn(map, run);
  spendKeys(run.budget, keys.length);
  return keys.map((key) => own(map, key));
}

/** The keys of a map with their values. */
export function pairsIn(map: object, run: Run): [key: string, value: unknown][] {
  const keys = keysIn(map, run);
  spendKeys(run.budget, 2 * keys.length);
  return keys.map((key) => [key, own(map, key)]);
}

/** The items, or the field `attribute` of each: a name, an index, or several with dots between. */
export function picked(name: string, value: unknown, attribute: unknown, run: Run): readonly unknown[] {
  const items = itemsFor(run, name, value);
  spendSteps(run.budget, items.length);
  const path = pathOf(attribute, run);
  if (path === undefined) return items;
  spendItems(run.budget, items.length);
  return items.map((item) => followed(item, path, run));
}

/** The field of `item` at the end of `path`. */
export function followed(item: unknown, path: readonly (string | number)[], run: Run): unknown {
  let value = item;
  for (const key of path) value = memberOf(value, key, run);
  return value;
}

/** The keys of an `attribute` argument, or undefined without one. Whole numbers are indexes. */
export function pathOf(attribute: unknown, run: Run): (string | number)[] | undefined {
  const inner = unwrap(attribute);
  if (inner === undefined || inner === null) return undefined;
  if (typeof inner === "number") return [inner];
  if (typeof inner !== "string") throw evaluationError(run, `an attribute is a name, not ${kindOf(inner)}`);
  spendScan(run.budget, inner.length);
  const keys = inner.split(".", PATH_MAX + 1);
  if (keys.length > PATH_MAX) throw evaluationError(run, `an attribute has at most ${PATH_MAX} names`);
  return keys.map((key) => (/^\d{1,9}$/.test(key) ? Number(key) : key));
}

const PATH_MAX = 100;

/** The texts of the items with `separator` between. The length is checked before the text is built. */
export function join(items: readonly unknown[], separator: string, run: Run): string {
  spendText(run.budget, separator.length * Math.max(0, items.length - 1));
  spendSteps(run.budget, items.length);
  const texts = items.map((item) => {
    const text = textOf(item, run.budget);
    spendText(run.budget, text.length);
    return text;
  });
  return texts.join(separator);
}

/** Texts by their lower case, unless letter case counts. */
function folded(value: unknown, sensitive: boolean, run: Run): unknown {
  const inner = unwrap(value);
  if (typeof inner !== "string" || sensitive) return inner;
  spendScan(run.budget, inner.length);
  return inner.toLowerCase();
}

function sort(value: unknown, reverse: unknown, sensitive: unknown, attribute: unknown, run: Run): unknown[] {
  const items = itemsFor(run, "sort", value);
  spendItems(run.budget, items.length);
  const caseCounts = flagArgument(run, sensitive, false);
  const keys = picked("sort", items, attribute, run).map((key) => folded(key, caseCounts, run));
  const direction = flagArgument(run, reverse, false) ? -1 : 1;
  const positions = keys.map((_, i) => i);
  // Missing keys come last, so that the comparison stays an order.
  positions.sort((a, b) => {
    spendSteps(run.budget, 1);
    const [left, right] = [keys[a], keys[b]];
    if (left === undefined || right === undefined) return Number(left === undefined) - Number(right === undefined);
    return direction * (order(left, right, run) ?? 0);
  });
  return positions.map((position) => items[position]);
}

function unique(value: unknown, sensitive: boolean, attribute: unknown, run: Run): unknown[] {
  const items = itemsFor(run, "unique", value);
  const seen = new Set<unknown>();
  const kept: unknown[] = [];
  const keys = picked("unique", items, attribute, run);
  for (const [i, key] of keys.entries()) {
    const identity = identityOf(folded(key, sensitive, run), run);
    if (seen.has(identity)) continue;
    seen.add(identity);
    kept.push(items[i]);
  }
  spendItems(run.budget, kept.length);
  return kept;
}

/** A value that is the same for equal values only. */
function identityOf(value: unknown, run: Run): unknown {
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "string") {
    spendText(run.budget, value.length);
    return `"${value}`;
  }
  if (typeof value !== "object" || value === null) return value;
  return jsonText(sortedKeys(value, run), run.budget);
}

/** The value with its maps' keys in one order. */
function sortedKeys(value: unknown, run: Run, depth = 0): unknown {
  const inner = unwrap(value);
  if (typeof inner === "boolean") return Number(inner);
  if (typeof inner !== "object" || inner === null || depth > SORT_DEPTH_MAX) return inner;
  spendSteps(run.budget, 8);
  if (Array.isArray(inner)) return inner.map((item) => sortedKeys(item, run, depth + 1));
  const sorted = {};
  const keys = keysOf(inner, run.budget).sort();
  spendSteps(run.budget, 4 * keys.length);
  for (const key of keys) {
    setOwn(sorted, key, sortedKeys((inner as Record<string, unknown>)[key], run, depth + 1));
  }
  return sorted;
}

/** Below this depth, keys keep their order: such deep maps are equal only if their keys are in the same order. */
const SORT_DEPTH_MAX = 100;

function extreme(name: "min" | "max", value: unknown, args: readonly unknown[], run: Run): unknown {
  const items = itemsFor(run, name, value);
  const caseCounts = flagArgument(run, args[0], false);
  const keys = picked(name, items, args[1], run);
  let best: number | undefined;
  let bestKey: unknown;
  for (const [i, raw] of keys.entries()) {
    const key = folded(raw, caseCounts, run);
    if (key === undefined) continue;
    const difference = best === undefined ? 1 : (order(key, bestKey, run) ?? 0);
    if (best === undefined || (name === "min" ? difference < 0 : difference > 0)) {
      best = i;
      bestKey = key;
    }
  }
  return best === undefined ? undefined : items[best];
}
