import type { Json } from "../words/json.ts";

/* Durations as people write them (control, rule 20): in documents, settings and calls. */

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** A hundred years: a longer duration is a mistake, and beyond the dates that arithmetic supports. */
export const DURATION_MS_MAX = 100 * 365 * 86_400_000;
const PARTS = /^(?:\d{1,12}(?:\.\d{1,6})?(?:ms|s|m|h|d))+$/;
const PART = /(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)/g;
const NUMBER = /^\d{1,12}(\.\d{1,6})?$/;

/** Milliseconds of `250ms`, `30s`, `1h30m`, `2d`, or of a number of seconds, also as text; undefined for anything else. */
export function durationMs(value: Json): number | undefined {
  const text = typeof value === "string" ? value.trim() : value;
  const seconds = typeof text === "string" && NUMBER.test(text) ? Number(text) : text;
  if (typeof seconds === "number") return within(seconds * 1_000);
  if (typeof text !== "string" || !PARTS.test(text)) return undefined;
  let sum = 0;
  for (const [, number, unit] of text.matchAll(PART)) sum += Number(number) * (UNIT_MS[unit ?? ""] ?? Number.NaN);
  return within(sum);
}

/** The same for how long something is kept: undefined also for a number without a unit, and for less than a millisecond. */
export function lifetimeMs(text: string): number | undefined {
  const ms = NUMBER.test(text.trim()) ? undefined : durationMs(text);
  return ms === 0 ? undefined : ms;
}

function within(ms: number): number | undefined {
  return ms >= 0 && ms <= DURATION_MS_MAX ? Math.round(ms) : undefined;
}
