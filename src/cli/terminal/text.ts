import { stripVTControlCharacters } from "node:util";
import { printableJson } from "../../platform/telemetry/printable.ts";
import { maskSealed } from "../../schema/words/sealed.ts";

/**
 * One line of text that is safe to print: without escape sequences, and with spaces for control characters. Names and messages
 * come from documents, services and tools; they must not move the cursor, set the title, or change the writing direction.
 * Sealed values become `[secret]`.
 */
export function cleanText(text: string): string {
  const shown = maskSealed(text);
  return PLAIN.test(shown) ? shown : stripVTControlCharacters(shown).replace(UNSAFE, " ");
}

const PLAIN = /^[\u0020-\u007e]*$/;
/** Control characters (C0, DEL, C1), line separators, and what embeds, overrides or isolates a direction. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/**
 * JSON as text, indented by two spaces and safe to print: it escapes characters that `JSON.stringify` leaves and terminals obey,
 * such as C1 control characters. It parses to the same value, except that sealed values become `[secret]`.
 */
export function jsonText(value: unknown): string {
  return safeJson(JSON.stringify(value, null, 2));
}

/** JSON as one line; as {@link jsonText} otherwise. */
export function jsonLine(value: unknown): string {
  return safeJson(JSON.stringify(value));
}

/** A text that is JSON already, as {@link jsonText} makes it. */
export function safeJson(json: string): string {
  return printableJson(maskSealed(json));
}

/** Columns that a line takes on a terminal: wide characters (East Asian, emoji) take two, combining ones zero. */
export function textWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

function characterWidth(character: string): number {
  if (/^[\p{Mn}\p{Me}\p{Cf}]$/u.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** Scripts and symbols that terminals draw two columns wide. */
const WIDE =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]$/u;

/** The text cut to at most `width` columns, with `…` where something is missing. */
export function fitText(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let kept = "";
  let used = 0;
  for (const character of text) {
    const next = used + characterWidth(character);
    if (next > width - 1) break;
    kept += character;
    used = next;
  }
  return width > 0 ? `${kept}…` : "";
}

/** The text filled up with spaces to `width` columns. */
export function padText(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}

/** A duration for people: `12ms`, `1.2s`, `2m 05s`, `1h 02m`. */
export function formatDuration(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1_000) return `${whole}ms`;
  if (whole < 59_950) return `${(whole / 1_000).toFixed(1)}s`;
  const seconds = Math.round(whole / 1_000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${String(seconds % 60).padStart(2, "0")}s`;
  return `${Math.floor(minutes / 60)}h ${String(minutes % 60).padStart(2, "0")}m`;
}

const DAY_MS = 86_400_000;

/** How long ago a time was, both in milliseconds since 1970: `now`, `12s ago`, `5m ago`, `3h ago`, `2d ago`. */
export function formatAgo(at: number, now: number): string {
  const ms = now - at;
  if (ms < 1_000) return "now";
  if (ms < 60_000) return `${Math.floor(ms / 1_000)}s ago`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)}m ago`;
  if (ms < DAY_MS) return `${Math.floor(ms / 3_600_000)}h ago`;
  return `${Math.floor(ms / DAY_MS)}d ago`;
}

/** A whole number with its thousands apart: `100,000`. */
export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Labels of a worker or a pool: `gpu=yes,zone=a`. */
export function labelText(labels: Readonly<Record<string, unknown>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${String(value)}`)
    .join(",");
}

/** `1 step`, `2 steps`. */
export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}
