import type { Context } from "hono";
import { maskSealed } from "../../schema/words/sealed.ts";

/**
 * Answers with JSON for people: `[secret]` where something is sealed. Sealed text is unreadable without
 * the key; the mask is shorter and says what it is.
 */
export function maskedJson(c: Context, answer: object): Response {
  return c.body(maskSealed(JSON.stringify(answer)), 200, { "content-type": "application/json" });
}

const BEGIN = Buffer.from("[sealed:");
const MASK = Buffer.from("[secret]");

/** The same for a streamed payload, in constant memory. Its length is known only at its end. */
export async function* maskedParts(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let held: Buffer = Buffer.alloc(0);
  let isInside = false;
  for await (const part of parts) {
    const [done, rest, inside] = masked(Buffer.concat([held, part]), isInside);
    held = rest;
    isInside = inside;
    if (done.length > 0) yield done;
  }
  if (!isInside && held.length > 0) yield held;
}

/** The masked text, the rest that may begin a sealed text, and whether the end lies within a sealed text. */
function masked(text: Buffer, within: boolean): [done: Buffer, held: Buffer, isInside: boolean] {
  const done: Buffer[] = [];
  let at = 0;
  let isInside = within;
  while (at < text.length) {
    if (isInside) {
      while (at < text.length && isSealedByte(text[at] ?? 0)) at += 1;
      if (at === text.length) return [Buffer.concat(done), Buffer.alloc(0), true];
      if (text[at] === CLOSE) at += 1;
      isInside = false;
    }
    const next = text.indexOf(BEGIN, at);
    if (next < 0) {
      const end = Math.max(at, text.length - begunAtEnd(text));
      return [Buffer.concat([...done, text.subarray(at, end)]), text.subarray(end), false];
    }
    done.push(text.subarray(at, next), MASK);
    at = next + BEGIN.length;
    isInside = true;
  }
  return [Buffer.concat(done), Buffer.alloc(0), isInside];
}

const CLOSE = 0x5d;

/** Letters, digits, `-`, `_` and the colon between key and text. */
function isSealedByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x3a) ||
    (byte >= 0x41 && byte <= 0x5a) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    byte === 0x2d ||
    byte === 0x5f
  );
}

/** How many of the last bytes may be the begin of something sealed. */
function begunAtEnd(text: Buffer): number {
  for (let length = BEGIN.length - 1; length > 0; length -= 1) {
    if (text.subarray(-length).equals(BEGIN.subarray(0, length)) && length <= text.length) return length;
  }
  return 0;
}
