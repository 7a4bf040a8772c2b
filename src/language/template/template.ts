import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { isJsonObject, setOwn } from "../../schema/words/json.ts";
import { compileExpression } from "../expression/compile.ts";
import {
  type Account,
  type Budget,
  type Limits,
  openBudget,
  tooDeep,
  VALUE_DEPTH_MAX,
} from "../expression/parsing/budget.ts";
import { excerpt, offsetOf } from "../expression/parsing/fault.ts";
import { parseExpression } from "../expression/parsing/parse.ts";
import { textLiterals } from "../expression/parsing/syntax.ts";
import { toJson } from "../expression/plain.ts";
import type { Run, TokenCall } from "../expression/run.ts";
import { isMap, keysOf, unwrap } from "../expression/values.ts";
import type { Scope } from "../views/scope.ts";
import { atOnce, type Pieces } from "../words/pieces.ts";
import { type Block, collectBlockNeeds, expressionsOf, nestBlocks } from "./blocks.ts";
import { collectNeeds, type Needs, type NeedsDraft, openNeeds } from "./needs.ts";
import { type Compiled, scanInPieces, type TextProblem } from "./segments.ts";
import { renderBlocks } from "./write.ts";

/** What a rendering is given besides its scope. */
export interface RenderOptions {
  /** Time of `now()` in milliseconds since 1970. Absent: `now()` is an error, so that nothing reads a clock unnoticed. */
  readonly now?: () => number;
  /** Answers `token(…)`. Absent: `token()` is an error. */
  readonly token?: (call: TokenCall) => unknown;
  /** Applied to the value of a whole template before it becomes JSON: code is given results with their virtual fields. */
  readonly whole?: (value: unknown) => unknown;
  /** Limits of the whole rendering; those not given have their defaults. */
  readonly limits?: Partial<Limits>;
  /** Shared with other renderings: none of them may use what the others have used. */
  readonly account?: Account;
}

/** A place of a template that does not parse, or that says something else than was meant. */
interface TemplateProblem extends TextProblem {
  /** Keys and indexes from the source to the text that `offset` counts in. */
  readonly path: readonly (string | number)[];
  /** It parses and can be evaluated, and is never what was meant. */
  readonly isMixed?: true;
}

/** A JSON value with templates in its texts, compiled. */
export interface Template {
  readonly source: Json;
  /** No text of it is a template: it renders to its source. */
  readonly constant: boolean;
  readonly needs: Needs;
  /** Places that stay as they are because they do not parse; with code `TEMPLATE_BUDGET`: that make rendering fail. */
  readonly problems: readonly TemplateProblem[];
  /**
   * Renders all texts, with one budget. The result is plain JSON and may share parts with the source and with values of
   * the scope: do not change it. Throws `TEMPLATE_ERROR`, `TEMPLATE_BUDGET`, and whatever a view or `token` throws.
   */
  render(scope: Scope, options?: RenderOptions): Json;
}

/** A `when`, compiled. */
export interface Condition {
  readonly source: Json;
  readonly needs: Needs;
  readonly problems: readonly TemplateProblem[];
  /** Evaluates it (language document, section 4.8). Throws as {@link Template.render}, also for text that does not parse. */
  test(scope: Scope, options?: RenderOptions): boolean;
  /** True when one of `names` is a text literal of it, as in `event.name == "step.failed"`. */
  mentions(names: readonly string[]): boolean;
}

/**
 * Compiles the templates of a value: of every text, through maps and lists, but not keys (language document, section 4). Never
 * throws: errors are in `problems`.
 */
export function compileTemplate(source: Json): Template {
  return atOnce(compileTemplateInPieces(source));
}

/** {@link compileTemplate} in pieces, the longest of which is one expression. */
export function* compileTemplateInPieces(source: Json): Pieces<Template> {
  const draft = openNeeds();
  const problems: TemplateProblem[] = [];
  const part = isFixed(source) ? undefined : yield* compilePart(source, [], { needs: draft, problems });
  if (part === undefined) return { source, constant: true, needs: draft, problems, render: () => source };
  return { source, constant: false, needs: draft, problems, render: (scope, options) => part(openRun(scope, options)) };
}

/**
 * Compiles a condition: text without braces is an expression, text with braces a template; any other value is its own
 * truth. Never throws: a condition that does not parse has `problems`, and `test` throws.
 */
export function compileCondition(source: Json): Condition {
  return atOnce(compileConditionInPieces(source));
}

/** {@link compileCondition} in pieces, the longest of which is one expression. */
export function* compileConditionInPieces(source: Json): Pieces<Condition> {
  if (typeof source !== "string") {
    const template = yield* compileTemplateInPieces(source);
    return {
      ...template,
      test: (scope, options) => truthy(template.render(scope, options), openBudget()),
      mentions: () => false,
    };
  }
  if (MARKS.test(source)) return yield* compileTextCondition(source);
  if (source.trim() === "") return { ...compileTemplate(source), test: () => false, mentions: () => false };
  const needs = openNeeds();
  try {
    const expression = parseExpression(source);
    const evaluate = compileExpression(expression);
    collectNeeds(expression.root, new Set(), needs);
    const literals = new Set(textLiterals(expression.root));
    return {
      source,
      needs,
      problems: [],
      test: (scope, options) => {
        const run = openRun(scope, options);
        return truthy(evaluate(run), run.budget);
      },
      mentions: (names) => names.some((name) => literals.has(name)),
    };
  } catch (error) {
    return brokenCondition(source, error);
  }
}

/**
 * Truth of a `when` (language document, section 4.8). Texts are false when they are, letter case and surrounding white
 * space ignored, one of: nothing, `false`, `0`, `no`, `none`, `null`, `off`, `{}`, `[]`.
 */
export function truthy(value: unknown, budget: Budget): boolean {
  const inner = unwrap(value);
  if (typeof inner === "string") return !FALSE_TEXTS.has(inner.trim().toLowerCase());
  if (Array.isArray(inner)) return inner.length > 0;
  if (typeof inner === "object") return isMap(inner) && keysOf(inner, budget).length > 0;
  return Boolean(inner);
}

const FALSE_TEXTS: ReadonlySet<string> = new Set(["", "false", "0", "no", "none", "null", "off", "{}", "[]"]);

/** A text without any of these is no template. */
const MARKS = /\{[{%#]/;

/** A value that has to be rendered; undefined for a constant. */
type Part = ((run: Run) => Json) | undefined;

interface Findings {
  readonly needs: NeedsDraft;
  readonly problems: TemplateProblem[];
}

type Path = readonly (string | number)[];

/** A value without templates that has no parts, as most are. */
function isFixed(source: Json): boolean {
  return typeof source === "string" ? !MARKS.test(source) : typeof source !== "object" || source === null;
}

function* compilePart(source: Json, path: Path, findings: Findings): Pieces<Part> {
  if (typeof source === "string") return yield* compileTextPart(source, path, findings);
  if (typeof source !== "object" || source === null) return undefined;
  if (path.length > VALUE_DEPTH_MAX) return tooDeepPart(path, findings);
  if (Array.isArray(source)) {
    const parts: Part[] = [];
    for (const [i, item] of source.entries()) {
      parts.push(isFixed(item) ? undefined : yield* compilePart(item, [...path, i], findings));
    }
    if (parts.every((part) => part === undefined)) return undefined;
    return (run) => parts.map((part, i) => (part === undefined ? source[i]! : part(run)));
  }
  if (!isJsonObject(source)) return undefined;
  const entries: { key: string; value: Json; part: Part }[] = [];
  for (const key of Object.keys(source)) {
    const value = source[key]!;
    entries.push({
      key,
      value,
      part: isFixed(value) ? undefined : yield* compilePart(value, [...path, key], findings),
    });
  }
  if (entries.every(({ part }) => part === undefined)) return undefined;
  return (run) => {
    const map = {};
    for (const { key, value, part } of entries) setOwn(map, key, part === undefined ? value : part(run));
    return map;
  };
}

function* compileTextPart(source: string, path: Path, findings: Findings): Pieces<Part> {
  const text = yield* compileText(source);
  for (const problem of text.problems) findings.problems.push({ ...problem, path });
  const fatal = text.problems.find(({ error }) => error.code === "TEMPLATE_BUDGET");
  if (fatal !== undefined) return failing(fatal.error);
  addNeeds(text, findings.needs);
  const { whole, blocks } = text;
  if (whole !== undefined) return (run) => toJson(run.whole(whole.evaluate(run)), run.budget);
  // Only text that looks like a template mark, or that does not parse.
  if (blocks.every((block) => block.kind === "text")) {
    const fixed = blocks.map((block) => block.text).join("");
    return fixed === source ? undefined : () => fixed;
  }
  return (run) => renderBlocks(blocks, run);
}

interface Text {
  /** The one expression of a whole template: its value is the result, not its text. */
  readonly whole: Compiled | undefined;
  readonly blocks: readonly Block[];
  readonly problems: readonly TextProblem[];
}

function* compileText(source: string): Pieces<Text> {
  const { segments, problems } = yield* scanInPieces(source);
  const whole = segments.find((segment) => segment.kind === "output");
  if (whole !== undefined && source.trim() === whole.source) return { whole: whole.expression, blocks: [], problems };
  const nested = nestBlocks(segments);
  yield;
  return { whole: undefined, blocks: nested.blocks, problems: [...problems, ...nested.problems] };
}

function addNeeds(text: Text, draft: NeedsDraft): void {
  if (text.whole !== undefined) collectNeeds(text.whole.root, new Set(), draft);
  collectBlockNeeds(text.blocks, new Set(), draft);
}

function* compileTextCondition(source: string): Pieces<Condition> {
  const text = yield* compileText(source);
  const [problem] = text.problems;
  if (problem !== undefined) return brokenCondition(source, problem.error, text.problems);
  const needs = openNeeds();
  addNeeds(text, needs);
  const { whole, blocks } = text;
  const expressions = whole === undefined ? [...expressionsOf(blocks)] : [whole];
  const literals = new Set(expressions.flatMap(({ root }) => textLiterals(root)));
  const texts = blocks.filter((block) => block.kind === "text").map((block) => block.text);
  return {
    source,
    needs,
    problems: alwaysTrue(source, blocks),
    test: (scope, options) => {
      const run = openRun(scope, options);
      return truthy(whole === undefined ? renderBlocks(blocks, run) : whole.evaluate(run), run.budget);
    },
    mentions: (names) => names.some((name) => literals.has(name) || texts.some((part) => part.includes(name))),
  };
}

/** `{{ a }} == "x"` is a text that is never empty: legal, and never what was meant. */
function alwaysTrue(source: string, blocks: readonly Block[]): TemplateProblem[] {
  const isMixed = blocks.some(({ kind }) => kind === "output");
  if (!isMixed || !blocks.some((block) => block.kind === "text" && block.text.trim() !== "")) return [];
  const message =
    `The condition ${excerpt(source)} mixes text with {{ … }}, so that it is true whatever the values are: ` +
    "put the whole condition into one {{ … }}, or write it without braces.";
  return [{ offset: 0, path: [], message, error: new FlowError("TEMPLATE_ERROR", message), isMixed: true }];
}

/** A condition that does not parse: false or true would both be a guess, so that testing it throws. */
function brokenCondition(source: string, error: unknown, problems?: readonly TextProblem[]): Condition {
  if (!(error instanceof FlowError)) throw error;
  const found = problems ?? [{ offset: offsetOf(error), message: error.message, error }];
  return {
    source,
    needs: openNeeds(),
    problems: found.map((problem) => ({ ...problem, path: [] })),
    test: () => {
      throw new FlowError(error.code, error.message, { detail: error.detail ?? null });
    },
    mentions: (names) => names.some((name) => source.includes(name)),
  };
}

function tooDeepPart(path: Path, findings: Findings): Part {
  const error = tooDeep();
  findings.problems.push({ offset: 0, path, message: error.message, error });
  return failing(error);
}

function failing({ code, message, detail }: FlowError): Part {
  return () => {
    throw new FlowError(code, message, { detail: detail ?? null });
  };
}

function openRun(scope: Scope, options: RenderOptions = {}): Run {
  const { limits, account, now, token, whole = asItIs } = options;
  return { scope, budget: openBudget(limits, account), now, token, whole, source: "" };
}

function asItIs(value: unknown): unknown {
  return value;
}

/** `value` as plain JSON: views, wherever they stand, become what is behind them. Throws `ReferenceNeeded`. */
export function toPlainJson(value: unknown): Json {
  return VALUE.render({ lookup: () => value, names: () => ["value"] });
}

const VALUE = compileTemplate("{{ value }}");
