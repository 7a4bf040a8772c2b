import { createHash } from "node:crypto";

/** Longest text of others that is part of a fire's key as it is. */
const CHARS_MAX = 200;

/** A text that a sender chose, as a part of a fire's key: the text itself where it is short and plain, so that people can find it. */
export function fireKey(text: string): string {
  const isPlain = text.length <= CHARS_MAX && !/\p{C}/u.test(text);
  return isPlain ? text : `sha256:${createHash("sha256").update(text).digest("hex")}`;
}
