import { messageOf } from "../../schema/words/errors.ts";
import { isDeeper } from "../../schema/words/json-depth.ts";
import type { Filter } from "./filter.ts";
import { countArgument, flagArgument, itemsFor, textArgument, textFor, wrongType } from "./filter.ts";
import { formatText } from "./format.ts";
import { memberOf } from "./lookup.ts";
import { spendSteps, spendText, tooDeep, VALUE_DEPTH_MAX } from "./parsing/budget.ts";
import { jsonText, textOf } from "./plain.ts";
import type { Run } from "./run.ts";
import { evaluationError } from "./run.ts";
import { characters, isTrue, numeric, unwrap } from "./values.ts";

const DEFAULT: Filter = {
  parameters: ["default_value", "boolean"],
  apply: (value, args, run) => {
    const [fallback, boolean] = args;
    const missing = flagArgument(run, boolean, false)
      ? !isTrue(value, run.budget)
      : (unwrap(value) ?? undefined) === undefined;
    return missing ? (args.length === 0 ? "" : fallback) : value;
  },
};

const LENGTH: Filter = {
  apply: (value, _, run) => {
    const inner = unwrap(value);
    return typeof inner === "string" ? characters(inner, run.budget).length : itemsFor(run, "length", inner).length;
  },
};

/** Filters that convert one value, or stand in for it. */
export const VALUE_FILTERS: Readonly<Record<string, Filter>> = {
  default: DEFAULT,
  d: DEFAULT,
  length: LENGTH,
  count: LENGTH,
  int: {
    parameters: ["default", "base"],
    apply: (value, [fallback, base], run) =>
      toInteger(unwrap(value), countArgument(run, "int", base, 10)) ?? (fallback === undefined ? 0 : fallback),
  },
  float: {
    parameters: ["default"],
    apply: (value, [fallback]) => toNumber(unwrap(value)) ?? (fallback === undefined ? 0 : fallback),
  },
  string: {
    apply: (value, _, run) => textOf(value, run.budget),
  },
  // Marks HTML as safe elsewhere; there is no escaping here that it would prevent.
  safe: { apply: (value) => value },
  abs: number("abs", Math.abs),
  round: {
    parameters: ["precision", "method"],
    apply: (value, [precision, method], run) => {
      const digits = Math.min(20, Math.max(-20, countArgument(run, "round", precision, 0)));
      const how = textArgument(run, "round", method, "common");
      if (how !== "common" && how !== "ceil" && how !== "floor") {
        throw evaluationError(run, 'round takes the method "common", "ceil" or "floor"');
      }
      spendSteps(run.budget, 4);
      return number("round", (x) => round(x, digits, how)).apply(value, [], run);
    },
  },
  format: {
    rest: true,
    apply: (value, args, run) => formatText(textFor(run, "format", value), args, run),
  },
  attr: {
    parameters: ["name"],
    required: 1,
    apply: (value, [name], run) => memberOf(value, name, run),
  },
  tojson: {
    parameters: ["indent"],
    apply: (value, [indent], run) =>
      jsonText(value, run.budget, Math.min(10, Math.max(0, countArgument(run, "tojson", indent, 0)))),
  },
  fromjson: { apply: (value, _, run) => fromJson(textOnly(run, "fromjson", value), run) },
  b64encode: {
    apply: (value, _, run) => {
      const text = textFor(run, "b64encode", value);
      // Three bytes at most for a UTF-16 unit, four characters for three bytes.
      spendText(run.budget, text.length * 4);
      return Buffer.from(text, "utf8").toString("base64");
    },
  },
  b64decode: {
    apply: (value, _, run) => {
      const text = textOnly(run, "b64decode", value);
      spendText(run.budget, text.length);
      if (!/^[\w+/-]*={0,2}$/.test(text.replace(/\s+/g, ""))) {
        throw evaluationError(run, "b64decode takes base64 text, and this is not");
      }
      return Buffer.from(text, "base64").toString("utf8");
    },
  },
};

function number(name: string, change: (x: number) => number): Filter {
  return {
    apply: (value, _, run) => {
      const inner = unwrap(value);
      if (inner === undefined) return undefined;
      const x = numeric(inner);
      if (x === undefined) throw wrongType(run, name, inner, "a number");
      return change(x);
    },
  };
}

const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

/** The number of a value: a number, a boolean, or text with a decimal number. Undefined for other values. */
function toNumber(value: unknown): number | undefined {
  if (typeof value !== "string") return numeric(value);
  const text = value.length > NUMBER_TEXT_MAX ? "" : value.trim();
  const result = DECIMAL.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(result) ? result : undefined;
}

function toInteger(value: unknown, base: number): number | undefined {
  if (typeof value === "string" && base !== 10) {
    if (value.length > NUMBER_TEXT_MAX) return undefined;
    const digits = value
      .trim()
      .toLowerCase()
      .replace(/^([+-]?)0[xbo]/, "$1");
    const valid = base >= 2 && base <= 36 && /^[+-]?[0-9a-z]+$/.test(digits);
    const result = valid ? Number.parseInt(digits, base) : Number.NaN;
    return Number.isFinite(result) ? result : undefined;
  }
  const result = toNumber(value);
  // + 0, so that -0.4 becomes 0 and not -0.
  return result === undefined ? undefined : Math.trunc(result) + 0;
}

/** No number is longer: the largest has 309 digits, the smallest some 770 significant ones. */
const NUMBER_TEXT_MAX = 1_500;

/** Half goes to the even neighbour, as in Python. */
function round(x: number, digits: number, how: "common" | "ceil" | "floor"): number {
  const scale = 10 ** Math.abs(digits);
  const scaled = digits >= 0 ? x * scale : x / scale;
  if (!Number.isFinite(scaled)) return x;
  let whole = how === "ceil" ? Math.ceil(scaled) : how === "floor" ? Math.floor(scaled) : Math.round(scaled);
  if (how === "common" && Math.abs(scaled - Math.trunc(scaled)) === 0.5 && whole % 2 !== 0) whole -= 1;
  return (digits >= 0 ? whole / scale : whole * scale) + 0;
}

/** The text of a text, undefined as empty: JSON and base64 are never taken from a number by its text. */
function textOnly(run: Run, name: string, value: unknown): string {
  const inner = unwrap(value);
  if (inner === undefined) return "";
  if (typeof inner !== "string") throw wrongType(run, name, inner, "text");
  return inner;
}

function fromJson(text: string, run: Run): unknown {
  if (text === "") return undefined;
  spendText(run.budget, text.length);
  if (isDeeper(text, VALUE_DEPTH_MAX)) throw tooDeep();
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // The parser's message quotes the text, which may be a secret: only the place is kept.
    const place = /position (\d+)/.exec(messageOf(error))?.[1];
    throw evaluationError(
      run,
      `fromjson takes JSON text, and this is not${place === undefined ? "" : ` (at ${place})`}`,
    );
  }
}
