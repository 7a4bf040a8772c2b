import { FlowError } from "../schema/words/errors.ts";

/** A page's key as callers see it: opaque, so that callers do not rely on its content. */
export function encodeCursor(key: string | number): string {
  return Buffer.from(JSON.stringify(key)).toString("base64url");
}

/** The text in a cursor. Throws `FlowError` INVALID_INPUT for a text that no list of this kind gave out. */
export function textCursor(cursor: string): string {
  const key = decode(cursor);
  if (typeof key === "string" && !key.includes("\u0000")) return key;
  throw notACursor();
}

/** The version in a cursor. Throws `FlowError` INVALID_INPUT for a text that no list of this kind gave out. */
export function versionCursor(cursor: string): number {
  const key = decode(cursor);
  if (typeof key === "number" && Number.isInteger(key) && key >= 1 && key <= INTEGER_MAX) return key;
  throw notACursor();
}

/** The id in a cursor. Throws `FlowError` INVALID_INPUT for a text that no list of this kind gave out. */
export function idCursor(cursor: string): string {
  const key = decode(cursor);
  if (typeof key === "string" && /^[1-9]\d{0,15}$/.test(key)) return key;
  throw notACursor();
}

/** PostgreSQL's `integer`. */
const INTEGER_MAX = 2_147_483_647;

function decode(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
}

function notACursor(): FlowError {
  const hint = "Pass 'next_cursor' of the page before as it is, or nothing for the first page.";
  return new FlowError("INVALID_INPUT", `'cursor' is not one that this list gave out. ${hint}`);
}
