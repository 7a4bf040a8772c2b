import { isAscii } from "node:buffer";
import type { Json } from "../../schema/words/json.ts";
import { isDeeper, RESULT_DEPTH_MAX } from "../../schema/words/json-depth.ts";
import type { LargeJson, ToolResult } from "../../schema/words/outcome.ts";

/** Shorter texts are kept in events, for which they are read anyway. */
const LARGE_BYTES = 32_768;
/** Texts from this length are left out of an outline: what is shown of a stored result has none of them. */
const LONG_CHARS = 257;
/** Longest outline, and most texts of a value that is outlined: more take as long as reading all of it. */
const OUTLINE_CHARS_MAX = 16_384;
const TEXTS_MAX = 1_024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/**
 * The outline of a large JSON text: the same with an empty list for each long text. Only for what is stored and read as the same
 * value character for character, so that none can tell that it was not parsed: ASCII without escapes, whose numbers, keys and
 * their order are as `JSON.stringify` writes them. Undefined for all other texts, for those that hold few long texts, and for what is
 * no JSON, or nested too deep: parsing those says why.
 */
export function outlineOf(text: Buffer<ArrayBuffer>): LargeJson | undefined {
  if (text.length < LARGE_BYTES || !isAscii(text) || text.includes(BACKSLASH)) return undefined;
  const parts: string[] = [];
  let from = 0;
  let texts = 0;
  for (let open = text.indexOf(QUOTE); open >= 0; texts += 1) {
    const close = text.indexOf(QUOTE, open + 1);
    if (close < 0 || texts === TEXTS_MAX) return undefined;
    if (close - open > LONG_CHARS) {
      // A long key is shown as it is.
      if (text[close + 1] === COLON) return undefined;
      parts.push(text.toString("latin1", from, open), "[]");
      from = close + 1;
    }
    open = text.indexOf(QUOTE, close + 1);
  }
  if (text.length - from > OUTLINE_CHARS_MAX) return undefined;
  const outline = parts.join("") + text.toString("latin1", from);
  if (outline.length > OUTLINE_CHARS_MAX || isDeeper(outline, RESULT_DEPTH_MAX)) return undefined;
  try {
    const value = JSON.parse(outline) as Json;
    return JSON.stringify(value) === outline ? { text, outline: value } : undefined;
  } catch {
    return undefined;
  }
}

/** The result of a task that gave this; its value is parsed when it is first asked for. */
export function largeResult(large: LargeJson): ToolResult {
  const { buffer, byteOffset, byteLength } = large.text;
  let data: Json | undefined;
  return {
    status: "ok",
    large,
    get data() {
      data ??= JSON.parse(Buffer.from(buffer, byteOffset, byteLength).toString("latin1")) as Json;
      return data;
    },
  };
}
