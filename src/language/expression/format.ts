import { spendSteps, spendText } from "./parsing/budget.ts";
import { textOf } from "./plain.ts";
import type { Run } from "./run.ts";
import { evaluationError } from "./run.ts";
import { kindOf, numeric, unwrap } from "./values.ts";

// Bounded repetitions: a text of zeros must not be tried in every division between flags and width.
const PLACE = /%([-+0 ]{0,4})(\d{0,15})(?:\.(\d{1,15}))?([a-zA-Z%])/g;

/** What a place costs beside its text. */
const PLACE_STEPS = 8;

/**
 * `"%05.2f of %s" | format(x, y)`: the places `%s %d %i %f %x %X %e %%`, with width, precision and the flags `-`, `0`
 * and `+`. Throws `TEMPLATE_ERROR` for another place, a missing argument, or a number place without a number.
 */
export function formatText(pattern: string, args: readonly unknown[], run: Run): string {
  let next = 0;
  let text = "";
  let from = 0;
  const add = (part: string): void => {
    spendText(run.budget, part.length);
    text += part;
  };
  const addPlain = (part: string): void => {
    if (part.includes("%"))
      throw evaluationError(run, 'format has a "%" that begins no place; write "%%" for the sign');
    add(part);
  };
  for (const match of pattern.matchAll(PLACE)) {
    const [whole, flags = "", width = "", precision, type = ""] = match;
    addPlain(pattern.slice(from, match.index));
    from = match.index + whole.length;
    spendSteps(run.budget, PLACE_STEPS);
    if (type === "%") {
      add("%");
      continue;
    }
    if (next >= args.length) throw evaluationError(run, `format has no argument for place ${next + 1}`);
    const value = unwrap(args[next]);
    next += 1;
    const digits = precision === undefined ? undefined : Math.min(100, Number(precision));
    const shown = show(type, value, digits, run);
    spendText(run.budget, Number(width));
    add(
      pad(
        flags.includes("+") && numeric(value) !== undefined && !shown.startsWith("-") ? `+${shown}` : shown,
        flags,
        Number(width),
      ),
    );
  }
  addPlain(pattern.slice(from));
  return text;
}

function show(type: string, value: unknown, digits: number | undefined, run: Run): string {
  if (type === "s") {
    const text = textOf(value, run.budget);
    return digits === undefined ? text : text.slice(0, digits);
  }
  const x = numeric(value);
  if (!"dixXfFeE".includes(type)) throw evaluationError(run, `format has no place %${type}`);
  if (x === undefined) throw evaluationError(run, `format needs a number for %${type}, and got ${kindOf(value)}`);
  switch (type) {
    case "f":
    case "F":
      return x.toFixed(digits ?? 6);
    case "e":
    case "E":
      return x.toExponential(digits ?? 6);
    case "x":
      return Math.trunc(x).toString(16);
    case "X":
      return Math.trunc(x).toString(16).toUpperCase();
    default:
      return String(Math.trunc(x) + 0);
  }
}

function pad(text: string, flags: string, width: number): string {
  if (flags.includes("-")) return text.padEnd(width);
  if (!flags.includes("0")) return text.padStart(width);
  const sign = /^[-+]/.exec(text)?.[0] ?? "";
  return sign + text.slice(sign.length).padStart(width - sign.length, "0");
}
