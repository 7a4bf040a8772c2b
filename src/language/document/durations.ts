import { TimeoutParts } from "../../schema/documents/document-task.ts";
import { durationMs } from "../../schema/rules/durations.ts";
import type { Json } from "../../schema/words/json.ts";
import { field, isMap, type Place } from "./source/place.ts";
import { checkKeys, checkRange, noteTemplate, type Reading } from "./source/reading.ts";

/** What one unit of a duration is in milliseconds. */
export const SECOND_MS = 1_000;

/**
 * A duration in milliseconds: a number, or a whole template that gives one. `unitMs` is the unit in the document. A template in
 * seconds is multiplied within the template, so that the rendered value is always in milliseconds.
 */
export function readDuration(reading: Reading, place: Place | undefined, unitMs: number): Json | undefined {
  if (place === undefined) return undefined;
  const written = place.value;
  const number = typeof written === "string" && written.trim() !== "" ? Number(written) : written;
  if (typeof number === "number" && Number.isFinite(number)) {
    checkRange(reading, { ...place, value: number });
    return Math.round(number * unitMs);
  }
  if (typeof written !== "string") return undefined;
  const expression = wholeTemplate(written);
  if (expression === undefined) {
    const message = `\`${place.key}\` must be a number or one whole template, not \`${written}\``;
    reading.report(
      "wrong-type",
      place,
      message,
      unitMs === SECOND_MS ? "write seconds, e.g. 30" : "write milliseconds",
    );
    return undefined;
  }
  noteTemplate(reading, place);
  return unitMs === 1 ? written : `{{ ((${expression}) | float) * ${unitMs} }}`;
}

/** A time-out in seconds that may be given in parts: the sum of consecutive parts, else `total`. In milliseconds. */
export function readTimeout(reading: Reading, place: Place | undefined): Json | undefined {
  if (!isMap(place)) return readDuration(reading, place, SECOND_MS);
  checkKeys(reading, place, TimeoutParts);
  const total = readDuration(reading, field(place, "total"), SECOND_MS);
  const parts = ["connect", "read", "write", "pool"].map((key) => readDuration(reading, field(place, key), SECOND_MS));
  if (total !== undefined) return total;
  const given = parts.filter((part) => part !== undefined);
  if (given.length === 0) return undefined;
  const numbers = given.filter((part) => typeof part === "number");
  if (numbers.length === given.length) return numbers.reduce((sum, part) => sum + part, 0);
  return `{{ ${given.map((part) => `(${wholeTemplate(String(part)) ?? String(part)})`).join(" + ")} }}`;
}

/** A wait's time-out, in milliseconds: also as `for` is written, `3d` (control, rule 20). */
export function readWaitTimeout(reading: Reading, place: Place | undefined): Json | undefined {
  const ms = typeof place?.value === "string" ? durationMs(place.value) : undefined;
  return ms ?? readTimeout(reading, place);
}

/** The expression of a text that is exactly one `{{ … }}` (language document: "whole template"), else undefined. */
export function wholeTemplate(text: string): string | undefined {
  const expression = /^\s*\{\{-?([\s\S]*?)-?\}\}\s*$/.exec(text)?.[1];
  return expression === undefined || /\{\{|\}\}/.test(expression) ? undefined : expression.trim();
}
