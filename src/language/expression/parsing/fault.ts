import type { ErrorCode } from "../../../schema/words/errors.ts";
import { FlowError } from "../../../schema/words/errors.ts";
import { isJsonObject } from "../../../schema/words/json.ts";

/**
 * An expression that cannot be read: `why`, and the offset of the place in the text that is being read.
 * {@link inContext} turns it into the message for the author.
 */
export function fault(why: string, offset: number, code: ErrorCode = "TEMPLATE_ERROR"): FlowError {
  return new FlowError(code, why, { detail: { offset } });
}

/** The same error, naming the text that it is about; an error that names one already is returned as it is. */
export function inContext(error: FlowError, text: string): FlowError {
  const { detail } = error;
  if (isJsonObject(detail) && "template" in detail) return error;
  const template = excerpt(text);
  return new FlowError(error.code, `Cannot read ${template}: ${error.message}`, {
    detail: { offset: offsetOf(error), template },
  });
}

/** Offset of a {@link fault} in its text, in UTF-16 units from 0; 0 for any other error. */
export function offsetOf(error: FlowError): number {
  const offset = isJsonObject(error.detail) ? error.detail["offset"] : undefined;
  return typeof offset === "number" ? offset : 0;
}

/** A piece of template for a message: on one line, and at most {@link EXCERPT_MAX} characters of it. */
export function excerpt(text: string): string {
  const start = text.slice(0, EXCERPT_MAX * 4).trim();
  const line = start.replace(/\s+/g, " ");
  const cut =
    line.length > EXCERPT_MAX || start.length < text.trimEnd().length - (text.length - text.trimStart().length);
  return `"${cut ? `${line.slice(0, EXCERPT_MAX)}…` : line}"`;
}

const EXCERPT_MAX = 120;
