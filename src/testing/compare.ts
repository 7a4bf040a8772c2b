import { isJsonObject, type Json, own } from "../schema/words/json.ts";

/** One place where a value is not what was expected. */
export interface Difference {
  /** `users[0].name`; empty for the value as a whole. */
  path: string;
  /** Undefined: nothing should be there. */
  expected: Json | undefined;
  /** Undefined: nothing is there. */
  actual: Json | undefined;
}

/** Most differences reported of one value; a list of 10,000 that is off by one would report 10,000. */
export const DIFFERENCES_MAX = 20;

/**
 * Where `actual` does not contain `expected`: every field of an expected map must be there, further fields may be. Lists
 * must have the same length. An expected text written `/…/` (flags may follow) is a regular expression.
 */
export function missing(expected: Json, actual: Json | undefined): Difference[] {
  return collect(expected, actual, false);
}

/** Where `actual` is not exactly `expected`; no text is a regular expression here. */
export function unequal(expected: Json, actual: Json | undefined): Difference[] {
  return collect(expected, actual, true);
}

function collect(expected: Json, actual: Json | undefined, exact: boolean): Difference[] {
  const found: Difference[] = [];
  compare(expected, actual, "", exact, found);
  return found.slice(0, DIFFERENCES_MAX);
}

function compare(expected: Json, actual: Json | undefined, path: string, exact: boolean, found: Difference[]): void {
  if (found.length > DIFFERENCES_MAX) return;
  if (isJsonObject(expected) && isJsonObject(actual)) {
    for (const key of Object.keys(expected)) {
      const value = own(actual, key) as Json | undefined;
      compare(expected[key] ?? null, value, fieldPath(path, key), exact, found);
    }
    if (!exact) return;
    for (const key of Object.keys(actual)) {
      if (Object.hasOwn(expected, key)) continue;
      found.push({ path: fieldPath(path, key), expected: undefined, actual: actual[key] });
    }
  } else if (Array.isArray(expected) && Array.isArray(actual)) {
    if (expected.length !== actual.length) found.push({ path, expected, actual });
    else
      for (const [index, item] of expected.entries()) compare(item, actual[index], `${path}[${index}]`, exact, found);
  } else if (!sameScalar(expected, actual, exact)) {
    found.push({ path, expected, actual });
  }
}

function sameScalar(expected: Json, actual: Json | undefined, exact: boolean): boolean {
  const pattern = exact ? undefined : patternOf(expected);
  if (pattern === undefined) return expected === actual;
  return typeof actual === "string" || typeof actual === "number" ? pattern.test(String(actual)) : false;
}

/** The regular expression in a text, or undefined if it does not parse. */
function patternOf(expected: Json): RegExp | undefined {
  const parts = typeof expected === "string" ? /^\/(.+)\/([imsu]*)$/s.exec(expected) : null;
  if (parts === null) return undefined;
  try {
    return new RegExp(parts[1] ?? "", parts[2]);
  } catch {
    return undefined;
  }
}

/** `path.key`; a key that is no plain word stands in brackets. */
export function fieldPath(path: string, key: string): string {
  if (!/^[\w-]+$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}
