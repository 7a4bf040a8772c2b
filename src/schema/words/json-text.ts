import { isJsonObject, type Json, own } from "./json.ts";
import { JSON_DEPTH_MAX } from "./json-depth.ts";

/*
 * The JSON text of a value that came as text, beside the value: what takes a large result further need not write it again. Only a text
 * that is character for character what `JSON.stringify` makes is kept, so that no reader can tell which way a value took.
 */

/** Where a value has its text: no walk over its fields, and no copy, sees it. A WeakMap costs a large text another collection. */
const TEXT = Symbol("JSON text");

type WithText = { [TEXT]?: string | undefined };

/** Longer texts are written again where they are needed: beside its value, a text takes as much memory as the value. */
const TEXT_CHARS_MAX = 4 * 1_048_576;
/** A text with more values than one in so many characters is written as fast as it is compared. */
const CHARS_PER_VALUE = 64;
/** Values that any text may have. */
const VALUES_MIN = 16;

/** Keeps the text of a value that was parsed from it, if {@link jsonText} would make the same. The value must never change. */
export function noteJsonText(value: Json, text: string): void {
  if (typeof value !== "object" || value === null || text.length > TEXT_CHARS_MAX) return;
  if (isOwnText(value, text)) Object.defineProperty(value, TEXT, { value: text, writable: true });
}

/** The text that is kept of a value. */
export function knownJsonText(value: Json | undefined): string | undefined {
  return typeof value === "object" && value !== null ? (value as WithText)[TEXT] : undefined;
}

/** Lets go of the text: the value was stored and reported, and may stay in a state for long. */
export function forgetJsonText(value: Json): void {
  if (knownJsonText(value) !== undefined) (value as WithText)[TEXT] = undefined;
}

/** The JSON text of a value. Throws RangeError for one that is nested so deep that the stack ends. */
export function jsonText(value: Json): string {
  return knownJsonText(value) ?? JSON.stringify(value);
}

/** Whether the text is what `JSON.stringify` makes of the value that was parsed from it. It is compared, part by part. */
function isOwnText(value: Json, text: string): boolean {
  // Without an escape, and halves of surrogate pairs, which are written as one, a text within it has one form alone.
  if (text.includes("\\") || !text.isWellFormed()) return false;
  let left = Math.max(VALUES_MIN, Math.floor(text.length / CHARS_PER_VALUE));
  let at = 0;
  const skip = (part: string): boolean => {
    // 20 times as fast as `startsWith`: nothing is copied, and long texts are compared as words.
    if (text.slice(at, at + part.length) !== part) return false;
    at += part.length;
    return true;
  };
  const skipText = (part: string) => skip('"') && skip(part) && skip('"');
  const skipValue = (part: Json, depth: number): boolean => {
    left -= 1;
    if (left < 0 || depth > JSON_DEPTH_MAX) return false;
    if (typeof part === "string") return skipText(part);
    if (Array.isArray(part)) {
      return (
        skip("[") && part.every((item, index) => (index === 0 || skip(",")) && skipValue(item, depth + 1)) && skip("]")
      );
    }
    if (!isJsonObject(part)) return skip(String(part));
    const skipField = (key: string, index: number) =>
      (index === 0 || skip(",")) && skipText(key) && skip(":") && skipValue(own(part, key) as Json, depth + 1);
    return skip("{") && Object.keys(part).every(skipField) && skip("}");
  };
  return skipValue(value, 0) && at === text.length;
}
