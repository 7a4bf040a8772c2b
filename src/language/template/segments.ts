import { FlowError } from "../../schema/words/errors.ts";
import type { Evaluate } from "../expression/compile.ts";
import { compileExpression } from "../expression/compile.ts";
import { fault, inContext, offsetOf } from "../expression/parsing/fault.ts";
import { tokenize } from "../expression/parsing/lexer.ts";
import type { Cursor } from "../expression/parsing/parse.ts";
import { cursorOf, expect, expectEnd, expectName, readChoice, readOr, take } from "../expression/parsing/parse.ts";
import type { Node } from "../expression/parsing/syntax.ts";
import { nearest } from "../words/nearest.ts";
import { atOnce, type Pieces } from "../words/pieces.ts";

/** Something in a text that was meant as a template but is invalid. */
export interface TextProblem {
  /** Offset in the text, in UTF-16 units from 0. */
  readonly offset: number;
  readonly message: string;
  /** `TEMPLATE_ERROR`: the place stays as it is. `TEMPLATE_BUDGET`: rendering the text throws this. */
  readonly error: FlowError;
  /** An opening mark with no closing one behind it: in code and commands often nothing but two braces. */
  readonly isOpen?: true;
}

/** An expression, ready to run, with its tree for those who ask what it needs. */
export interface Compiled {
  readonly root: Node;
  readonly evaluate: Evaluate;
}

/** A `{% … %}` tag. */
export type Tag =
  | { readonly word: "if" | "elif"; readonly test: Compiled }
  | {
      readonly word: "for";
      readonly targets: readonly string[];
      readonly list: Compiled;
      readonly filter: Compiled | undefined;
    }
  | { readonly word: "set"; readonly targets: readonly string[]; readonly value: Compiled | undefined }
  | { readonly word: "else" | "endif" | "endfor" | "endset" };

/** A piece of a template text. `source` is the piece as written. */
export type Segment =
  | { readonly kind: "text"; readonly source: string; readonly text: string }
  | { readonly kind: "output"; readonly source: string; readonly expression: Compiled }
  | { readonly kind: "tag"; readonly source: string; readonly at: number; readonly tag: Tag };

/** A text that was cut at its marks. */
export interface Scanned {
  segments: Segment[];
  problems: TextProblem[];
}

/**
 * Cuts a text into literal text, `{{ … }}` and `{% … %}`; comments are gone, white space next to a `-` too. What does not
 * parse is literal text (language document, section 4.3) and a problem. Never throws.
 */
export function scan(text: string): Scanned {
  return atOnce(scanInPieces(text));
}

/** {@link scan} mark by mark: a text of 1 MiB may have 200,000 of them, which take a second. */
export function* scanInPieces(text: string): Pieces<Scanned> {
  const reader: Reader = {
    text,
    problems: [],
    openGoBlocks: 0,
    lastOutputEnd: text.lastIndexOf("}}"),
    lastTagEnd: text.lastIndexOf("%}"),
    lastCommentEnd: text.lastIndexOf("#}"),
    lastEndRaw: text.lastIndexOf("endraw"),
    isOverBudget: false,
  };
  const segments: Segment[] = [];
  let from = 0;
  let trimNext = false;
  const addText = (to: number, trimEnd: boolean): void => {
    const source = text.slice(from, to);
    let kept = trimNext ? source.trimStart() : source;
    if (trimEnd) kept = kept.trimEnd();
    if (kept !== "") segments.push({ kind: "text", source, text: kept });
  };
  MARK.lastIndex = 0;
  for (let mark = MARK.exec(text); mark !== null && !reader.isOverBudget; mark = MARK.exec(text)) {
    const at = mark.index;
    const read = readMark(reader, at);
    if (read === undefined) continue;
    const { segment, after, trimAfter } = read;
    addText(at, read.trimBefore);
    if (segment !== undefined) segments.push(segment);
    from = after;
    trimNext = trimAfter;
    yield;
    MARK.lastIndex = after;
  }
  addText(text.length, false);
  return { segments, problems: reader.problems };
}

const MARK = /\{[{%#]/g;

interface Reader {
  readonly text: string;
  readonly problems: TextProblem[];
  /** Go templates such as `{{range .Items}}` that are still to be closed by `{{end}}`. */
  openGoBlocks: number;
  /** Where the last closing marks are: a mark behind them is not searched for its end again and again. */
  readonly lastOutputEnd: number;
  readonly lastTagEnd: number;
  readonly lastCommentEnd: number;
  readonly lastEndRaw: number;
  /** A problem was found that makes rendering fail, so that the rest need not be read. */
  isOverBudget: boolean;
}

interface Read {
  /** Absent for a comment. */
  segment: Segment | undefined;
  after: number;
  trimBefore: boolean;
  trimAfter: boolean;
}

/** Reads what starts with the mark at `at`; undefined when the mark is ordinary text. */
function readMark(reader: Reader, at: number): Read | undefined {
  switch (reader.text[at + 1]) {
    case "{":
      return readOutput(reader, at);
    case "%":
      return readTag(reader, at);
    default:
      return readComment(reader, at);
  }
}

/** `{# … #}`. The shell's `${#list[@]}` is not a comment. */
function readComment({ text, lastCommentEnd }: Reader, at: number): Read | undefined {
  if (text[at - 1] === "$" || lastCommentEnd < at + 2) return undefined;
  const end = text.indexOf("#}", at + 2);
  const trimAfter = text[end - 1] === "-" && end - 1 >= at + 2;
  return { segment: undefined, after: end + 2, trimBefore: isTrimmed(text, at), trimAfter };
}

function readOutput(reader: Reader, at: number): Read | undefined {
  const { text } = reader;
  if (reader.lastOutputEnd < at + 2) return reportOpen(reader, at, "}}");
  const close = text.indexOf("}}", at + 2);
  if (reader.openGoBlocks > 0 && GO_END.test(text.slice(at, at + 20))) {
    reader.openGoBlocks -= 1;
    return verbatim(text, at, close + 2);
  }
  try {
    const { tokens, after, trimAfter } = tokenize(text, insideOf(text, at), "}}");
    const cursor = cursorOf(tokens);
    const source = text.slice(at, after);
    const expression = compiled(source, readChoice(cursor));
    expectEnd(cursor);
    const segment: Segment = { kind: "output", source, expression };
    return { segment, after, trimBefore: isTrimmed(text, at), trimAfter };
  } catch (error) {
    const source = text.slice(at, close + 2);
    report(reader, source, at, error);
    if (GO_BLOCK.test(source)) reader.openGoBlocks += 1;
    return verbatim(text, at, close + 2);
  }
}

const GO_END = /^\{\{-?\s*end\s*-?\}\}/;
const GO_BLOCK = /^\{\{-?\s*(?:range|if|with|block|define)\s/;

const TAG_WORD = /\s*([A-Za-z_]\w*)/y;
const END_RAW = /\{%(-?)\s*endraw\s*(-?)%\}/g;

function readTag(reader: Reader, at: number): Read | undefined {
  const { text } = reader;
  const inside = insideOf(text, at);
  TAG_WORD.lastIndex = inside;
  const word = TAG_WORD.exec(text)?.[1];
  if (word === undefined) return undefined;
  if (reader.lastTagEnd < at + 2) return reportOpen(reader, at, "%}");
  const close = text.indexOf("%}", at + 2);
  const source = text.slice(at, close + 2);
  try {
    if (word === "raw") return readRaw(reader, at, close + 2);
    const { tokens, after, trimAfter } = tokenize(text, inside, "%}");
    const whole = text.slice(at, after);
    const cursor = cursorOf(tokens);
    cursor.index = 1;
    const tag = readTagBody(word, cursor, whole, at);
    expectEnd(cursor);
    const segment: Segment = { kind: "tag", source: whole, at, tag };
    return { segment, after, trimBefore: isTrimmed(text, at), trimAfter };
  } catch (error) {
    report(reader, source, at, error);
    return verbatim(text, at, close + 2);
  }
}

const TAG_WORDS = ["if", "elif", "else", "endif", "for", "endfor", "set", "endset", "raw", "endraw"];

function readTagBody(word: string, cursor: Cursor, source: string, at: number): Tag {
  switch (word) {
    case "if":
    case "elif":
      return { word, test: compiled(source, readChoice(cursor)) };
    case "for": {
      const targets = readTargets(cursor);
      expect(cursor, "in");
      const list = compiled(source, readOr(cursor));
      return { word, targets, list, filter: take(cursor, "if") ? compiled(source, readChoice(cursor)) : undefined };
    }
    case "set": {
      const targets = readTargets(cursor);
      return { word, targets, value: take(cursor, "=") ? compiled(source, readChoice(cursor)) : undefined };
    }
    case "else":
    case "endif":
    case "endfor":
    case "endset":
      return { word };
    default: {
      const near = nearest(word, TAG_WORDS);
      throw fault(`there is no tag "${word}"${near === undefined ? "" : `; did you mean "${near}"?`}`, at);
    }
  }
}

function readTargets(cursor: Cursor): string[] {
  const targets = [expectName(cursor)];
  while (take(cursor, ",")) targets.push(expectName(cursor));
  return targets;
}

function readRaw({ text, lastEndRaw }: Reader, at: number, from: number): Read {
  END_RAW.lastIndex = from;
  const end = from > lastEndRaw ? null : END_RAW.exec(text);
  if (end === null) throw fault('"{% endraw %}" is missing', at);
  const after = end.index + end[0].length;
  let inside = text.slice(from, end.index);
  if (text[from - 3] === "-") inside = inside.trimStart();
  if (end[1] === "-") inside = inside.trimEnd();
  const segment: Segment = { kind: "text", source: text.slice(at, after), text: inside };
  return { segment, after, trimBefore: isTrimmed(text, at), trimAfter: end[2] === "-" };
}

function compiled(source: string, root: Node): Compiled {
  return { root, evaluate: compileExpression({ source, root }) };
}

/** The mark at `at` has a `-`: white space before it is dropped. */
function isTrimmed(text: string, at: number): boolean {
  return text[at + 2] === "-";
}

/** Offset behind the opening mark and its `-`. */
function insideOf(text: string, at: number): number {
  return isTrimmed(text, at) ? at + 3 : at + 2;
}

function verbatim(text: string, at: number, after: number): Read {
  const source = text.slice(at, after);
  return { segment: { kind: "text", source, text: source }, after, trimBefore: false, trimAfter: false };
}

function report(reader: Reader, source: string, at: number, error: unknown): void {
  if (!(error instanceof FlowError)) throw error;
  reader.isOverBudget ||= error.code === "TEMPLATE_BUDGET";
  if (reader.problems.length >= PROBLEMS_MAX && !reader.isOverBudget) return;
  const readable = inContext(error, source);
  reader.problems.push({ offset: Math.max(at, offsetOf(error)), message: readable.message, error: readable });
}

/** The first opening mark that nothing closes; those behind it are part of the same slip. */
function reportOpen(reader: Reader, at: number, closer: string): undefined {
  if (reader.problems.some(({ isOpen }) => isOpen === true)) return undefined;
  const error = inContext(fault(`"${closer}" is missing`, at), reader.text.slice(at));
  if (reader.problems.length < PROBLEMS_MAX) {
    reader.problems.push({ offset: at, message: error.message, error, isOpen: true });
  }
  return undefined;
}

/** Problems listed for one text; a text with more of them is full of another language's marks. */
const PROBLEMS_MAX = 100;
