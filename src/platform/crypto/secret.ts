import { inspect } from "node:util";

/** A text that must not be printed. However it is printed, logged or serialised, it is `[secret]`. */
export interface Secret {
  /** The text itself. Call it where the text is used, and keep it nowhere. */
  reveal(): string;
  toString(): string;
  toJSON(): string;
}

/** The replacement for a secret. */
export const MASK = "[secret]";

/** Wraps a text. */
export function createSecret(text: string): Secret {
  const mask = () => MASK;
  const secret = { reveal: () => text, toString: mask, toJSON: mask, [inspect.custom]: mask };
  return Object.freeze(secret);
}
