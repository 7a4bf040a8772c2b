import type { Json } from "../../schema/words/json.ts";
import { isDeeper } from "../../schema/words/json-depth.ts";

/**
 * `JSON.parse`, except that an integer which a double cannot hold exactly becomes text with all its digits: ids beyond
 * 2^53 are common in APIs and in databases, and losing their last digits silently would address another record. Throws
 * SyntaxError like `JSON.parse`. A text that is nested too deep ({@link isDeeper}) is not parsed: it is the value.
 */
export function parseJsonKeepingDigits(text: string): Json {
  if (isDeeper(text)) return text;
  // 2^53 has 16 digits. Most texts have no such run of digits and take the fast way.
  return JSON.parse(/\d{16}/.test(text) ? quoteUnsafeIntegers(text) : text) as Json;
}

const QUOTE = 34;
const BACKSLASH = 92;
const MINUS = 45;

/** One pass by hand: a regular expression that skips strings overflows its stack on strings of some megabytes. */
function quoteUnsafeIntegers(text: string): string {
  const parts: string[] = [];
  let copied = 0;
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
    } else if (isDigit(code) || code === MINUS) {
      const end = endOfNumber(text, at);
      const number = text.slice(at, end);
      if (/^-?\d{16,}$/.test(number) && !Number.isSafeInteger(Number(number))) {
        parts.push(text.slice(copied, at), '"', number, '"');
        copied = end;
      }
      at = end;
    } else {
      at += 1;
    }
  }
  parts.push(text.slice(copied));
  return parts.join("");
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    at += code === BACKSLASH ? 2 : 1;
  }
  return text.length;
}

function endOfNumber(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && isNumberPart(text.charCodeAt(at))) at += 1;
  return at;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** Digits and `. e E + -`. */
function isNumberPart(code: number): boolean {
  return isDigit(code) || code === 46 || code === 101 || code === 69 || code === 43 || code === MINUS;
}
