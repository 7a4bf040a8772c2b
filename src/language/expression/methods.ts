import { View } from "../views/view.ts";
import { isEqual } from "./equality.ts";
import { countArgument, itemsFor, textArgument, wrongType } from "./filter.ts";
import { join, keysIn, pairsIn, valuesIn } from "./list-filters.ts";
import { memberOf } from "./lookup.ts";
import { spendItems, spendScan, spendSearch, spendSteps, spendText } from "./parsing/budget.ts";
import type { Run } from "./run.ts";
import { evaluationError } from "./run.ts";
import type { Signature } from "./signature.ts";
import { capitalize, charsOf, occurrences, replace, split, strip, title } from "./text-filters.ts";
import { characters, isMap, unwrap } from "./values.ts";

/** A method: `value.name(arguments)`. None changes its value. The call is never looked up in the value's own fields. */
export interface Method extends Signature {
  call(value: unknown, args: readonly unknown[], run: Run): unknown;
}

/** The Python methods of text, maps and lists that people write in templates. A method of undefined is undefined. */
export const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ["lower", changing("lower", (text) => text.toLowerCase())],
  ["upper", changing("upper", (text) => text.toUpperCase())],
  ["title", onText("title", {}, (text, _, run) => title(text, run))],
  ["capitalize", changing("capitalize", capitalize)],
  ["strip", stripping("strip", "both")],
  ["lstrip", stripping("lstrip", "start")],
  ["rstrip", stripping("rstrip", "end")],
  ["startswith", affix("startswith", (text, part) => text.startsWith(part))],
  ["endswith", affix("endswith", (text, part) => text.endsWith(part))],
  ["removeprefix", removing("removeprefix", (text, part) => (text.startsWith(part) ? text.slice(part.length) : text))],
  [
    "removesuffix",
    removing("removesuffix", (text, part) => (text.endsWith(part) ? text.slice(0, text.length - part.length) : text)),
  ],
  ["isdigit", onText("isdigit", {}, isDigits)],
  [
    "split",
    onText("split", { parameters: ["sep", "maxsplit"] }, (text, [separator, max], run) =>
      split(text, separator, countArgument(run, "split", max, -1), run),
    ),
  ],
  ["splitlines", onText("splitlines", {}, splitLines)],
  ["replace", onText("replace", { parameters: ["old", "new", "count"], required: 2 }, replaceIn)],
  ["find", onText("find", { parameters: ["sub"], required: 1 }, find)],
  ["zfill", onText("zfill", { parameters: ["width"], required: 1 }, zeroFill)],
  [
    "join",
    onText("join", { parameters: ["items"], required: 1 }, (text, [items], run) =>
      join(itemsFor(run, "join", items), text, run),
    ),
  ],
  ["get", { parameters: ["key", "default"], required: 1, call: get }],
  ["keys", onMap("keys", keysIn)],
  ["values", onMap("values", valuesIn)],
  ["items", onMap("items", pairsIn)],
  ["count", { parameters: ["value"], required: 1, call: count }],
  ["index", { parameters: ["value"], required: 1, call: index }],
]);

type TextCall = (text: string, args: readonly unknown[], run: Run) => unknown;

function onText(name: string, signature: Signature, call: TextCall): Method {
  return {
    ...signature,
    call: (value, args, run) => {
      const inner = unwrap(value);
      if (inner === undefined) return undefined;
      if (typeof inner !== "string") throw wrongType(run, `.${name}()`, inner, "text");
      return call(inner, args, run);
    },
  };
}

function onMap(name: string, call: (map: object, run: Run) => unknown[]): Method {
  return {
    call: (value, _, run) => {
      const inner = unwrap(value);
      if (inner === undefined) return undefined;
      if (!isMap(inner)) throw wrongType(run, `.${name}()`, inner, "a map");
      return call(inner, run);
    },
  };
}

function changing(name: string, change: (text: string) => string): Method {
  return onText(name, {}, (text, _, run) => {
    spendText(run.budget, text.length);
    return change(text);
  });
}

function stripping(name: string, ends: "both" | "start" | "end"): Method {
  return onText(name, { parameters: ["chars"] }, (text, [chars], run) => strip(text, charsOf(chars, run), ends, run));
}

/** `startswith` and `endswith` take one text, or a list of which one has to fit. */
function affix(name: string, fits: (text: string, part: string) => boolean): Method {
  return onText(name, { parameters: ["part"], required: 1 }, (text, [part], run) => {
    const inner = unwrap(part);
    const parts: readonly unknown[] = Array.isArray(inner) ? inner : [inner];
    spendSteps(run.budget, parts.length);
    return parts.some((one) => {
      const affixText = textArgument(run, name, one, "");
      spendScan(run.budget, affixText.length);
      return fits(text, affixText);
    });
  });
}

function removing(name: string, change: (text: string, part: string) => string): Method {
  return onText(name, { parameters: ["part"], required: 1 }, (text, [part], run) => {
    spendText(run.budget, text.length);
    return change(text, textArgument(run, name, part, ""));
  });
}

function isDigits(text: string, _: readonly unknown[], run: Run): boolean {
  spendScan(run.budget, text.length);
  return /^\p{Nd}+$/u.test(text);
}

function splitLines(text: string, _: readonly unknown[], run: Run): string[] {
  spendText(run.budget, text.length);
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  spendItems(run.budget, lines.length);
  return lines;
}

function replaceIn(text: string, [from, to, limit]: readonly unknown[], run: Run): string {
  const old = textArgument(run, "replace", from, "");
  return replace(text, old, textArgument(run, "replace", to, ""), countArgument(run, "replace", limit, -1), run);
}

function find(text: string, [wanted]: readonly unknown[], run: Run): number {
  const part = textArgument(run, "find", wanted, "");
  spendSearch(run.budget, text.length, part.length);
  const at = text.indexOf(part);
  return at < 0 ? -1 : characters(text.slice(0, at), run.budget).length;
}

function zeroFill(text: string, [width]: readonly unknown[], run: Run): string {
  const length = countArgument(run, "zfill", width, 0);
  spendText(run.budget, Math.max(text.length, length));
  const sign = /^[-+]/.exec(text)?.[0] ?? "";
  return sign + text.slice(sign.length).padStart(length - sign.length, "0");
}

/** `map.get(key, default)`. A view is asked, so that its virtual fields can be got too. */
function get(value: unknown, [key, fallback = null]: readonly unknown[], run: Run): unknown {
  if (value === undefined) return undefined;
  if (!(value instanceof View) && !isMap(value)) throw wrongType(run, ".get()", value, "a map");
  const found = memberOf(value, key, run);
  return found === undefined ? fallback : found;
}

function count(value: unknown, [wanted]: readonly unknown[], run: Run): unknown {
  const inner = unwrap(value);
  if (inner === undefined) return undefined;
  if (typeof inner === "string") return occurrences(inner, textArgument(run, "count", wanted, ""), run);
  if (!Array.isArray(inner)) throw wrongType(run, ".count()", inner, "text or a list");
  spendSteps(run.budget, inner.length);
  return inner.filter((item) => isEqual(item, wanted, run.budget)).length;
}

function index(value: unknown, [wanted]: readonly unknown[], run: Run): unknown {
  const inner = unwrap(value);
  if (inner === undefined) return undefined;
  if (typeof inner !== "string" && !Array.isArray(inner)) throw wrongType(run, ".index()", inner, "text or a list");
  let at: number;
  if (typeof inner === "string") {
    at = find(inner, [wanted], run);
  } else {
    spendSteps(run.budget, inner.length);
    at = inner.findIndex((item) => isEqual(item, wanted, run.budget));
  }
  if (at < 0) throw evaluationError(run, ".index() did not find the value");
  return at;
}
