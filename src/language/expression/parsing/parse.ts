import { FlowError } from "../../../schema/words/errors.ts";
import { NESTING_MAX } from "./budget.ts";
import { fault, inContext } from "./fault.ts";
import type { Token } from "./lexer.ts";
import { tokenize } from "./lexer.ts";
import type { Arguments, BinaryOperator, CompareOperator, Expression, Node } from "./syntax.ts";

/**
 * Parses `text` as one expression (language document, section 4.6). Throws `TEMPLATE_ERROR` when it does not parse and
 * `TEMPLATE_BUDGET` when it is nested more than 200 deep or longer than 256 Ki characters; `offsetOf` gives the place.
 */
export function parseExpression(text: string): Expression {
  try {
    const cursor = cursorOf(tokenize(text, 0).tokens);
    const root = readChoice(cursor);
    expectEnd(cursor);
    return { source: text, root };
  } catch (error) {
    throw error instanceof FlowError ? inContext(error, text) : error;
  }
}

/** A place in a list of tokens. */
export interface Cursor {
  readonly tokens: readonly Token[];
  index: number;
  /** Levels of the tree above the next token, see {@link deepen}. */
  depth: number;
}

/** A cursor at the first token. */
export function cursorOf(tokens: readonly Token[]): Cursor {
  return { tokens, index: 0, depth: 0 };
}

/** Takes the next token when it is the sign or word `text`. */
export function take(cursor: Cursor, text: string): boolean {
  if (!isNext(cursor, text)) return false;
  cursor.index += 1;
  return true;
}

/** Takes the sign or word `text`, or throws. */
export function expect(cursor: Cursor, text: string): void {
  if (!take(cursor, text)) throw unexpected(cursor, `"${text}"`);
}

/** Takes a name that is no word of the language, or throws. */
export function expectName(cursor: Cursor): string {
  const token = peek(cursor);
  if (token.kind !== "name" || WORDS.has(token.text)) throw unexpected(cursor, "a name");
  cursor.index += 1;
  return token.text;
}

/** Throws when tokens are left. */
export function expectEnd(cursor: Cursor): void {
  if (peek(cursor).kind !== "end") throw unexpected(cursor, "an operator or the end");
}

/** Reads a whole expression: `x if c else y`, or anything that binds tighter. */
export function readChoice(cursor: Cursor): Node {
  return nested(cursor, () => {
    let node = readOr(cursor);
    while (isNext(cursor, "if")) {
      const { at } = deepen(cursor);
      cursor.index += 1;
      const test = readOr(cursor);
      const otherwise = take(cursor, "else") ? readChoice(cursor) : undefined;
      node = { kind: "choice", at, test, then: node, otherwise };
    }
    return node;
  });
}

/** Reads an expression without a choice on top: what stands behind `in` of a loop, where `if` filters the loop. */
export function readOr(cursor: Cursor): Node {
  return readLogic(cursor, "or", () => readLogic(cursor, "and", () => readNot(cursor)));
}

/** A chain of one word is one node, so that a thousand alternatives are not a thousand levels. */
function readLogic(cursor: Cursor, op: "and" | "or", readOperand: () => Node): Node {
  const first = readOperand();
  if (!isNext(cursor, op)) return first;
  const { at } = peek(cursor);
  const operands = [first];
  while (take(cursor, op)) operands.push(readOperand());
  return { kind: "logic", at, op, operands };
}

function readNot(cursor: Cursor): Node {
  if (!isNext(cursor, "not")) return readCompare(cursor);
  return nested(cursor, () => {
    const { at } = peek(cursor);
    cursor.index += 1;
    return { kind: "not", at, of: readNot(cursor) };
  });
}

function readCompare(cursor: Cursor): Node {
  const first = readBinary(cursor, 0);
  const { at } = peek(cursor);
  const rest: { op: CompareOperator; right: Node }[] = [];
  for (let op = takeCompare(cursor); op !== undefined; op = takeCompare(cursor)) {
    rest.push({ op, right: readBinary(cursor, 0) });
  }
  return rest.length === 0 ? first : { kind: "compare", at, first, rest };
}

const COMPARES: ReadonlySet<string> = new Set(["==", "!=", "<", "<=", ">", ">="] satisfies CompareOperator[]);

function takeCompare(cursor: Cursor): CompareOperator | undefined {
  const token = peek(cursor);
  if (token.kind === "sign" && COMPARES.has(token.text)) {
    cursor.index += 1;
    return token.text as CompareOperator;
  }
  if (take(cursor, "in")) return "in";
  if (isNext(cursor, "not") && isNext(cursor, "in", 1)) {
    cursor.index += 2;
    return "not in";
  }
  return undefined;
}

/** How tight each operator binds its operands. All group to the left, `**` too (as in Jinja). */
const BINDING: Readonly<Record<string, number>> = { "+": 1, "-": 1, "~": 2, "*": 3, "/": 3, "//": 3, "%": 3, "**": 4 };

function readBinary(cursor: Cursor, weakest: number): Node {
  const { depth } = cursor;
  let left = readOperand(cursor, true);
  for (;;) {
    const token = peek(cursor);
    const binding = token.kind === "sign" ? BINDING[token.text] : undefined;
    if (binding === undefined || binding <= weakest) break;
    if (token.text === "~") {
      const operands = [left];
      while (take(cursor, "~")) operands.push(readBinary(cursor, binding));
      left = { kind: "concat", at: token.at, operands };
      continue;
    }
    deepen(cursor);
    cursor.index += 1;
    const right = readBinary(cursor, binding);
    left = { kind: "binary", at: token.at, op: token.text as BinaryOperator, left, right };
  }
  cursor.depth = depth;
  return left;
}

/** A sign binds tighter than any operator but looser than members; filters apply to the signed value (`-1|abs` is 1). */
function readOperand(cursor: Cursor, filters: boolean): Node {
  const { depth } = cursor;
  const token = peek(cursor);
  let node: Node;
  if (token.kind === "sign" && (token.text === "-" || token.text === "+")) {
    deepen(cursor);
    cursor.index += 1;
    node = { kind: "sign", at: token.at, op: token.text, of: readOperand(cursor, false) };
  } else {
    node = readMembers(cursor, readPrimary(cursor));
  }
  if (filters) node = readFilters(cursor, node);
  cursor.depth = depth;
  return node;
}

const CONSTANTS: ReadonlyMap<string, null | boolean> = new Map([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["null", null],
  ["none", null],
  ["None", null],
]);

/** Words that cannot be names of variables; behind a dot they are ordinary fields. */
const WORDS: ReadonlySet<string> = new Set(["and", "or", "not", "in", "is", "if", "else", ...CONSTANTS.keys()]);

function readPrimary(cursor: Cursor): Node {
  const token = peek(cursor);
  const { at, text, kind } = token;
  cursor.index += 1;
  if (kind === "string") return { kind: "literal", at, value: text };
  if (kind === "number") return { kind: "literal", at, value: numberOf(token) };
  if (kind === "name") {
    const constant = CONSTANTS.get(text);
    if (constant !== undefined) return { kind: "literal", at, value: constant };
    if (!WORDS.has(text)) {
      return isNext(cursor, "(")
        ? { kind: "call", at, name: text, args: readArguments(cursor) }
        : { kind, at, name: text };
    }
  }
  if (kind === "sign") {
    if (text === "(") return readGroup(cursor, at);
    if (text === "[") return { kind: "list", at, items: readItems(cursor, "]") };
    if (text === "{") return { kind: "map", at, entries: readEntries(cursor) };
  }
  cursor.index -= 1;
  throw unexpected(cursor, "a value");
}

/** `(x)` is x; with a comma, or empty, it is a list, as tuples are of no use to JSON. */
function readGroup(cursor: Cursor, at: number): Node {
  if (take(cursor, ")")) return { kind: "list", at, items: [] };
  const first = readChoice(cursor);
  if (take(cursor, ")")) return first;
  expect(cursor, ",");
  return { kind: "list", at, items: [first, ...readItems(cursor, ")")] };
}

function readItems(cursor: Cursor, close: string): Node[] {
  const items: Node[] = [];
  while (!take(cursor, close)) {
    items.push(readChoice(cursor));
    if (!take(cursor, ",") && !isNext(cursor, close)) throw unexpected(cursor, `"," or "${close}"`);
  }
  return items;
}

function readEntries(cursor: Cursor): [Node, Node][] {
  const entries: [Node, Node][] = [];
  while (!take(cursor, "}")) {
    const key = readChoice(cursor);
    expect(cursor, ":");
    entries.push([key, readChoice(cursor)]);
    if (!take(cursor, ",") && !isNext(cursor, "}")) throw unexpected(cursor, '"," or "}"');
  }
  return entries;
}

function readMembers(cursor: Cursor, start: Node): Node {
  let node = start;
  for (;;) {
    const token = peek(cursor);
    if (token.kind !== "sign" || (token.text !== "." && token.text !== "[" && token.text !== "(")) return node;
    if (token.text === "(") throw fault("only functions and methods can be called", token.at);
    deepen(cursor);
    cursor.index += 1;
    node = token.text === "[" ? readIndex(cursor, node, token.at) : readField(cursor, node, token);
  }
}

function readField(cursor: Cursor, of: Node, dot: Token): Node {
  // `range .Items` and `json .State` are Go templates, which stay as they are (language document, section 4.3).
  if (dot.spaced) throw fault('unexpected " ." (a field stands directly behind its value)', dot.at);
  const token = peek(cursor);
  if (token.kind !== "name" && token.kind !== "number") throw unexpected(cursor, 'a field name behind "."');
  cursor.index += 1;
  if (token.kind === "number") return { kind: "member", at: dot.at, of, key: numberOf(token) };
  if (!isNext(cursor, "(")) return { kind: "member", at: dot.at, of, key: token.text };
  return { kind: "method", at: token.at, of, name: token.text, args: readArguments(cursor) };
}

function readIndex(cursor: Cursor, of: Node, at: number): Node {
  const part = (): Node | undefined => (isNext(cursor, ":") || isNext(cursor, "]") ? undefined : readChoice(cursor));
  const start = part();
  if (!take(cursor, ":")) {
    if (start === undefined) throw unexpected(cursor, "an index");
    expect(cursor, "]");
    return { kind: "index", at, of, key: start };
  }
  const stop = part();
  const step = take(cursor, ":") ? part() : undefined;
  expect(cursor, "]");
  return { kind: "slice", at, of, start, stop, step };
}

/**
 * Filters and tests have the same precedence, from left to right: `x
 * first is defined`.
 */
function readFilters(cursor: Cursor, start: Node): Node {
  let node = start;
  for (;;) {
    const { at } = peek(cursor);
    if (take(cursor, "|")) {
      deepen(cursor);
      const name = expectFieldName(cursor, "a filter name");
      const args = isNext(cursor, "(") ? readArguments(cursor) : NO_ARGUMENTS;
      node = readMembers(cursor, { kind: "filter", at, of: node, name, args });
    } else if (take(cursor, "is")) {
      deepen(cursor);
      const negated = take(cursor, "not");
      node = { kind: "test", at, of: node, name: expectTestName(cursor), args: readTestArguments(cursor), negated };
    } else {
      return node;
    }
  }
}

const NO_ARGUMENTS: Arguments = { positional: [], named: new Map() };

function expectFieldName(cursor: Cursor, what: string): string {
  const token = peek(cursor);
  if (token.kind !== "name") throw unexpected(cursor, what);
  cursor.index += 1;
  return token.text;
}

function expectTestName(cursor: Cursor): string {
  const token = peek(cursor);
  if (token.kind === "sign" && COMPARES.has(token.text)) {
    cursor.index += 1;
    return token.text;
  }
  return expectFieldName(cursor, "the name of a test");
}

/** `is divisibleby(3)` and `is divisibleby 3` are the same. */
function readTestArguments(cursor: Cursor): Arguments {
  if (isNext(cursor, "(")) return readArguments(cursor);
  const token = peek(cursor);
  const isOperand =
    token.kind === "string" ||
    token.kind === "number" ||
    (token.kind === "name" && (!WORDS.has(token.text) || CONSTANTS.has(token.text))) ||
    (token.kind === "sign" && (token.text === "[" || token.text === "{"));
  if (!isOperand) return NO_ARGUMENTS;
  return { positional: [readMembers(cursor, readPrimary(cursor))], named: NO_ARGUMENTS.named };
}

function readArguments(cursor: Cursor): Arguments {
  expect(cursor, "(");
  const positional: Node[] = [];
  const named = new Map<string, Node>();
  while (!take(cursor, ")")) {
    const token = peek(cursor);
    if (token.kind === "name" && isNext(cursor, "=", 1)) {
      if (named.has(token.text)) throw fault(`"${token.text}" is given twice`, token.at);
      cursor.index += 2;
      named.set(token.text, readChoice(cursor));
    } else {
      if (named.size > 0) throw fault("an argument without a name stands behind one with a name", token.at);
      positional.push(readChoice(cursor));
    }
    if (!take(cursor, ",") && !isNext(cursor, ")")) throw unexpected(cursor, '"," or ")"');
  }
  return { positional, named };
}

function numberOf(token: Token): number {
  const value = Number(token.text.replaceAll("_", ""));
  if (!Number.isFinite(value)) throw fault("the number is too large", token.at);
  return value;
}

/** Runs `read` one level deeper and comes back to this level. */
function nested(cursor: Cursor, read: () => Node): Node {
  const { depth } = cursor;
  deepen(cursor);
  const node = read();
  cursor.depth = depth;
  return node;
}

/**
 * Counts one level of the tree: a nested expression, or a link of a chain (`a.b.c`, `x|f|g`, `1+2+3`), in which each link
 * contains the one before. Bounds the recursion of the parser, the compiler and the evaluation.
 */
function deepen(cursor: Cursor): Token {
  cursor.depth += 1;
  const token = peek(cursor);
  if (cursor.depth > NESTING_MAX) {
    throw fault(`it is nested more than ${NESTING_MAX} deep`, token.at, "TEMPLATE_BUDGET");
  }
  return token;
}

function peek(cursor: Cursor): Token {
  return cursor.tokens[cursor.index]!;
}

/** True when the token `ahead` of the next one is the sign or word `text`; a string literal with that text is neither. */
function isNext(cursor: Cursor, text: string, ahead = 0): boolean {
  const token = cursor.tokens[cursor.index + ahead];
  return token !== undefined && token.text === text && (token.kind === "name" || token.kind === "sign");
}

function unexpected(cursor: Cursor, wanted: string): FlowError {
  const token = peek(cursor);
  const found = token.kind === "end" ? "the end" : token.kind === "string" ? "a text" : `"${token.text}"`;
  const meant = likelyMeant(token, cursor.tokens[cursor.index - 1]);
  return fault(
    `expected ${wanted}, found ${found}${meant === undefined ? "" : `; did you mean "${meant}"?`}`,
    token.at,
  );
}

/** What other languages write differently, and people out of habit. */
function likelyMeant(token: Token, before: Token | undefined): string | undefined {
  if (token.kind === "sign") {
    if (token.text === "=") return "==";
    return token.text === ">" && before?.kind === "sign" && before.text === "<" && !token.spaced ? "!=" : undefined;
  }
  const word = token.text.toLowerCase();
  return token.kind === "name" && word !== token.text && WORDS.has(word) ? word : undefined;
}
