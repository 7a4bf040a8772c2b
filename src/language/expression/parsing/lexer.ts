import type { FlowError } from "../../../schema/words/errors.ts";
import { own } from "../../../schema/words/json.ts";
import { EXPRESSION_MAX, NESTING_MAX } from "./budget.ts";
import { fault } from "./fault.ts";

/** One token. `text` of a string is its decoded value, of everything else the characters as written. */
export interface Token {
  readonly kind: "name" | "number" | "string" | "sign" | "end";
  readonly text: string;
  /** Offset of the first character. */
  readonly at: number;
  /** White space stands before it. */
  readonly spaced: boolean;
}

/** The tokens of one expression, the last of kind `end`. */
export interface Tokens {
  readonly tokens: Token[];
  /** Offset of the end of the expression, and of the end of its closing mark. */
  readonly end: number;
  readonly after: number;
  /** The closing mark has a `-`: white space behind it is dropped. */
  readonly trimAfter: boolean;
}

/**
 * Reads `text` from `start` up to the closing mark, or to the end of the text without one. Marks inside strings and brackets do
 * not close. Throws a fault with its offset: `TEMPLATE_ERROR` for a character, string or bracket that does not fit,
 * `TEMPLATE_BUDGET` for brackets deeper than 200 or more than 256 Ki characters.
 */
export function tokenize(text: string, start: number, closer?: "}}" | "%}"): Tokens {
  const tokens: Token[] = [];
  const brackets: string[] = [];
  let at = start;
  for (;;) {
    const from = at;
    while (isSpace(text.charCodeAt(at))) at += 1;
    const spaced = at > from;
    if (at - start > EXPRESSION_MAX) {
      throw tooLong(start);
    }
    if (at >= text.length) {
      if (closer !== undefined) throw fault(`"${closer}" is missing`, at);
      return finish(tokens, brackets, at, at, spaced, false);
    }
    if (closer !== undefined && brackets.length === 0) {
      const trimAfter = text.startsWith(`-${closer}`, at);
      if (trimAfter || text.startsWith(closer, at)) {
        return finish(tokens, brackets, at, at + closer.length + (trimAfter ? 1 : 0), spaced, trimAfter);
      }
    }
    const token = readToken(text, at, spaced, tokens.at(-1));
    trackBracket(token, brackets);
    tokens.push(token);
    at = token.kind === "string" ? stringEnd(text, at) : at + token.text.length;
  }
}

function finish(
  tokens: Token[],
  brackets: string[],
  end: number,
  after: number,
  spaced: boolean,
  trimAfter: boolean,
): Tokens {
  const open = brackets.at(-1);
  if (open !== undefined) throw fault(`"${open}" is missing`, end);
  tokens.push({ kind: "end", text: "", at: end, spaced });
  return { tokens, end, after, trimAfter };
}

const NAME = /[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}]*/uy;
const NUMBER = /\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?/y;
const DIGITS = /\d+/y;
const SIGN = /\*\*|\/\/|==|!=|<=|>=|[-+*/%~<>=|()[\]{},:.]/y;

function readToken(text: string, at: number, spaced: boolean, before: Token | undefined): Token {
  const quote = text[at];
  if (quote === "'" || quote === '"') {
    return { kind: "string", text: decode(text, at + 1, stringEnd(text, at) - 1), at, spaced };
  }
  // A number behind a dot is a list index (`rows.0.name`), so that its own dot is not a decimal point.
  const number = before?.kind === "sign" && before.text === "." ? DIGITS : NUMBER;
  const digits = match(number, text, at);
  if (digits !== undefined) return { kind: "number", text: digits, at, spaced };
  const name = match(NAME, text, at);
  if (name !== undefined) return { kind: "name", text: name, at, spaced };
  const hint = FOREIGN.find(([sign]) => text.startsWith(sign, at));
  if (hint !== undefined) throw fault(`"${hint[0]}" is not an operator here: write "${hint[1]}"`, at);
  const sign = match(SIGN, text, at);
  if (sign !== undefined) return { kind: "sign", text: sign, at, spaced };
  const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
  const today = own(FOREIGN_CHARACTERS, character);
  throw fault(`unexpected character "${character}"${today === undefined ? "" : `; did you mean "${today}"?`}`, at);
}

/** Characters that are operators of other languages, and what is written here. */
const FOREIGN_CHARACTERS: Readonly<Record<string, string>> = { "!": "not", "?": "x if c else y" };

/** Operators of other languages, and what they are called here. */
const FOREIGN: readonly (readonly [string, string])[] = [
  ["&&", "and"],
  ["||", "or"],
  ["===", "=="],
  ["!==", "!="],
];

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

const PAIRS: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" };

/** Keeps the closing brackets that are still to come, innermost last. */
function trackBracket(token: Token, brackets: string[]): void {
  if (token.kind !== "sign") return;
  const closing = PAIRS[token.text];
  if (closing !== undefined) {
    brackets.push(closing);
    if (brackets.length > NESTING_MAX) {
      throw fault(`it is nested more than ${NESTING_MAX} deep`, token.at, "TEMPLATE_BUDGET");
    }
  } else if (token.text === ")" || token.text === "]" || token.text === "}") {
    const expected = brackets.pop();
    if (expected === token.text) return;
    throw fault(`unexpected "${token.text}"${expected === undefined ? "" : `, "${expected}" is missing`}`, token.at);
  }
}

/** Offset behind the closing quote of the string that starts at `at`. */
function stringEnd(text: string, at: number): number {
  const quote = text.charCodeAt(at);
  for (let i = at + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === quote) return i + 1;
    if (code === BACKSLASH) i += 1;
    if (i - at > EXPRESSION_MAX) throw tooLong(at);
  }
  throw fault(`the text that starts with ${text[at]} has no end`, at);
}

function tooLong(at: number): FlowError {
  return fault(`it is longer than ${EXPRESSION_MAX} characters`, at, "TEMPLATE_BUDGET");
}

const BACKSLASH = 0x5c;
const ESCAPES = /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))/gs;
const CONTROLS: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", "\n": "" };

/** The value of a string's inside. A backslash before any other character stays, as in Python (`"\d"`). */
function decode(text: string, from: number, to: number): string {
  const raw = text.slice(from, to);
  if (!raw.includes("\\")) return raw;
  return raw.replace(ESCAPES, (whole: string, unicode?: string, hex?: string, char?: string) => {
    const code = unicode ?? hex;
    if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
    if (char === undefined) return whole;
    if (char === "\\" || char === "'" || char === '"') return char;
    return CONTROLS[char] ?? whole;
  });
}

function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d) || code === 0xa0 || code === 0xfeff;
}
