import type { Json } from "../schema/words/json.ts";

/** One thing that was not as a test expects. */
export interface Failure {
  /** The expectation: `expect.result.count`, `mocks.fetch, call 2`. */
  what: string;
  /** What is wrong, if the values alone do not show it; may be empty. */
  message: string;
  /** Present, with `actual`, where two values are compared; undefined stands for nothing. */
  expected?: Json | undefined;
  actual?: Json | undefined;
  /** What to do about it; may have several lines. */
  hint?: string;
}

/** Longest text of a value in a report. */
const VALUE_CHARACTERS_MAX = 400;

/** A failure for people: what, then the values under each other, then the hint. */
export function failureText(failure: Failure): string {
  const { what, message, hint } = failure;
  const lines = [message === "" ? what : `${what}: ${message}`];
  if ("expected" in failure || "actual" in failure) {
    lines.push(`  expected  ${valueText(failure.expected)}`, `  actual    ${valueText(failure.actual)}`);
  }
  for (const line of hint?.split("\n") ?? []) lines.push(`  ${line}`);
  return lines.join("\n");
}

function valueText(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text;
}
