/**
 * Sealed texts. A command's reports contain no secret in plain text, yet a value that passes from step to step must arrive
 * unchanged. So a secret travels encrypted, in its place: `Bearer [sealed:k1:Zm9v…]`. Workers open it again; people see
 * `[secret]`.
 */

/** What a sealed text begins with. Looking for it is all that a value without one costs. */
const BEGIN = "[sealed:";

/** A sealed text: the id of the key, and the encrypted text in base64url. For `replace`; a whole result is megabytes long. */
export const SEALED = /\[sealed:[\w-]{1,64}:[\w-]+\]/g;

/** As {@link SEALED}, and the rest of a sealed text that was cut off. */
const SEALED_OR_CUT = /\[sealed:[\w-]{1,64}:[\w-]*\]?/g;

/** What stands for a secret where people look. */
export const SECRET_MASK = "[secret]";

/** True for a text in which a sealed one may stand. */
export function mayHoldSealed(text: string): boolean {
  return text.includes(BEGIN);
}

/** Every sealed text replaced by `[secret]`, also within JSON, whose form it keeps, and where it was cut off. */
export function maskSealed(text: string): string {
  return mayHoldSealed(text) ? text.replace(SEALED_OR_CUT, SECRET_MASK) : text;
}

/** What was sealed: a text or a number that is a secret, or the JSON text of a result that is one as a whole. */
export type Opened = { kind: "value"; value: string | number } | { kind: "result"; json: string };

/** Seals and opens for one tree of executions, whose members hand values to each other. */
export interface Sealer {
  /** The same value always gives the same sealed text: equal secrets stay equal, and work that is done again reports the same. */
  seal(value: string | number): string;
  /** A result that is a secret as a whole (`spec.result.sensitive`). */
  sealResult(json: string): string;
  /** Undefined if the text was sealed for another tree, or with a lost key, or only looks sealed. */
  open(sealed: string): Opened | undefined;
  /** The id of the key that a text was sealed with, if this sealer lacks it; undefined: it has the key, or the text is not sealed. */
  lostKeyOf(sealed: string): string | undefined;
}
