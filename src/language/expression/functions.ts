import { setOwn } from "../../schema/words/json.ts";
import { countArgument } from "./filter.ts";
import { spendItems, spendSteps } from "./parsing/budget.ts";
import { toJson } from "./plain.ts";
import type { Run } from "./run.ts";
import { evaluationError } from "./run.ts";
import type { Signature } from "./signature.ts";

/** A function: `name(arguments)`. `names` are the names of the arguments given by name, which stand last. */
export interface TemplateFunction extends Signature {
  /** Takes arguments by any name, and gets those names. */
  readonly anyNames?: boolean;
  call(args: readonly unknown[], run: Run, names: readonly string[]): unknown;
}

/** Every function of the language, by name. */
export const FUNCTIONS: ReadonlyMap<string, TemplateFunction> = new Map<string, TemplateFunction>([
  ["now", { call: (_, run) => now(run) }],
  ["token", { anyNames: true, call: token }],
  ["range", { parameters: ["start", "stop", "step"], required: 1, call: range }],
]);

/** The time in UTC, as `2026-01-31T12:00:00.000Z`. */
function now(run: Run): string {
  if (run.now === undefined) throw evaluationError(run, "now() is not available here");
  spendSteps(run.budget, 4);
  return new Date(run.now()).toISOString();
}

function token(args: readonly unknown[], run: Run, names: readonly string[]): unknown {
  if (run.token === undefined) throw evaluationError(run, "token() is not available here");
  const values = args.map((value) => toJson(value, run.budget));
  const positional = values.slice(0, values.length - names.length);
  const named = {};
  for (const [i, name] of names.entries()) setOwn(named, name, values[positional.length + i]);
  return run.token({ args: positional, named });
}

/** `range(stop)`, `range(start, stop)`, `range(start, stop, step)`: whole numbers, `stop` excluded. */
function range(args: readonly unknown[], run: Run): number[] {
  const first = countArgument(run, "range", args[0], 0);
  const [start, stop] = args[1] === undefined ? [0, first] : [first, countArgument(run, "range", args[1], 0)];
  const step = countArgument(run, "range", args[2], 1);
  if (step === 0) throw evaluationError(run, "the step of range is 0");
  const count = Math.max(0, Math.ceil((stop - start) / step));
  spendItems(run.budget, count);
  // Array.from with a callback takes four times as long.
  const numbers: number[] = [];
  for (let i = 0; i < count; i += 1) numbers.push(start + i * step);
  return numbers;
}
